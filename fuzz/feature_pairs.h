// Pairs of features: which classes of two features a kernel takes in one case, and which came up.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/feature_classes.h"

namespace assay {

/// One class of one feature of a kernel's cases.
struct FeatureClass {
  const Feature* feature = nullptr;
  size_t row = 0;  ///< of the feature among those that the kernel has
  std::string name;
  int64_t least = 0;  ///< of a size
};

class FeaturePairs {
 public:
  /// Features of which the kernel has two classes or more. A pair counts where a case with both is found that
  /// the kernel takes and that agrees with itself; what it refuses does not count. The same for every run.
  FeaturePairs(const Kernel&, const Operator&);

  const std::vector<FeatureClass>& classes() const { return classes_; }
  size_t features() const { return features_; }
  /// The case's class of each feature, as places in classes(); none where it has none.
  std::vector<std::optional<size_t>> classes_of(const Case&) const;

  /// Of two places in classes().
  bool is_possible(size_t a, size_t b) const { return possible_[a * classes_.size() + b] != 0; }
  int64_t times_drawn(size_t a, size_t b) const { return drawn_[a * classes_.size() + b]; }

  /// The case will run: what is drawn next turns to other pairs.
  void note_drawn(const Case&);
  /// The case ran.
  void note_covered(const Case&);
  int64_t possible() const;
  int64_t covered() const;
  int64_t drawn() const;  ///< of the possible ones
  /// "K 129 to 192 with H 9 to 16", ...: pairs that did not come up.
  std::vector<std::string> missing() const;

  /// A case that the kernel takes, to start from; null where none was found.
  const Case* start(size_t number) const {
    return starts_.empty() ? nullptr : &starts_[number % starts_.size()];
  }

 private:
  template <typename Change>
  void for_each_pair(const Case&, Change&&);
  void find_possible(const Kernel&);

  const Operator& op_;
  size_t features_ = 0;
  std::vector<FeatureClass> classes_;
  std::vector<Case> starts_;
  std::vector<uint8_t> possible_, covered_, drawn_;  ///< by a * classes + b, both ways
};

/// The case with classes of these places drawn into it, in the order of the features, and made to agree; what
/// is no feature (scale, parameters, seed) is drawn anew. A value that is of its class already stays in
/// `kept` of a hundred cases: a kernel may take few of the class. In a RapidCheck generator only.
Case with_classes(Case, const FeaturePairs&, std::vector<size_t> places, const Target&, int kept);
/// Whether a run would take it: sizes, names, limits, gates.
bool is_taken(const Case&, const Target&);

}  // namespace assay
