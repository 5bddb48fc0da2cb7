// Between which values all elements of a tensor lie that is made on demand.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <optional>

namespace assay {

struct Extremes {
  double least = 0, greatest = 0;

  /// The smallest that has all of these.
  static Extremes of(std::initializer_list<double> values) { return {std::min(values), std::max(values)}; }
  bool has(double x) const { return x >= least && x <= greatest; }
};

/// What a TensorSource may also be: it says what it makes without making it.
class KnownExtremes {
 public:
  virtual ~KnownExtremes() = default;
  /// Nothing lies outside of it, and nothing is NaN; none where only looking tells.
  virtual std::optional<Extremes> extremes() const = 0;
};

}  // namespace assay
