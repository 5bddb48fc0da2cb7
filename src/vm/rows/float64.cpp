// Double-precision arithmetic (PTX ISA 9.7.3), round to nearest. NaN results are 0x7fffffffffffffff.
#include "src/vm/rows/lane_rows.h"
#include "src/vm/rows/real_meaning.h"
#include "src/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

using F64Bits = Lane<uint64_t, uint64_t, Type::f64>;

constexpr uint64_t canonical_nan64 = 0x7fffffffffffffffull;
uint64_t canonical(double x) {
  return x != x ? canonical_nan64 : bits_of(x);
}

template <bool maximum>
uint64_t extreme(double a, double b) {
  const uint64_t x = bits_of(a), y = bits_of(b);
  if (a != a) return b != b ? canonical_nan64 : y;
  if (b != b) return x;
  if (a == b) return maximum ? x & y : x | y;
  return (a < b) != maximum ? x : y;
}

}  // namespace

void add_float64_rows(std::vector<Row>& rows) {
  const Effect effect = Effect::arithmetic;
  binary<F64Bits, F64, F64>(
      rows, effect, {"add{,.rn}.f64"}, [](double a, double b) { return canonical(a + b); },
      real_lanes<RealSum>);
  binary<F64Bits, F64, F64>(
      rows, effect, {"sub{,.rn}.f64"}, [](double a, double b) { return canonical(a - b); },
      real_lanes<RealDifference>);
  binary<F64Bits, F64, F64>(
      rows, effect, {"mul{,.rn}.f64"}, [](double a, double b) { return canonical(a * b); },
      real_lanes<RealProduct<true>>);
  ternary<F64Bits, F64, F64, F64>(
      rows, effect, {"{fma,mad}.rn.f64"},
      [](double a, double b, double c) { return canonical(__builtin_fma(a, b, c)); },
      real_lanes<RealFused<true>>);
  binary<F64Bits, F64, F64>(
      rows, effect, {"div.rn.f64"}, [](double a, double b) { return canonical(a / b); },
      real_lanes<RealQuotient<true>>);
  unary<F64Bits, F64>(
      rows, effect, {"rcp.rn.f64"}, [](double a) { return canonical(1.0 / a); },
      real_lanes<RealReciprocal<true>>);
  unary<F64Bits, F64>(
      rows, effect, {"sqrt.rn.f64"}, [](double a) { return canonical(__builtin_sqrt(a)); },
      real_lanes<RealRoot<true>>);
  unary<F64Bits, F64Bits>(
      rows, effect, {"abs.f64"}, [](uint64_t a) { return a & ~(uint64_t{1} << 63); },
      real_lanes<RealMagnitude>);
  unary<F64Bits, F64Bits>(
      rows, effect, {"neg.f64"}, [](uint64_t a) { return a ^ (uint64_t{1} << 63); },
      real_lanes<RealNegation>);
  binary<F64Bits, F64, F64>(
      rows, effect, {"min.f64"}, [](double a, double b) { return extreme<false>(a, b); },
      real_lanes<RealExtreme<false>>);
  binary<F64Bits, F64, F64>(
      rows, effect, {"max.f64"}, [](double a, double b) { return extreme<true>(a, b); },
      real_lanes<RealExtreme<true>>);
  binary<F64Bits, F64Bits, F64Bits>(rows, effect, {"copysign.f64"}, [](uint64_t a, uint64_t b) {
    return (b & ~(uint64_t{1} << 63)) | (a & (uint64_t{1} << 63));
  });
}

}  // namespace assay::vm::ASSAY_LANES
