// What an instruction makes of the errors of its operands.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace assay::vm {

/// By binades, so that threads merge without rounding: how many values lie in [2^(i - 32), 2^(i - 31)); the
/// first and the last hold what is beyond.
struct Binades {
  std::array<uint32_t, 64> counts{};
  void add(double x) { ++counts[static_cast<size_t>(std::clamp(std::ilogb(x), -32, 31) + 32)]; }
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
  double binades = 0;  ///< of all growths since
  double start = 0;    ///< the relative error that came back then

  /// Relative errors of an operand that came back and of what becomes of it, without the instruction's own
  /// rounding; the first is no less than a rounding. Returns how many times as much came back as at the
  /// start, as far as this instruction made that: another one of the loop may undo it.
  double next(double before, double after) {
    if (binades <= 0 || before <= start) binades = 0, start = before;
    const double made = std::min(std::exp2(binades), before / start);
    binades = std::max(0.0, binades + std::log2(after / before));
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
