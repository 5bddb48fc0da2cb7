#include "kernels/proposed_arithmetic.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

ptx::Module module_of(const std::string& body) {
  return ptx::parse_functions(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b16 %h<3>; .reg .f64 %d<4>;
.loc 1 17 3
)" + body + R"(
ret;
}
.file 1 "/somewhere/chunk.py"
)",
                              "k.ptx");
}

constexpr const char* kProduct =
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, "
    "{%r5, %r6}, {%f5, %f6, %f7, %f8};";

TEST(ProposedArithmetic, nothing_but_what_rounds_is_a_place) {
  struct Row {
    const char *text, *of;  // "": no place
  };
  const Row rows[] = {
      {kProduct, "products of matrices of bf16, summed in f32"},
      {"cvt.rn.bf16x2.f32 %r1, %f1, %f2;", "rounded to bf16"},
      {"cvt.rn.f16.f32 %h1, %f1;", "rounded to fp16"},
      {"cvt.rna.tf32.f32 %r1, %f1;", "rounded to tf32"},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", "rounded to 8 bits"},
      {"cvt.rn.f16x2.e4m3x2 %r1, %h1;", ""},
      {"cvt.f32.bf16 %f1, %h1;", ""},
      {"cvt.rni.f16.f16 %h1, %h2;", ""},
      {"cvt.rn.f32.s32 %f1, %r1;", ""},
      {"ex2.approx.ftz.f32 %f1, %f2;", "an exponential, 2 ulp"},
      {"div.full.f32 %f1, %f2, %f3;", "a quotient"},
      {"div.s32 %r1, %r2, %r3;", ""},
      {"div.rn.f64 %d1, %d2, %d3;", ""},
      {"rcp.approx.ftz.f32 %f1, %f2;", "a quotient"},
      {"shfl.sync.up.b32 %r1, %r2, 1, 0, -1;",
       "a sum over tokens, by shuffles between lanes: decays, or a gate's gradient, are differences of such "
       "sums"},
      {"shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", ""},
      {"fma.rn.f32 %f1, %f2, %f3, %f4;", ""},
  };
  for (const Row& row : rows) {
    const ProposedArithmetic p = propose_arithmetic({module_of(row.text)}, "", {});
    ASSERT_EQ(p.places.size(), *row.of ? 1u : 0u) << row.text;
    if (p.places.empty()) continue;
    EXPECT_EQ(p.places[0].of, row.of);
    EXPECT_EQ(p.places[0].line, "chunk.py:17");
    EXPECT_EQ(p.places[0].kernel, "k");
  }
}

TEST(ProposedArithmetic, places_of_one_line_are_counted_and_those_of_one_text_loaded_twice_are_not) {
  const ptx::Module twice = module_of("ex2.approx.f32 %f1, %f2;\nex2.approx.f32 %f3, %f4;");
  const ProposedArithmetic p = propose_arithmetic({twice, twice}, "gla", {});
  ASSERT_EQ(p.places.size(), 1u);
  EXPECT_EQ(p.places[0].count, 2);
}

TEST(ProposedArithmetic, the_operator_and_whether_matrices_are_multiplied_choose_the_preset) {
  const auto proposed = [](const char* op, const char* text) {
    return propose_arithmetic({module_of(text)}, op, {}).arithmetic;
  };
  for (const auto& [op, preset] : {std::pair{"gla", "triton-chunk"},
                                   {"rwkv6", "triton-chunk"},
                                   {"delta_rule", "triton-delta-chunk"},
                                   {"kda", "triton-kda-chunk"},
                                   {"gsa", "triton-gsa-chunk"}})
    EXPECT_EQ(proposed(op, kProduct), preset) << op;
  EXPECT_EQ(proposed("gla", "").at("preset"), "fp32-recurrent");
  EXPECT_FALSE(proposed("gla", "").contains("removal"));
  EXPECT_EQ(proposed("kda", "").at("removal"), "(K + 3) * 2^-24");
  for (const char* op : {"gsa", "hgrn", ""}) EXPECT_TRUE(proposed(op, "").is_null()) << op;
  EXPECT_NE(
      text_of(propose_arithmetic({module_of(kProduct)}, "gla", {}))
          .find("\"arithmetic\": \"triton-chunk\", since matrices of bf16 are multiplied at chunk.py:17"),
      std::string::npos);
}

TEST(ProposedArithmetic, what_is_proposed_is_not_too_loose_and_what_never_happens_is) {
  using nlohmann::json;
  struct Row {
    const char* text;
    json declared;
    const char* looser;  // "": it is not
  };
  const Row rows[] = {
      {"", "triton-chunk", "no launch multiplies matrices"},
      {kProduct, "triton-chunk", ""},
      {"", "fp32-recurrent", ""},
      {"", json{{"preset", "fp32-recurrent"}, {"divide", "2^-22"}}, "nothing divides"},
      {"div.full.f32 %f1, %f2, %f3;", json{{"preset", "fp32-recurrent"}, {"divide", "2^-22"}}, ""},
      {"", json{{"preset", "fp32-recurrent"}, {"prefix_per_nat", "70 * 2^-24"}}, "by shuffles"},
  };
  for (const Row& row : rows) {
    const std::string looser = propose_arithmetic({module_of(row.text)}, "gla", row.declared).looser;
    EXPECT_EQ(looser.empty(), *row.looser == 0) << row.declared << looser;
    EXPECT_NE(looser.find(row.looser), std::string::npos) << looser;
  }
}

TEST(ProposedArithmetic, a_misspelt_declaration_and_a_body_that_cannot_be_read_are_bad_input) {
  using nlohmann::json;
  const auto said = [](const std::vector<ptx::Module>& modules, const json& declared) -> std::string {
    try {
      propose_arithmetic(modules, "gla", declared);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(said({module_of("")}, "triton-chnk").find("no arithmetic preset is called \"triton-chnk\""),
            std::string::npos);
  EXPECT_NE(
      said({module_of("")}, json{{"preset", "fp32-recurrent"}, {"divid", 1}}).find("unknown field \"divid\""),
      std::string::npos);
  EXPECT_NE(said({module_of("mov.b32 %r1, %nowhere;")}, {}).find("k.ptx:"), std::string::npos);
}

}  // namespace
}  // namespace assay
