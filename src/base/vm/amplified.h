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

/// In one lane, an instruction whose results come back to it around a loop: what it has made of the error
/// that comes back, one growth times the next. It begins anew where nothing is left of them.
struct Returning {
  double growth = 1;  ///< all growths since, one times the next
  double start = 0;   ///< the relative error that came back then

  /// Relative errors of an operand that came back and of what becomes of it, without the instruction's own
  /// rounding; the first is no less than a rounding. Returns how many times as much came back as at the
  /// start, as far as this instruction made that: another one of the loop may undo it.
  double next(double before, double after) {
    constexpr double kMost = 0x1p+1000;
    if (growth <= 1 || before <= start) growth = 1, start = before;
    const double made = std::min(growth, before / start);
    growth = std::clamp(growth * (after / before), 1.0, kMost);
    return made;
  }
};

/// How an op's results differ from exact, relative to themselves, and how many times as much as the worst of
/// their operands: a difference of nearly equal numbers, an exponential of a large one. Of results that have
/// an error, and operands with one.
struct Amplified {
  Binades errors, growths;
  Binades returns;   ///< of an instruction whose results come back to it: Returning::next, else 1
  double error = 0;  ///< the largest, and where it was
  double value = 0, exact = 0;
  uint64_t block = 0;
  uint32_t thread = 0;

  /// What another thread saw; the same whatever the order.
  void merge(const Amplified& other);
};

}  // namespace assay::vm
