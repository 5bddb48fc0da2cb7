// Single-precision arithmetic (PTX ISA 9.7.3): every rounding mode, .ftz, .sat; NaN results are 0x7fffffff.
#include "src/base/vm/rows/host_mode.h"
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

/// Modifiers of one form.
template <Round round_, bool ftz_, bool sat_>
struct Mode {
  static constexpr Round round = round_;
  static constexpr bool ftz = ftz_, sat = sat_;
  static float in(float x) { return ftz ? flushed(x) : x; }
  /// .sat clamps to [+0, 1] with NaN -> +0.
  static uint32_t kept(float x) {
    if constexpr (!sat) return canonical(x);
    const uint32_t low = x > 0 ? bits_of(x) : 0;  // NaN and -0 -> +0
    return low > 0x3f800000u ? 0x3f800000u : low;
  }
  /// .ftz flushes the rounded result.
  static uint32_t out(float x) { return ftz ? flushed_bits(kept(x)) : kept(x); }
  /// Products: .ftz judges the value rounded to 24 bits as if the exponent had no bound, so that one just
  /// below 2^-126 becomes zero although among the subnormals it would round up to 2^-126 (seen on an H200;
  /// sums this small are exact). `exact` may be rounded to odd.
  static uint32_t out(float x, double exact) {
    const uint32_t bits = out(x);
    if (!ftz) return bits;
    const double magnitude = exact < 0 ? -exact : exact;
    const bool outward = round == Round::down ? exact < 0 : round == Round::up && exact > 0;
    bool tiny = magnitude < 0x1p-126;
    if (round == Round::nearest) tiny = magnitude < 0x1.ffffffp-127;  // half an ulp below 2^-126, a tie to it
    if (outward) tiny = magnitude <= 0x1.fffffep-127;
    return tiny ? bits & 0x80000000u : bits;
  }
};

/// The real meaning under M's .sat.
template <class M, class Real>
RealFunction meaning() {
  if constexpr (M::sat) return real_lanes<RealClamped<Real, true>>;
  return real_lanes<Real>;
}

// The operations to nearest, or however the host rounds just now.
struct Sum {
  float operator()(float a, float b) const { return a + b; }
};
struct Difference {
  float operator()(float a, float b) const { return a - b; }
};
struct Product {
  float operator()(float a, float b) const { return a * b; }
};
struct FusedSum {
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
};

#ifdef __AVX2__
template <class M>
inline constexpr bool by_host = M::ftz || M::round != Round::nearest;
template <class M, class F>
void two_by_host(void* d, const void* a, const void* b, const void*, const void*) {
  const HostMode mode(M::round, M::ftz);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) F32Bits::put(d, i, M::kept(F{}(F32::get(a, i), F32::get(b, i))));
}
template <class M, class F>
void three_by_host(void* d, const void* a, const void* b, const void* c, const void*) {
  const HostMode mode(M::round, M::ftz);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i)
    F32Bits::put(d, i, M::kept(F{}(F32::get(a, i), F32::get(b, i), F32::get(c, i))));
}
#else
template <class M>
inline constexpr bool by_host = false;
template <class M, class F>
constexpr LaneFunction two_by_host = nullptr;
template <class M, class F>
constexpr LaneFunction three_by_host = nullptr;
#endif

/// A row of M that the host's own modes give, where it has them, or `f`.
template <class M, class Host, class F>
void add_two(std::vector<Row>& rows, std::initializer_list<const char*> parts, F, RealFunction real) {
  LaneRow row{.flow = Flow::arithmetic, .result = Type::f32, .sources = {Type::f32, Type::f32}, .real = real};
  if constexpr (by_host<M>)
    row.lanes = two_by_host<M, Host>;
  else
    row.lanes = binary_lanes<F, F32Bits, F32, F32>;
  add_lane_row(rows, row, parts);
}
template <class M, class Host, class F>
void add_three(std::vector<Row>& rows, std::initializer_list<const char*> parts, F, RealFunction real) {
  LaneRow row{.flow = Flow::arithmetic,
              .result = Type::f32,
              .sources = {Type::f32, Type::f32, Type::f32},
              .real = real};
  if constexpr (by_host<M>)
    row.lanes = three_by_host<M, Host>;
  else
    row.lanes = ternary_lanes<F, F32Bits, F32, F32, F32>;
  add_lane_row(rows, row, parts);
}

