// Approximate instructions (PTX ISA 9.7.3, 9.7.4): the bits that an H200 returns, from src/vm/approximate.h.
#include "src/vm/approximate.h"

#include "src/vm/interpolation.h"
#include "src/vm/rows/lane_rows.h"
#include "src/vm/rows/real_meaning.h"
#include "src/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

// ---- ex2 of floats ----

/// sfu::ex2 without branches and in words of 32 bits, for vectors: kernels of this field spend much of their
/// time here. The 40-bit sum of interpolate() is carried without its 8 lowest bits, which only the products
/// of x's 8 low bits, the square and the bias reach.
inline uint32_t exponential(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t bounded = magnitude < 0x437fffffu ? magnitude : 0x437fffffu;  // below 256
  const auto fixed = static_cast<int32_t>(float_of(bounded) * 0x1p23f);
  const int32_t negative = -static_cast<int32_t>(bits >> 31);
  const int32_t exact = (fixed & 0x7fffff) == 0 ? 1 : 0;
  const int32_t power = (fixed ^ negative) + (exact & negative);  // one's complement but for whole numbers
  const uint32_t fraction = static_cast<uint32_t>(power) & 0x7fffffu, x = fraction & 0x1ffffu;
  const Segment* segment = exponential_segments + (fraction >> 17);
  const auto c1 = static_cast<uint32_t>(segment->c1), c2 = static_cast<uint32_t>(segment->c2);
  const uint32_t low =
      c1 * (x & 0xff) + 2 * c2 * truncated_square(x) + static_cast<uint32_t>(exponential_bias);
  const uint32_t significand = ((static_cast<uint32_t>(segment->c0) << 6) + c1 * (x >> 8) + (low >> 8)) >> 8;
  const int32_t field = (power >> 23) + 127;
  const uint32_t normal = significand + (static_cast<uint32_t>(field - 1) << 23);
  const uint32_t bounded_above = field >= 255 ? 0x7f800000u : normal;
  const uint32_t result = field <= 0 ? 0 : bounded_above;
  return magnitude > 0x7f800000u ? canonical_nan32 : result;
}

void exponential_ftz_lanes(void* d, const void* a, const void*, const void*, const void*) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) U32::put(d, i, exponential(U32::get(a, i)));
}
/// Below -126 half the argument, squared (ex2_approx_f32). Loops of their own, because the compiler makes
/// branches of a choice around exponential() and then no vectors.
void exponential_lanes(void* d, const void* a, const void*, const void*, const void*) {
  uint32_t argument[32], halved[32];
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    const uint32_t x = U32::get(a, i), half = bits_of(float_of(x) * 0.5f);
    halved[i] = 0u - static_cast<uint32_t>(float_of(x) < -126.0f);
    argument[i] = (half & halved[i]) | (x & ~halved[i]);
  }
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) argument[i] = exponential(argument[i]);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    const uint32_t y = argument[i], square = bits_of(float_of(y) * float_of(y));
    U32::put(d, i, (square & halved[i]) | (y & ~halved[i]));
  }
}

// ---- forms ----

void add_row(std::vector<Row>& rows, const char* form, LaneRow row, LaneFunction lanes, RealFunction real) {
  row.effect = Effect::arithmetic;
  row.status = Status::measured_sm90;
  row.lanes = lanes;
  row.real = real;
  add_lane_row(rows, row, {form});
}
template <class L, class F>
void add_unary(std::vector<Row>& rows, const char* form, F, RealFunction real, Kind kind = Kind::lanes) {
  add_row(rows, form, {.kind = kind, .result = L::type, .sources = {L::type}}, unary_lanes<F, L, L>, real);
}

/// F on both halves of a word.
template <class F>
struct BothHalves {
  uint32_t operator()(uint32_t x) const {
    const uint32_t low = F{}(static_cast<uint16_t>(x)), high = F{}(static_cast<uint16_t>(x >> 16));
    return high << 16 | low;
  }
};
template <class One, class Two, class F>
void add_halves(std::vector<Row>& rows, const char* one, const char* two, F f, RealFunction real,
                Kind kind = Kind::lanes) {
  add_unary<One>(rows, one, f, real, kind);
  add_unary<Two>(rows, two, BothHalves<F>{}, real, kind);
}

