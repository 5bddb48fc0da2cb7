#include "src/verification/diagnosis/origin_kind.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

struct Row {
  const char* opcode;
  std::vector<double> operands;
  double result;
  OriginKind kind;
};

TEST(KindOfOrigin, EveryBirthHasTheKindOfItsInstructionAndOperands) {
  const double inf = INFINITY, nan = NAN;
  const Row rows[] = {
      {"ex2.approx.ftz.f32", {130}, inf, OriginKind::exp_overflow},
      {"mul.rn.f32", {0, inf}, nan, OriginKind::zero_times_infinity},
      {"fma.rn.f32", {-inf, 0, 1}, nan, OriginKind::zero_times_infinity},
      {"fma.rn.f32", {inf, 2, -inf}, nan, OriginKind::infinity_minus_infinity},
      {"sub.rn.f32", {inf, inf}, nan, OriginKind::infinity_minus_infinity},
      {"add.f32", {inf, -inf}, nan, OriginKind::infinity_minus_infinity},
      {"div.rn.f32", {1, 0}, inf, OriginKind::division_by_zero},
      {"div.rn.f32", {0, 0}, nan, OriginKind::division_by_zero},
      {"div.rn.f32", {inf, -inf}, nan, OriginKind::infinity_divided_by_infinity},
      {"cos.approx.ftz.f32", {inf}, nan, OriginKind::infinite_argument},
      {"div.rn.f32", {1e30, 1e-30}, inf, OriginKind::accumulation_overflow},
      {"rcp.approx.ftz.f32", {0}, inf, OriginKind::division_by_zero},
      {"rsqrt.approx.f32", {-1}, nan, OriginKind::negative_argument},
      {"lg2.approx.f32", {-1}, nan, OriginKind::negative_argument},
      {"lg2.approx.f32", {0}, -inf, OriginKind::logarithm_of_zero},
      {"sin.approx.f32", {inf}, nan, OriginKind::infinite_argument},
      {"ex2.approx.f16", {17}, inf, OriginKind::exp_overflow},
      {"div.approx.ftz.f32", {1, 1e-40}, inf, OriginKind::division_by_zero},
      {"div.full.f32", {1, 1e-40}, inf, OriginKind::accumulation_overflow},
      {"cvt.rn.f16.f32", {70000}, inf, OriginKind::conversion_overflow},
      {"fma.rn.f32", {1e30, 1e30, 0}, inf, OriginKind::accumulation_overflow},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
       {1e30, 1e30, 0},
       inf,
       OriginKind::accumulation_overflow},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {inf, 0}, nan, OriginKind::zero_times_infinity},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
       {inf, 1, 1, -inf},
       nan,
       OriginKind::infinity_minus_infinity},
  };
  for (const Row& r : rows) {
    vm::Event e;
    e.born = true;
    e.result = r.result;
    for (double x : r.operands) e.operands.push_back({.name = "%f", .type = "f32", .value = x});
    EXPECT_EQ(origin_kind(ptx::form_of(r.opcode), e), r.kind) << r.opcode << " of " << r.operands[0];
  }
}

TEST(KindOfOrigin, AValueFromOutsideHasTheKindOfItsSource) {
  const std::pair<vm::Source, OriginKind> sources[] = {{vm::Source::input, OriginKind::input},
                                                       {vm::Source::literal, OriginKind::literal},
                                                       {vm::Source::unwritten, OriginKind::unwritten_memory}};
  for (const auto& [source, kind] : sources) {
    vm::Event e;
    e.result = NAN;
    e.operands.push_back({.name = "%f1", .type = "f32", .value = NAN, .parent = -1, .source = source});
    EXPECT_EQ(origin_kind(ptx::form_of("add.rn.f32"), e), kind);
  }
}

}  // namespace
}  // namespace assay
