// What literals of a program's text stand for: themselves, a number that fp32 does not hold, a part of one, a
// coefficient of a polynomial that stands for a function.
#pragma once
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// Has the float more significant bits than so many? Not of infinity and NaN.
bool has_more_bits(uint32_t bits, int most);
/// Does the literal stand for a number that fp32 does not hold, as 1.44269504 for log2 e? 0.0625, 1.5 * 2^23,
/// 255 and 1e3 mean themselves.
bool is_inexact(uint32_t bits);

/// 1.5 * 2^23 (fp64: 2^52), or up to 2^11 more: what is added to it is rounded to an integer.
inline bool rounds_to_integer(double value, bool wide) {
  const double size = std::fabs(value), least = wide ? 0x1.8p52 : 0x1.8p23;
  return size >= least && size <= least + 0x1p11;
}

struct Literals {
  /// By op: at most so much of its product may be what a polynomial that begins there leaves out; empty where
  /// none does.
  std::vector<double> left_out;
  /// By op: the source that is the high part of a number in two parts, exact as it stands; -1: none.
  std::vector<int8_t> exact_source;
  std::set<Slot> of_series;  ///< immediates that nothing but polynomials reads
  /// Registers that round what is added to them to an integer.
  std::set<Slot> shifters;
};
/// Found when first asked for.
const Literals& literals_of(const Code&);
inline const std::set<Slot>& shifters_of(const Code& code) {
  return literals_of(code).shifters;
}

}  // namespace assay::vm