template <class F>
void add_quotient(std::vector<Row>& rows, const char* form, F) {
  add_row(rows, form, {.result = Type::f32, .sources = {Type::f32, Type::f32}},
          binary_lanes<F, F32Bits, F32Bits, F32Bits>, real_lanes<RealQuotient<false>>);
}

}  // namespace

#define APPROXIMATE(function) [](auto... x) { return function(x...); }

void add_approximate_rows(std::vector<Row>& rows) {
  const LaneRow exponent{.kind = Kind::exponential, .result = Type::f32, .sources = {Type::f32}};
  const RealFunction power = real_lanes<RealExponential>, inverse = real_lanes<RealReciprocal<false>>,
                     inverse_root = real_lanes<RealReciprocalRoot<false>>, root = real_lanes<RealRoot<false>>,
                     logarithm = real_lanes<RealLogarithm>, tangent = real_lanes<RealHyperbolicTangent>;
  add_row(rows, "ex2.approx.ftz.f32", exponent, exponential_ftz_lanes, power);
  add_row(rows, "ex2.approx.f32", exponent, exponential_lanes, power);
  add_unary<F32Bits>(rows, "rcp.approx.ftz.f32", APPROXIMATE(rcp_approx_ftz_f32), inverse);
  add_unary<F32Bits>(rows, "rcp.approx.f32", APPROXIMATE(rcp_approx_f32), inverse);
  add_unary<F32Bits>(rows, "rsqrt.approx.ftz.f32", APPROXIMATE(rsqrt_approx_ftz_f32), inverse_root);
  add_unary<F32Bits>(rows, "rsqrt.approx.f32", APPROXIMATE(rsqrt_approx_f32), inverse_root);
  add_unary<F32Bits>(rows, "sqrt.approx.ftz.f32", APPROXIMATE(sqrt_approx_ftz_f32), root);
  add_unary<F32Bits>(rows, "sqrt.approx.f32", APPROXIMATE(sqrt_approx_f32), root);
  add_unary<F32Bits>(rows, "lg2.approx.ftz.f32", APPROXIMATE(lg2_approx_ftz_f32), logarithm);
  add_unary<F32Bits>(rows, "lg2.approx.f32", APPROXIMATE(lg2_approx_f32), logarithm);
  add_unary<F32Bits>(rows, "sin.approx{,.ftz}.f32", APPROXIMATE(sin_approx_f32), real_lanes<RealSine>);
  add_unary<F32Bits>(rows, "cos.approx{,.ftz}.f32", APPROXIMATE(cos_approx_f32), real_lanes<RealCosine>);
  add_unary<F32Bits>(rows, "tanh.approx.f32", APPROXIMATE(tanh_approx_f32), tangent);
  add_quotient(rows, "div.approx.ftz.f32", APPROXIMATE(div_approx_ftz_f32));
  add_quotient(rows, "div.approx.f32", APPROXIMATE(div_approx_f32));
  add_quotient(rows, "div.full.ftz.f32", APPROXIMATE(div_full_ftz_f32));
  add_quotient(rows, "div.full.f32", APPROXIMATE(div_full_f32));
  add_halves<F16, F16x2>(rows, "ex2.approx.f16", "ex2.approx.f16x2", APPROXIMATE(ex2_approx_f16), power,
                         Kind::exponential);
  add_halves<BF16, BF16x2>(rows, "ex2.approx.ftz.bf16", "ex2.approx.ftz.bf16x2",
                           APPROXIMATE(ex2_approx_ftz_bf16), power, Kind::exponential);
  add_halves<F16, F16x2>(rows, "tanh.approx.f16", "tanh.approx.f16x2", APPROXIMATE(tanh_approx_f16), tangent);
  add_halves<BF16, BF16x2>(rows, "tanh.approx.bf16", "tanh.approx.bf16x2", APPROXIMATE(tanh_approx_bf16),
                           tangent);
  add_unary<F64Bits>(rows, "rcp.approx.ftz.f64", APPROXIMATE(rcp_approx_ftz_f64),
                     real_lanes<RealReciprocal<true>>);
  add_unary<F64Bits>(rows, "rsqrt.approx.ftz.f64", APPROXIMATE(rsqrt_approx_ftz_f64),
                     real_lanes<RealReciprocalRoot<true>>);
  add_unary<F64Bits>(rows, "rsqrt.approx.f64", APPROXIMATE(rsqrt_approx_f64),
                     real_lanes<RealReciprocalRoot<true>>);
}

#undef APPROXIMATE

}  // namespace assay::vm::ASSAY_LANES
