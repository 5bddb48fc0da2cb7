#include "src/base/vm/births.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace births_test {

uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

/// Of one warp of which lane t has %a = a[t], %b = b[t].
std::vector<LineBirths> births(const std::string& body, std::vector<uint32_t> a, std::vector<uint32_t> b) {
  a.resize(32, bits(1)), b.resize(32, bits(1));
  TensorMap inputs;
  const Program program = plan_of({.body = body, .a = std::move(a), .b = std::move(b)}, inputs);
  return run_births(program, inputs, {});
}

TEST(Births, AreCountedByTheInstructionThatMadeThem) {
  const float inf = INFINITY, nan = NAN;
  struct Row {
    const char* body;
    float a, b;
    uint64_t nans, infinities, subnormals, by_zero;
  };
  const Row rows[] = {
      {"sub.rn.f32 %d, %a, %b;", inf, inf, 1, 0, 0, 0},
      {"sub.rn.f32 %d, %a, %b;", nan, 1, 0, 0, 0, 0},  // handed on
      {"add.rn.f32 %d, %a, %b;", inf, 1, 0, 0, 0, 0},  // handed on
      {"mul.rn.f32 %d, %a, %b;", 0, inf, 1, 0, 0, 0},
      {"mul.rn.f32 %d, %a, %b;", 2e38f, 2, 0, 1, 0, 0},
      {"div.rn.f32 %d, %a, %b;", 1, 0, 0, 1, 0, 1},
      {"div.rn.f32 %d, %a, %b;", 0, 0, 1, 0, 0, 0},
      {"div.rn.f32 %d, %a, %b;", 2e38f, 0.25f, 0, 1, 0, 0},  // overflow, no zero
      {"rcp.approx.f32 %d, %a;", 0, 1, 0, 1, 0, 1},
      {"lg2.approx.f32 %d, %a;", 0, 1, 0, 1, 0, 1},
      {"lg2.approx.f32 %d, %a;", -1, 1, 1, 0, 0, 0},
      {"ex2.approx.f32 %d, %a;", 200, 1, 0, 1, 0, 0},
      {"mul.rn.f32 %d, %a, %b;", 2e-38f, 1e-3f, 0, 0, 1, 0},
      {"mul.rn.ftz.f32 %d, %a, %b;", 2e-38f, 1e-3f, 0, 0, 0, 0},
      {"mul.rn.f32 %d, %a, %b;", 1e-39f, 0.5f, 0, 0, 0, 0},  // subnormal before
      {"cvt.rn.f16.f32 %h0, %a; cvt.u32.u16 %d, %h0;", 1e6f, 1, 0, 1, 0, 0},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", 1, 1e6f, 0, 1, 0, 0},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", 1e6f, nan, 0, 1, 0, 0},  // each half of its own source
      {"add.rn.f32 %d, %a, %b;", 1, 2, 0, 0, 0, 0},
  };
  for (const Row& row : rows) {
    const auto lines = births(row.body, {bits(row.a)}, {bits(row.b)});
    uint64_t nans = 0, infinities = 0, subnormals = 0, by_zero = 0;
    for (const LineBirths& line : lines) {
      nans += line.nans, infinities += line.infinities, subnormals += line.subnormals;
      by_zero += line.divisions_by_zero;
    }
    EXPECT_EQ(nans, row.nans) << row.body << " of " << row.a << ", " << row.b;
    EXPECT_EQ(infinities, row.infinities) << row.body << " of " << row.a << ", " << row.b;
    EXPECT_EQ(subnormals, row.subnormals) << row.body << " of " << row.a << ", " << row.b;
    EXPECT_EQ(by_zero, row.by_zero) << row.body << " of " << row.a << ", " << row.b;
  }
}

TEST(Births, TellOfTheWorstOne) {
  std::vector<uint32_t> a(32, bits(1)), b(32, bits(1));
  a[3] = bits(2e38f), b[3] = bits(4);
  a[7] = bits(INFINITY), b[7] = bits(0);
  const auto lines = births("mul.rn.f32 %d, %a, %b;", a, b);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].instruction, "mul.rn.f32");
  EXPECT_EQ(lines[0].thread[0], 7u);
  EXPECT_EQ(lines[0].example, "inf, 0 -> nan");
}

TEST(Births, OfTensorCoreSumsAreThoseOfFiniteOperands) {
  const char* const kMma =
      "mov.b32 %r0, %a; mov.b32 %r1, %a; mov.b32 %r2, %a; mov.b32 %r3, %a; mov.b32 %r4, %b; mov.b32 %r5, "
      "%b;\n"
      "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, "
      "%r5}, "
      "{%f0, %f1, %f2, %f3};\n mov.b32 %d, %f0;";
  // 0 * inf in every product: 128 sums are born NaN. Operands that are NaN already hand it on.
  const std::vector<uint32_t> zeros(32, 0), infinities(32, 0x7c007c00), nans(32, 0x7e007e00);
  const auto born = births(kMma, zeros, infinities);
  ASSERT_EQ(born.size(), 1u);
  EXPECT_EQ(born[0].nans, 128u);
  EXPECT_TRUE(births(kMma, zeros, nans).empty());
}

}  // namespace births_test
}  // namespace assay::vm
