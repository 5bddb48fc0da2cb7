// What an instruction makes of the errors of its operands.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace assay::vm {

/// By binades, so that threads merge without rounding: how many values lie in [2^(i - 32), 2^(i - 31)); the
/// first and the last hold what is beyond.
struct Binades {
  std::array<uint32_t, 64> counts{};
  /// Of a number that is not negative.
  static size_t binade_of(double x) {
    const int exponent = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52) - 1023;
    return static_cast<size_t>(std::clamp(exponent, -32, 31) + 32);
  }
  void add(double x) { ++counts[binade_of(x)]; }
  void merge(const Binades& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
  /// The lower end of the binade with the smallest that `share` of all do not exceed; 0 of nothing.
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
};

/// How an op's results differ from exact, relative to themselves, and how many times as much as the worst of
/// their operands: a difference of nearly equal numbers, an exponential of a large one. Of results that have
/// an error, and operands with one.
struct Amplified {
  Binades errors, growths;
  Binades returns;   ///< of an instruction whose results come back to it: ShadowKit::follow_returns, else 1
  double error = 0;  ///< the largest, and where it was
  double value = 0, exact = 0;
  uint64_t block = 0;
  uint32_t thread = 0;

  /// What another thread saw; the same whatever the order.
  void merge(const Amplified& other);
};

}  // namespace assay::vm