template <class M>
void add_arithmetic(std::vector<Row>& rows, const char* rounding, const char* modifiers) {
  add_two<M, Sum>(
      rows, {"add", rounding, modifiers, ".f32"},
      [](float a, float b) { return M::out(added<M::round>(M::in(a), M::in(b))); }, meaning<M, RealSum>());
  add_two<M, Difference>(
      rows, {"sub", rounding, modifiers, ".f32"},
      [](float a, float b) { return M::out(added<M::round>(M::in(a), -M::in(b))); },
      meaning<M, RealDifference>());
  add_two<M, Product>(
      rows, {"mul", rounding, modifiers, ".f32"},
      [](float a, float b) {
        a = M::in(a), b = M::in(b);
        return M::out(multiplied<M::round>(a, b), static_cast<double>(a) * b);
      },
      meaning<M, RealProduct<false>>());
  add_three<M, FusedSum>(
      rows, {"{fma,mad}", rounding, modifiers, ".f32"},
      [](float a, float b, float c) {
        a = M::in(a), b = M::in(b), c = M::in(c);
        const double exact = M::ftz ? odd_sum(static_cast<double>(a) * b, c) : 1.0;
        return M::out(fused<M::round>(a, b, c), exact);
      },
      meaning<M, RealFused<false>>());
}

template <Round round>
void add_modes(std::vector<Row>& rows, const char* rounding) {
  add_arithmetic<Mode<round, false, false>>(rows, rounding, "");
  add_arithmetic<Mode<round, true, false>>(rows, rounding, ".ftz");
  add_arithmetic<Mode<round, false, true>>(rows, rounding, ".sat");
  add_arithmetic<Mode<round, true, true>>(rows, rounding, ".ftz.sat");
}

/// The number where one operand is NaN; -0 below +0 (equal operands: OR of the bits for min, AND for max).
template <bool maximum, bool nan>
uint32_t extreme(float a, float b) {
  const uint32_t x = bits_of(a), y = bits_of(b);
  const uint32_t equal = maximum ? x & y : x | y;
  const uint32_t ordered = a == b ? equal : (a < b) != maximum ? x : y;
  const uint32_t without = a != a ? y : x;
  const bool any = a != a || b != b, both = a != a && b != b;
  return (nan ? any : both) ? canonical_nan32 : any ? without : ordered;
}

template <bool ftz>
void add_simple(std::vector<Row>& rows, const char* modifier) {
  using M = Mode<Round::nearest, ftz, false>;
  const Flow flow = Flow::arithmetic;
  binary<F32Bits, F32, F32>(
      rows, flow, {"min", modifier, ".f32"},
      [](float a, float b) { return extreme<false, false>(M::in(a), M::in(b)); },
      real_lanes<RealExtreme<false>>);
  binary<F32Bits, F32, F32>(
      rows, flow, {"max", modifier, ".f32"},
      [](float a, float b) { return extreme<true, false>(M::in(a), M::in(b)); },
      real_lanes<RealExtreme<true>>);
  binary<F32Bits, F32, F32>(
      rows, flow, {"min", modifier, ".NaN.f32"},
      [](float a, float b) { return extreme<false, true>(M::in(a), M::in(b)); },
      real_lanes<RealExtreme<false>>);
  binary<F32Bits, F32, F32>(
      rows, flow, {"max", modifier, ".NaN.f32"},
      [](float a, float b) { return extreme<true, true>(M::in(a), M::in(b)); },
      real_lanes<RealExtreme<true>>);
  binary<F32Bits, F32, F32>(
      rows, flow, {"div.rn", modifier, ".f32"}, [](float a, float b) { return M::out(M::in(a) / M::in(b)); },
      real_lanes<RealQuotient<false>>);
  unary<F32Bits, F32>(
      rows, flow, {"rcp.rn", modifier, ".f32"}, [](float a) { return M::out(1.0f / M::in(a)); },
      real_lanes<RealReciprocal<false>>);
  unary<F32Bits, F32>(
      rows, flow, {"sqrt.rn", modifier, ".f32"}, [](float a) { return M::out(__builtin_sqrtf(M::in(a))); },
      real_lanes<RealRoot<false>>);
  unary<F32Bits, F32>(
      rows, flow, {"abs", modifier, ".f32"},
      [](float a) { return canonical(float_of(bits_of(M::in(a)) & 0x7fffffffu)); },
      real_lanes<RealMagnitude>);
  unary<F32Bits, F32>(
      rows, flow, {"neg", modifier, ".f32"},
      [](float a) { return canonical(float_of(bits_of(M::in(a)) ^ 0x80000000u)); }, real_lanes<RealNegation>);
}

}  // namespace

void add_float32_rows(std::vector<Row>& rows) {
  add_modes<Round::nearest>(rows, "{,.rn}");  // without a modifier: read as .rn, unfused (fma demands one)
  add_modes<Round::zero>(rows, ".rz");
  add_modes<Round::down>(rows, ".rm");
  add_modes<Round::up>(rows, ".rp");
  add_simple<false>(rows, "");
  add_simple<true>(rows, ".ftz");
  binary<F32Bits, F32Bits, F32Bits>(rows, Flow::arithmetic, {"copysign.f32"}, [](uint32_t a, uint32_t b) {
    return (b & 0x7fffffffu) | (a & 0x80000000u);
  });
}

}  // namespace assay::vm::ASSAY_LANES
