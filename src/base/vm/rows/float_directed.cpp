// Directed rounding where the error term is not at hand: double precision in every mode, and division,
// reciprocal and square root in single precision (PTX ISA 9.7.3); cvt to f64 from 64-bit integers, and to
// integral values in f64, f16 and bf16 (9.7.9). The host's own rounding mode is set around the 32 operations;
// volatile operands keep the operations between the two calls.
#include <cfenv>

#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

constexpr int mode_of(Round round) {
  return round == Round::zero ? FE_TOWARDZERO : round == Round::down ? FE_DOWNWARD : FE_UPWARD;
}
constexpr const char* name_of(Round round) {
  return round == Round::zero ? ".rz" : round == Round::down ? ".rm" : ".rp";
}

/// What becomes of a result in double precision; which NaN operand passes depends on the operation.
template <int count, bool quotient>
uint64_t finished_double(double x, double a, double b, double c) {
  if constexpr (count == 1)
    return finished(x, a);
  else if constexpr (count == 2)
    return quotient ? finished(x, b, a) : finished(x, a, b);
  else
    return finished(x, a, c, b);
}

/// F on up to three operands of Real, all lanes in one rounding mode. With `.ftz` smallness is judged on the
/// result rounded with unbounded exponent (seen on an H200), so the smallest normal number is computed again
/// 2^48 larger: there it may turn out to have been rounded up.
template <class F, Round round, class Real, bool ftz, int count, bool quotient>
void directed_lanes(void* d, const void* a, const void* b, const void* c, const void*) {
  typedef Real __attribute__((may_alias)) Element;
  const void* const cells[3] = {a, b, c};
  volatile Real operands[3][32] = {};
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < 32; ++i) {
      const Real x = static_cast<const Element*>(cells[k])[i];
      if constexpr (sizeof(Real) == 4)
        operands[k][i] = ftz ? flushed(x) : x;
      else
        operands[k][i] = x;
    }
  volatile Real results[32];
  fesetround(mode_of(round));
  for (int i = 0; i < 32; ++i) {
    results[i] = F{}(Real{operands[0][i]}, Real{operands[1][i]}, Real{operands[2][i]});
    if constexpr (ftz && quotient)
      if (__builtin_fabsf(results[i]) == 0x1p-126f) {
        const volatile Real larger =
            F{}(operands[0][i] * (count == 1 ? 0x1p-48f : 0x1p48f), Real{operands[1][i]}, Real{});
        if (__builtin_fabsf(larger) < 0x1p-78f) results[i] = __builtin_copysignf(0.0f, results[i]);
      }
  }
  fesetround(FE_TONEAREST);
  for (int i = 0; i < 32; ++i) {
    if constexpr (sizeof(Real) == 8) {
      static_cast<uint64_t*>(d)[i] =
          finished_double<count, quotient>(results[i], operands[0][i], operands[1][i], operands[2][i]);
    } else {
      const uint32_t bits = canonical(results[i]);
      static_cast<uint32_t*>(d)[i] = ftz ? flushed_bits(bits) : bits;
    }
  }
}

template <Round round, class Real, bool ftz, int count, bool quotient, class F>
void add_directed(std::vector<Row>& rows, const char* operation, F, RealFunction real) {
  constexpr Type type = sizeof(Real) == 8 ? Type::f64 : Type::f32;
  add_lane_row(rows,
               {.flow = Flow::arithmetic,
                .result = type,
                .sources = {type, count > 1 ? type : Type::none, count > 2 ? type : Type::none},
                .lanes = directed_lanes<F, round, Real, ftz, count, quotient>,
                .real = real},
               {operation, name_of(round), ftz ? ".ftz" : "", sizeof(Real) == 8 ? ".f64" : ".f32"});
}

template <Round round, class Real, bool ftz>
void add_quotients(std::vector<Row>& rows) {
  constexpr bool wide = sizeof(Real) == 8;
  add_directed<round, Real, ftz, 2, true>(
      rows, "div", [](Real a, Real b, Real) { return a / b; }, real_lanes<RealQuotient<wide>>);
  add_directed<round, Real, ftz, 1, true>(
      rows, "rcp", [](Real a, Real, Real) { return 1 / a; }, real_lanes<RealReciprocal<wide>>);
  add_directed<round, Real, ftz, 1, false>(
      rows, "sqrt",
      [](Real a, Real, Real) {
        if constexpr (sizeof(Real) == 8)
          return __builtin_sqrt(a);
        else
          return __builtin_sqrtf(a);
      },
      real_lanes<RealRoot<wide>>);
}

