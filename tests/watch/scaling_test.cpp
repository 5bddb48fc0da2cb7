#include "src/base/watch/scaling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/vm/small_kernel.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace scaling_test {

TracedAndNoted of_body(const std::string& body, const std::vector<float>& a, const std::vector<float>& b) {
  const auto words = [](const std::vector<float>& all) {
    std::vector<uint32_t> made;
    for (const float x : all) made.push_back(std::bit_cast<uint32_t>(x));
    made.resize(32, std::bit_cast<uint32_t>(1.0f));
    return made;
  };
  TensorMap inputs;
  const Program program = vm::plan_of({.body = body, .a = words(a), .b = words(b)}, inputs);
  return traced_and_noted(program, inputs);
}

/// Twelve multiples of %a, each times %b or, every second, %f19 = %b / 4; all of them summed.
std::string scaled(const std::string& product, bool in_place) {
  std::string body = "mul.rn.f32 %f19, %b, 0f3E800000; .reg .f32 %x<12>, %y<12>;\n";
  for (int i = 0; i < 12; ++i)
    body += fmt::format("mul.rn.f32 %x{}, %a, 0f{:08X};\n", i, std::bit_cast<uint32_t>(i - 5.5f));
  body += "bra LATER;\nLATER:\n";
  for (int i = 0; i < 12; ++i)
    body += fmt::format("{} %{}{}, %x{}, {};\n", product, in_place ? "x" : "y", i, i, i % 2 ? "%b" : "%f19");
  body += "bra LAST;\nLAST:\nmov.b32 %f0, 0;\n";
  for (int i = 0; i < 12; ++i) body += fmt::format("max.f32 %f0, %f0, %{}{};\n", in_place ? "x" : "y", i);
  return body + "mov.b32 %d, %f0;";
}

TEST(Scaling, ProductsByFewFactorsAreTestedBeforeTheyRun) {
  const float inf = INFINITY;
  const float values[] = {0, -0.0f, 1, -3, 1e-40f, 3e19f, -6e37f, 3e38f, inf, -inf, NAN};
  for (const char* product : {"mul.f32", "mul.rn.f32", "mul.rn.ftz.f32"})
    for (const bool in_place : {false, true})
      for (const float a : values)
        for (const float b : values) {
          // The second lane has something else than the others.
          const TracedAndNoted s = of_body(scaled(product, in_place), {1, a}, {1, b});
          EXPECT_TRUE(s.same_outputs && s.same_trap) << product << " of " << a << ", " << b;
          EXPECT_EQ(s.traced, s.noted) << product << in_place << " of " << a << ", " << b << s.text;
        }
}

// Two sums of |x|, whatever the products leave; and what is kept of it is nothing.
TEST(Scaling, TestsTakeOneSumOfEachFactor) {
  const std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<40>;\n";
  const auto made = [&](int products, int factors) {
    std::string body = text;
    for (int i = 0; i < products; ++i)
      body += fmt::format("mul.rn.f32 %f{0}, %f{0}, %f{1};\n", i, 36 + i % factors);
    body += "ret;\n}\n";
    return rewritten(body, ptx::parse(body, "f.ptx"), {});
  };
  const auto before = [](const std::string& text) {
    return text.find("_born;") < text.find("mul.rn.f32 %f0,");
  };
  EXPECT_TRUE(before(made(16, 2).ptx)) << made(16, 2).ptx;
  EXPECT_LE(made(16, 2).counts.added, 2 * 16 + 2 * 3 + 3);
  EXPECT_FALSE(before(made(7, 1).ptx));
  EXPECT_FALSE(before(made(12, 4).ptx));
}

/// Nine products by one factor, of which number `in_scope` stands in a scope, as inline assembly has it.
std::string with_a_scope(int in_scope, const char* scope) {
  std::string body = ".reg .f32 %x<9>, %y<9>;\n";
  for (int i = 0; i < 9; ++i)
    body += fmt::format("mul.rn.f32 %x{}, %a, 0f{:08X};\n", i, std::bit_cast<uint32_t>(i - 3.5f));
  body += "bra LATER;\nLATER:\n";
  for (int i = 0; i < 9; ++i) {
    const std::string product = fmt::format("mul.f32 %y{0}, %x{0}, %b;", i);
    body += i == in_scope ? fmt::format("{{ {} {} }}\n", scope, product) : product + "\n";
  }
  body += "bra LAST;\nLAST:\nmov.b32 %f0, 0;\n";
  for (int i = 0; i < 9; ++i) body += fmt::format("max.f32 %f0, %f0, %y{};\n", i);
  return body + "mov.b32 %d, %f0;";
}

