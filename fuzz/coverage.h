// What a fuzz run has reached: the coverage table, the tightness table, and the features that make a case
// worth keeping.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/result/fuzz_run.h"
#include "src/result/verification.h"

namespace assay {

/// Tables of a run, filled case by case.
class Coverage {
 public:
  void add(const Verification&);
  std::vector<CoverageRow> coverage() const;    ///< by feature, then value; shares of all cases added
  std::vector<TightnessRow> tightness() const;  ///< by kernel, output, dtype, decay, class of length

 private:
  std::map<std::pair<std::string, std::string>, int64_t> counts_;
  std::map<std::vector<std::string>, TightnessRow> tightness_;
};

/// (feature, value) pairs of a case: "length" "two chunks and a partial one", "packed" "yes", ...
std::vector<std::pair<std::string, std::string>> coverage_of(const Case&);
/// What the run reached, as keys: exponent ranges per instruction, boundary classes by profile, error ratios
/// by octave.
std::vector<std::string> features_of(const Verification&);
/// "T <= 1024" or "T > 1024": class of the longest sequence in the tightness table.
std::string length_class(const Case&);
/// "ladder" of "ladder:8".
std::string profile_name(const Case&);

}  // namespace assay
