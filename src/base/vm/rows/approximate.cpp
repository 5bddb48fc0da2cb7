// Approximate instructions (PTX ISA 9.7.3, 9.7.4): the bits that an H200 returns, from
// src/base/vm/approximate.h.
#include "src/base/vm/approximate.h"

#include "src/base/vm/rows/interpolated_lanes.h"
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"

namespace assay::vm::ASSAY_LANES {
namespace {

void add_row(std::vector<Row>& rows, const char* form, LaneRow row, LaneFunction lanes, RealFunction real) {
  row.flow = Flow::arithmetic;
  row.status = Status::measured_on(90);
  row.lanes = lanes;
  row.real = real;
  add_lane_row(rows, row, {form});
}
template <class L, class F>
void add_unary(std::vector<Row>& rows, const char* form, F, RealFunction real, Kind kind = Kind::lanes) {
  add_row(rows, form, {.kind = kind, .result = L::type, .sources = {L::type}}, unary_lanes<F, L, L>, real);
}

template <class F>
[[maybe_unused]] LaneFunction lane_by_lane(F) {
  return unary_lanes<F, F32Bits, F32Bits>;
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
  const LaneRow one{.result = Type::f32, .sources = {Type::f32}};
  LaneRow exponent = one;
  exponent.kind = Kind::exponential;
  const RealFunction power = real_lanes<RealExponential>, inverse = real_lanes<RealReciprocal<false>>,
                     inverse_root = real_lanes<RealReciprocalRoot<false>>, root = real_lanes<RealRoot<false>>,
                     logarithm = real_lanes<RealLogarithm>, tangent = real_lanes<RealHyperbolicTangent>;
  // Sums in doubles are quicker than lane by lane where the set has vectors for all that they take.
#ifdef __AVX512F__
  const LaneFunction logarithms = summed_lanes<Logarithm>,
                     plain_logarithms = scaled_lanes<Logarithm, ScaledLogarithm, summed_lanes<Logarithm>>;
#else
  const LaneFunction logarithms = lane_by_lane(APPROXIMATE(lg2_approx_ftz_f32)),
                     plain_logarithms = lane_by_lane(APPROXIMATE(lg2_approx_f32));
#endif
#ifdef __AVX2__
  const LaneFunction sines = summed_lanes<Circular<false>>, cosines = summed_lanes<Circular<true>>;
#else
  const LaneFunction sines = lane_by_lane(APPROXIMATE(sin_approx_f32)),
                     cosines = lane_by_lane(APPROXIMATE(cos_approx_f32));
#endif
  add_row(rows, "ex2.approx.ftz.f32", exponent, interpolated_lanes<Exponential>, power);
  add_row(rows, "ex2.approx.f32", exponent, scaled_lanes<Exponential, HalvedBelowMinus126>, power);
  add_row(rows, "rcp.approx.ftz.f32", one, interpolated_lanes<Reciprocal>, inverse);
  add_row(rows, "rcp.approx.f32", one, scaled_lanes<Reciprocal, ScaledReciprocal>, inverse);
  add_row(rows, "rsqrt.approx.ftz.f32", one, interpolated_lanes<InverseRoot>, inverse_root);
  add_row(rows, "rsqrt.approx.f32", one, scaled_lanes<InverseRoot, ScaledRoot>, inverse_root);
  add_row(rows, "sqrt.approx.ftz.f32", one, summed_lanes<SquareRoot>, root);
  add_row(rows, "sqrt.approx.f32", one, scaled_lanes<SquareRoot, ScaledSquareRoot, summed_lanes<SquareRoot>>,
          root);
  add_row(rows, "lg2.approx.ftz.f32", one, logarithms, logarithm);
  add_row(rows, "lg2.approx.f32", one, plain_logarithms, logarithm);
  add_row(rows, "sin.approx{,.ftz}.f32", one, sines, real_lanes<RealSine>);
  add_row(rows, "cos.approx{,.ftz}.f32", one, cosines, real_lanes<RealCosine>);
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
