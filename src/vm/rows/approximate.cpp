// Approximate instructions (PTX ISA 9.7.3): the bits that an H200 returned, from src/vm/approximate.h.
#include "src/vm/approximate.h"

#include "src/vm/rows/lane_rows.h"
#include "src/vm/rows/real_meaning.h"

namespace assay::vm::ASSAY_LANES {
namespace {

template <class F>
void add_measured(std::vector<Row>& rows, Kind kind, const char* form, F, RealFunction real) {
  add_lane_row(rows,
               {.kind = kind,
                .effect = Effect::arithmetic,
                .status = Status::measured_sm90,
                .result = Type::f32,
                .sources = {Type::f32},
                .lanes = unary_lanes<F, F32Bits, F32Bits>,
                .real = real},
               {form});
}

}  // namespace

void add_approximate_rows(std::vector<Row>& rows) {
  add_measured(
      rows, Kind::exponential, "ex2.approx.ftz.f32", [](uint32_t x) { return ex2_approx_ftz_f32(x); },
      real_lanes<RealExponential>);
  add_measured(
      rows, Kind::exponential, "ex2.approx.f32", [](uint32_t x) { return ex2_approx_f32(x); },
      real_lanes<RealExponential>);
  add_measured(
      rows, Kind::lanes, "rcp.approx.ftz.f32", [](uint32_t x) { return rcp_approx_ftz_f32(x); },
      real_lanes<RealReciprocal<false>>);
  add_measured(
      rows, Kind::lanes, "rcp.approx.f32", [](uint32_t x) { return rcp_approx_f32(x); },
      real_lanes<RealReciprocal<false>>);
  add_measured(
      rows, Kind::lanes, "rsqrt.approx.f32", [](uint32_t x) { return rsqrt_approx_f32(x); },
      real_lanes<RealReciprocalRoot>);
  add_measured(
      rows, Kind::lanes, "rsqrt.approx.ftz.f32", [](uint32_t x) { return rsqrt_approx_ftz_f32(x); },
      real_lanes<RealReciprocalRoot>);
}

}  // namespace assay::vm::ASSAY_LANES
