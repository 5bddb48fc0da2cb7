// Double-precision arithmetic (PTX ISA 9.7.3), round to nearest.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

/// The number where one operand is NaN, the second NaN, made quiet, where both are; -0 below +0.
template <bool maximum>
uint64_t extreme_double(double a, double b) {
  const uint64_t x = bits_of(a), y = bits_of(b);
  if (a != a) return b != b ? quiet(b) : y;
  if (b != b) return x;
  if (a == b) return maximum ? x & y : x | y;
  return (a < b) != maximum ? x : y;
}

}  // namespace

void add_float64_rows(std::vector<Row>& rows) {
  const Flow flow = Flow::arithmetic;
  binary<F64Bits, F64, F64>(
      rows, flow, {"add{,.rn}.f64"}, [](double a, double b) { return finished(a + b, a, b); },
      real_lanes<RealSum>);
  binary<F64Bits, F64, F64>(
      rows, flow, {"sub{,.rn}.f64"}, [](double a, double b) { return finished(a - b, a, b); },
      real_lanes<RealDifference>);
  binary<F64Bits, F64, F64>(
      rows, flow, {"mul{,.rn}.f64"}, [](double a, double b) { return finished(a * b, a, b); },
      real_lanes<RealProduct<true>>);
  ternary<F64Bits, F64, F64, F64>(
      rows, flow, {"{fma,mad}.rn.f64"},
      [](double a, double b, double c) { return finished(__builtin_fma(a, b, c), a, c, b); },
      real_lanes<RealFused<true>>);
  binary<F64Bits, F64, F64>(
      rows, flow, {"div.rn.f64"}, [](double a, double b) { return finished(a / b, b, a); },
      real_lanes<RealQuotient<true>>);
  unary<F64Bits, F64>(
      rows, flow, {"rcp.rn.f64"}, [](double a) { return finished(1.0 / a, a); },
      real_lanes<RealReciprocal<true>>);
  unary<F64Bits, F64>(
      rows, flow, {"sqrt.rn.f64"}, [](double a) { return finished(__builtin_sqrt(a), a); },
      real_lanes<RealRoot<true>>);
  unary<F64Bits, F64>(
      rows, flow, {"abs.f64"}, [](double a) { return a != a ? quiet(a) : bits_of(a) & ~(uint64_t{1} << 63); },
      real_lanes<RealMagnitude>);
  unary<F64Bits, F64>(
      rows, flow, {"neg.f64"}, [](double a) { return a != a ? quiet(a) : bits_of(a) ^ (uint64_t{1} << 63); },
      real_lanes<RealNegation>);
  binary<F64Bits, F64, F64>(
      rows, flow, {"min.f64"}, [](double a, double b) { return extreme_double<false>(a, b); },
      real_lanes<RealExtreme<false>>);
  binary<F64Bits, F64, F64>(
      rows, flow, {"max.f64"}, [](double a, double b) { return extreme_double<true>(a, b); },
      real_lanes<RealExtreme<true>>);
  binary<F64Bits, F64Bits, F64Bits>(rows, flow, {"copysign.f64"}, [](uint64_t a, uint64_t b) {
    return (b & ~(uint64_t{1} << 63)) | (a & (uint64_t{1} << 63));
  });
}

}  // namespace assay::vm::ASSAY_LANES