// They end outside of scopes, and what is written aside holds whole ones.
TEST(Scaling, ScopesAmongProductsStayWhole) {
  for (const char* scope : {"", ".reg .f32 %in; mul.f32 %in, %x0, %b;",
                            ".reg .f32 %in; mul.f32 %f9, %in, %b;", "{ mul.f32 %f9, %x0, %b; }"})
    for (int in_scope = 0; in_scope < 9; ++in_scope)
      for (const float a : {1.0f, 3e38f, INFINITY}) {
        const TracedAndNoted s = of_body(with_a_scope(in_scope, scope), {1, a}, {1, 2});
        EXPECT_TRUE(s.same_outputs && s.same_trap && !s.trapped) << scope << in_scope << s.text;
        EXPECT_EQ(s.traced, s.noted) << scope << in_scope << " of " << a << s.text;
      }
}

// What stands where a product adds to in place counts as finite behind it, and as what it is where it is not.
TEST(Scaling, SumsOfProductsInPlaceAreRescaled) {
  std::string body =
      "mov.b32 %r0, 0x3F803F80; mov.b32 %f1, 0f3F000000; mov.b32 %f2, %a; mov.b32 %f3, 0;\n"
      "mov.b32 %f4, %a; mov.b32 %f5, 0; mov.b32 %f6, 0; mov.b32 %f7, 0; mov.b32 %f0, %a;\n";
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) body += fmt::format("mul.f32 %f{0}, %f{0}, %b;\n", i);
    for (int i = 0; i < 8; i += 4)
      body += fmt::format(
          "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f{0}, %f{1}, %f{2}, %f{3}}}, {{%r0, %r0}}, "
          "{{%r0}}, {{%f{0}, %f{1}, %f{2}, %f{3}}};\n",
          i, i + 1, i + 2, i + 3);
  }
  body += "add.rn.f32 %d, %f0, %f7;";
  for (const float a : {1.0f, 3e38f, -3e37f, INFINITY, NAN})
    for (const float b : {0.0f, 0.5f, 2.0f, 20.0f, INFINITY}) {
      const TracedAndNoted s = of_body(body, std::vector(32, a), std::vector(32, b));
      EXPECT_TRUE(s.same_outputs && s.same_trap);
      EXPECT_EQ(s.traced, s.noted) << a << ", " << b << s.text;
    }
}

// What was not finite there, and is overwritten by what is: the next sum is born.
TEST(Scaling, SumsOfProductsInPlaceMayBeginAgain) {
  const auto multiplied = [](int i) {
    return fmt::format(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f{0}, %f{1}, %f{2}, %f{3}}}, {{%r0, %r0}}, "
        "{{%r0}}, {{%f{0}, %f{1}, %f{2}, %f{3}}};\n",
        i, i + 1, i + 2, i + 3);
  };
  std::string body = "mov.b32 %r0, 0x7F007F00; .reg .f32 %y<8>;\n";
  for (int i = 0; i < 8; ++i) body += fmt::format("mov.b32 %f{0}, 0; mov.b32 %y{0}, %a;\n", i);
  body += multiplied(0) + multiplied(4) + "add.rn.f32 %f10, %f0, %f5;\n";
  for (int i = 0; i < 8; ++i) body += fmt::format("mul.f32 %f{0}, %y{0}, %b;\n", i);
  body += multiplied(0) + multiplied(4) + "add.rn.f32 %d, %f0, %f7;";
  const TracedAndNoted s = of_body(body, std::vector(32, 1.0f), std::vector(32, 2.0f));
  EXPECT_TRUE(s.same_outputs && s.same_trap);
  EXPECT_EQ(s.traced, s.noted) << s.text;
  EXPECT_EQ(s.traced.size(), 4u);
}

}  // namespace scaling_test
}  // namespace assay::watch
