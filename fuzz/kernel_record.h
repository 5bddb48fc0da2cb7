// What a fuzz run knows of one kernel: what its cases reached, what they cost, and the cases worth keeping.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/database.h"
#include "fuzz/feature_pairs.h"
#include "fuzz/generator.h"
#include "src/result/fuzz_run.h"
#include "src/result/verification.h"

namespace assay {

class KernelRecord {
 public:
  explicit KernelRecord(const Kernel&);

  /// A case of an earlier run, and what it was the first to reach: further cases start from it. A case that
  /// the kernel no longer takes is left out. Throws BadInput for a token that is none.
  void resume(const CorpusEntry&);
  /// Counts what the case reached. The first case to reach something joins the corpus; what it reached comes
  /// back.
  std::vector<CorpusEntry> add(const Verification&);
  void count_drawn(const Case& c) { count_case(feedback_, c, op_); }

  const Kernel& kernel() const { return kernel_; }
  const Feedback& feedback() const { return feedback_; }
  FeaturePairs& pairs() { return pairs_; }
  /// "branch sides", "inputs present" and "pairs of features", each of how many.
  std::vector<ReachedRow> reached() const;

  /// That no case was taken, and why: the most frequent reasons.
  std::string all_refused() const;

  /// What its cases say of a property.
  KernelPropertyRow& property(const std::string& name) {
    return properties_.try_emplace(name, KernelPropertyRow{kernel_.name, name, 0, 0}).first->second;
  }
  const std::map<std::string, KernelPropertyRow>& properties() const { return properties_; }

  int64_t accepted = 0, rejected = 0, too_large = 0;
  std::map<std::string, int64_t> refusals;  ///< cases rejected, by the plan's reason
  int64_t faults = 0;
  int64_t shrunk = 0;  ///< findings given to shrinking

 private:
  std::vector<std::string> new_features(const Verification&);
  void keep(const Case&);

  const Kernel& kernel_;
  const Operator& op_;
  Feedback feedback_;
  FeaturePairs pairs_;
  std::map<std::string, KernelPropertyRow> properties_;
  std::set<std::string> features_, presences_;
  std::map<std::string, std::vector<uint8_t>> sides_;  ///< by entry: sides of its guards taken so far
};

}  // namespace assay
