// Values that are rounded alike: nearer to each other than a sixteenth of their format's spacing.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/numerics/format.h"

namespace assay {

/// Which values an exact value is alike with, the spacing of its format there given; never 0.
uint64_t kind_of(const Format&, double x, double spacing);

/// What there is of each kind, in the order in which kinds came.
template <typename Entry>
class ByKind {
 public:
  Entry& at(uint64_t kind) {
    if (2 * (entries_.size() + 1) > places_.size()) grow();
    uint32_t& place = place_of(kind);
    if (place == 0)
      kinds_.push_back(kind), entries_.emplace_back(), place = static_cast<uint32_t>(kinds_.size());
    return entries_[place - 1];
  }
  /// Brings what at() reads first nearer, then what it reads behind that: a table of many kinds is larger
  /// than what is near.
  void near_place(uint64_t kind) const {
    if (!places_.empty()) __builtin_prefetch(&places_[first_of(kind)]);
  }
  void near_entry(uint64_t kind) const {
    if (places_.empty()) return;
    const uint32_t place = places_[first_of(kind)];
    if (place != 0) __builtin_prefetch(&kinds_[place - 1]), __builtin_prefetch(&entries_[place - 1], 1);
  }
  const std::vector<uint64_t>& kinds() const { return kinds_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  size_t first_of(uint64_t kind) const { return (kind * 0x9e3779b97f4a7c15) >> 32 & (places_.size() - 1); }
  uint32_t& place_of(uint64_t kind) {
    const size_t mask = places_.size() - 1;
    size_t i = first_of(kind);
    while (places_[i] != 0 && kinds_[places_[i] - 1] != kind) i = (i + 1) & mask;
    return places_[i];
  }
  void grow() {
    places_.assign(places_.empty() ? 64 : 2 * places_.size(), 0);
    for (size_t i = 0; i < kinds_.size(); ++i) place_of(kinds_[i]) = static_cast<uint32_t>(i + 1);
  }

  std::vector<uint64_t> kinds_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  ///< one more than where the kind is; 0: none
};

/// Probability that two values are alike; share of the largest kind.
struct Shares {
  double collision = 0, largest = 0;

  void raise(const Shares&);
};

/// Values of one part after the other: how much of each is alike, and of all.
class AlikeValues {
 public:
  void begin_part();
  /// Each with the spacing there.
  void add(const Format&, std::span<const double> x, const double* spacing);
  void add(const AlikeValues&);
  Shares of_part() const;  ///< since the last part began
  Shares of_all() const;

 private:
  struct Count {
    int64_t all = 0, here = 0, part = 0;  ///< here: in that part, the last that has such values
  };
  ByKind<Count> counts_;
  int64_t all_ = 0, part_ = 0;
  // Of this part: values, the sum of the kinds' squares, the largest kind.
  int64_t here_ = 0, squares_ = 0, most_ = 0;
};

/// What roundings of the same kind make of a direction: one source each.
class KindsAlong {
 public:
  struct Rounding {
    double x, spacing, along, variance;  ///< variance: of storing x
  };
  void add(const Format&, std::span<const Rounding>);
  void add(const KindsAlong&);
  double variance() const;

 private:
  struct Sum {
    double along = 0, variance = 0;  ///< variance: the largest
  };
  ByKind<Sum> sums_;
};

}  // namespace assay
