#include "src/verification/diagnosis/origin_kind.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

struct Row {
  const char* opcode;
  std::vector<double> operands;
  double result;
  const char* kind;
};

TEST(OriginKind, EveryBirthHasTheKindOfItsInstructionAndOperands) {
  const double inf = INFINITY, nan = NAN;
  const Row rows[] = {
      {"ex2.approx.ftz.f32", {130}, inf, "exp-overflow"},
      {"mul.rn.f32", {0, inf}, nan, "zero-times-infinity"},
      {"fma.rn.f32", {-inf, 0, 1}, nan, "zero-times-infinity"},
      {"fma.rn.f32", {inf, 2, -inf}, nan, "infinity-minus-infinity"},
      {"sub.rn.f32", {inf, inf}, nan, "infinity-minus-infinity"},
      {"add.f32", {inf, -inf}, nan, "infinity-minus-infinity"},
      {"div.rn.f32", {1, 0}, inf, "division-by-zero"},
      {"div.rn.f32", {0, 0}, nan, "division-by-zero"},
      {"div.rn.f32", {inf, -inf}, nan, "infinity-divided-by-infinity"},
      {"cos.approx.ftz.f32", {inf}, nan, "infinite-argument"},
      {"div.rn.f32", {1e30, 1e-30}, inf, "accumulation-overflow"},
      {"rcp.approx.ftz.f32", {0}, inf, "division-by-zero"},
      {"rsqrt.approx.f32", {-1}, nan, "negative-argument"},
      {"lg2.approx.f32", {-1}, nan, "negative-argument"},
      {"lg2.approx.f32", {0}, -inf, "logarithm-of-zero"},
      {"sin.approx.f32", {inf}, nan, "infinite-argument"},
      {"ex2.approx.f16", {17}, inf, "exp-overflow"},
      {"div.approx.ftz.f32", {1, 1e-40}, inf, "division-by-zero"},
      {"div.full.f32", {1, 1e-40}, inf, "accumulation-overflow"},
      {"cvt.rn.f16.f32", {70000}, inf, "conversion-overflow"},
      {"fma.rn.f32", {1e30, 1e30, 0}, inf, "accumulation-overflow"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {1e30, 1e30, 0}, inf, "accumulation-overflow"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {inf, 0}, nan, "zero-times-infinity"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
       {inf, 1, 1, -inf},
       nan,
       "infinity-minus-infinity"},
  };
  for (const Row& r : rows) {
    vm::Event e;
    e.born = true;
    e.result = r.result;
    for (double x : r.operands) e.operands.push_back({.name = "%f", .type = "f32", .value = x});
    EXPECT_EQ(origin_kind(ptx::form_of(r.opcode), e), r.kind) << r.opcode << " of " << r.operands[0];
  }
}

TEST(OriginKind, AValueFromOutsideHasTheKindOfItsSource) {
  const std::pair<vm::Source, const char*> sources[] = {{vm::Source::input, "input"},
                                                        {vm::Source::literal, "literal"},
                                                        {vm::Source::unwritten, "unwritten-memory"}};
  for (const auto& [source, kind] : sources) {
    vm::Event e;
    e.result = NAN;
    e.operands.push_back({.name = "%f1", .type = "f32", .value = NAN, .parent = -1, .source = source});
    EXPECT_EQ(origin_kind(ptx::form_of("add.rn.f32"), e), kind);
  }
}

}  // namespace
}  // namespace assay