/// A 64-bit integer to f64.
template <class Integer, Round round>
void from_integer_lanes(void* d, const void* a, const void*, const void*, const void*) {
  volatile Integer operands[32];
  volatile double results[32];
  for (int i = 0; i < 32; ++i) operands[i] = static_cast<const Integer*>(a)[i];
  fesetround(mode_of(round));
  for (int i = 0; i < 32; ++i) results[i] = static_cast<double>(Integer{operands[i]});
  fesetround(FE_TONEAREST);
  for (int i = 0; i < 32; ++i) static_cast<uint64_t*>(d)[i] = bits_of(double{results[i]});
}

template <Round round>
void add_mode(std::vector<Row>& rows) {
  add_directed<round, double, false, 2, false>(
      rows, "add", [](double a, double b, double) { return a + b; }, real_lanes<RealSum>);
  add_directed<round, double, false, 2, false>(
      rows, "sub", [](double a, double b, double) { return a - b; }, real_lanes<RealDifference>);
  add_directed<round, double, false, 2, false>(
      rows, "mul", [](double a, double b, double) { return a * b; }, real_lanes<RealProduct<true>>);
  add_directed<round, double, false, 3, false>(
      rows, "fma", [](double a, double b, double c) { return __builtin_fma(a, b, c); },
      real_lanes<RealFused<true>>);
  add_quotients<round, double, false>(rows);
  add_quotients<round, float, false>(rows);
  add_quotients<round, float, true>(rows);
  const char* name = name_of(round);
  add_lane_row(rows,
               {.flow = Flow::conversion,
                .result = Type::f64,
                .sources = {Type::s64},
                .lanes = from_integer_lanes<int64_t, round>},
               {"cvt", name, ".f64.s64"});
  add_lane_row(rows,
               {.flow = Flow::conversion,
                .result = Type::f64,
                .sources = {Type::u64},
                .lanes = from_integer_lanes<uint64_t, round>},
               {"cvt", name, ".f64.u64"});
  unary<F64, S32>(rows, Flow::conversion, {"cvt", name, ".f64.s32"},
                  [](int32_t a) { return static_cast<double>(a); });
  unary<F64, U32>(rows, Flow::conversion, {"cvt", name, ".f64.u32"},
                  [](uint32_t a) { return static_cast<double>(a); });
}

enum class Integral { nearest, zero, down, up };

template <Integral mode>
double integral(double x) {
  if constexpr (mode == Integral::zero) return __builtin_trunc(x);
  if constexpr (mode == Integral::down) return __builtin_floor(x);
  if constexpr (mode == Integral::up) return __builtin_ceil(x);
  return __builtin_rint(x);
}

/// An integral value of a 16-bit format is a value of that format: narrowing is exact.
template <Integral mode>
void add_rounded_integral(std::vector<Row>& rows, const char* rounding) {
  unary<Lane<uint64_t, uint64_t, Type::f64>, F64>(rows, Flow::conversion, {"cvt", rounding, ".f64.f64"},
                                                  [](double a) { return finished(integral<mode>(a), a); });
  unary<F16, F16>(rows, Flow::conversion, {"cvt", rounding, ".f16.f16"}, [](uint16_t a) {
    return narrowed_half<Half, Round::nearest>(integral<mode>(widened(Half{}, a)));
  });
  unary<BF16, BF16>(rows, Flow::conversion, {"cvt", rounding, ".bf16.bf16"}, [](uint16_t a) {
    return narrowed_half<Brain, Round::nearest>(integral<mode>(widened(Brain{}, a)));
  });
}

template <Round round>
void add_brain(std::vector<Row>& rows) {
  unary<BF16, F32>(
      rows, Flow::conversion, {"cvt", name_of(round), ".bf16.f32"},
      [](float a) { return narrowed_half<Brain, round>(static_cast<double>(a)); }, real_lanes<RealCopy>);
}

}  // namespace

void add_float_directed_rows(std::vector<Row>& rows) {
  add_mode<Round::zero>(rows);
  add_mode<Round::down>(rows);
  add_mode<Round::up>(rows);
  add_rounded_integral<Integral::nearest>(rows, ".rni");
  add_rounded_integral<Integral::zero>(rows, ".rzi");
  add_rounded_integral<Integral::down>(rows, ".rmi");
  add_rounded_integral<Integral::up>(rows, ".rpi");
  add_brain<Round::down>(rows);
  add_brain<Round::up>(rows);
}

}  // namespace assay::vm::ASSAY_LANES
