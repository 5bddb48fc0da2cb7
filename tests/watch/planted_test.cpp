// Births planted in kernels: one instruction changed, or inputs; all are noted at their line.
#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "src/base/ptx/program.h"
#include "src/case/case.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace planted_test {

using Lines = std::map<std::string, std::pair<bool, bool>>;

/// Takes the place of an instruction that makes %D, an f32; the birth is in `born`.
struct Plant {
  const char* kind;
  const char* text;
  const char* born;
  bool nan;
};
constexpr Plant kPlants[] = {
    {"overflow in exp", "ex2.approx.ftz.f32 %D, 0f43160000;", "ex2.approx.ftz.f32", false},
    {"0 x inf", "mul.rn.f32 %D, 0f00000000, 0f7F800000;", "mul.rn.f32", true},
    {"inf - inf", "sub.rn.f32 %D, 0f7F800000, 0f7F800000;", "sub.rn.f32", true},
    {"overflow in a sum", "add.rn.f32 %D, 0f7F7FFFFF, 0f7F7FFFFF;", "add.rn.f32", false},
    {"overflow in a product", "mul.rn.f32 %D, 0f7F000000, 0fC0800000;", "mul.rn.f32", false},
    {"overflow in a fused product", "fma.rn.f32 %D, 0f7F000000, 0f40000000, 0f00000000;", "fma.rn.f32",
     false},
    {"division by zero", "div.rn.f32 %D, 0f3F800000, 0f00000000;", "div.rn.f32", false},
    {"0 / 0", "div.full.f32 %D, 0f00000000, 0f00000000;", "div.full.f32", true},
    {"reciprocal of zero", "rcp.approx.ftz.f32 %D, 0f00000000;", "rcp.approx.ftz.f32", false},
    {"rsqrt of a negative", "rsqrt.approx.f32 %D, 0fBF800000;", "rsqrt.approx.f32", true},
    {"rsqrt of zero", "rsqrt.approx.f32 %D, 0f00000000;", "rsqrt.approx.f32", false},
    {"sqrt of a negative", "sqrt.rn.f32 %D, 0fBF800000;", "sqrt.rn.f32", true},
    {"logarithm of zero", "lg2.approx.f32 %D, 0f00000000;", "lg2.approx.f32", false},
    {"logarithm of a negative", "lg2.approx.f32 %D, 0fC0000000;", "lg2.approx.f32", true},
    {"sine of infinity", "sin.approx.f32 %D, 0f7F800000;", "sin.approx.f32", true},
    {"conversion to fp16",
     "{ .reg .f32 %pf; .reg .b16 %ph; mov.f32 %pf, 0f49742400; cvt.rn.f16.f32 %ph, %pf; cvt.f32.f16 %D, %ph; "
     "}",
     "cvt.rn.f16.f32", false},
    {"conversion to bf16",
     "{ .reg .f32 %pf; .reg .b16 %ph; mov.f32 %pf, 0f7F7FFFFF; cvt.rn.bf16.f32 %ph, %pf; mov.b32 %D, {%ph, "
     "%ph}; }",
     "cvt.rn.bf16.f32", false},
    {"conversion to two fp16",
     "{ .reg .f32 %pf; .reg .b32 %pr; mov.f32 %pf, 0f49742400; cvt.rn.f16x2.f32 %pr, %pf, 0f3F800000; "
     "mov.b32 %D, %pr; }",
     "cvt.rn.f16x2.f32", false},
    {"conversion of a double", "{ .reg .f64 %pd; mov.f64 %pd, 0d7E37E43C8800759C; cvt.rn.f32.f64 %D, %pd; }",
     "cvt.rn.f32.f64", false},
    {"overflow in two fp16",
     "{ .reg .b32 %pr; mov.b32 %pr, 0x7bff3c00; fma.rn.f16x2 %pr, %pr, %pr, %pr; mov.b32 %D, %pr; }",
     "fma.rn.f16x2", false},
};

/// The text with `plant` in place of the instruction; empty where that does not make one f32.
std::string planted(const std::string& text, const ptx::Function& f, size_t i, const std::string& plant) {
  const ptx::Instruction& in = f.body[i];
  using ptx::Operation;
  const Operation o = in.form.operation;
  if ((o != Operation::mul && o != Operation::fma && o != Operation::add) ||
      in.form.type() != ptx::Type::f32 || in.predicate >= 0)
    return "";
  size_t begin = 0;
  for (int line = 1; line < in.ptx_line; ++line) begin = text.find('\n', begin) + 1;
  begin += static_cast<size_t>(in.ptx_column - 1);
  std::string made = plant;
  for (size_t at; (at = made.find("%D")) != made.npos;)
    made.replace(at, 2, f.registers[static_cast<size_t>(in.operands[0].reg)].name);
  return text.substr(0, begin) + made + text.substr(text.find(';', begin) + 1);
}

struct Found {
  bool same = false, planted = false;
  std::string differing;
};

/// With the plant at an instruction of the first launch's entry that runs: tried from `share` of the way on.
Found find(const Program& program, const TensorMap& inputs, const Plant& plant, double share) {
  const std::string& text = *program.modules[0].ptx;
  const ptx::Module module = ptx::parse(text, "k");
  for (const ptx::Function& f : module.functions) {
    if (f.name != program.launches[0].function) continue;
    int tries = 0;
    for (auto i = static_cast<size_t>(share * static_cast<double>(f.body.size()));
         i < f.body.size() && tries < 12; ++i) {
      const std::string changed = planted(text, f, i, plant.text);
      if (changed.empty()) continue;
      ++tries;
      Program with = program;
      with.modules[0].ptx = std::make_shared<std::string>(changed);
      const TracedAndNoted made = traced_and_noted(with, inputs);
      const bool ran = std::any_of(made.traced.begin(), made.traced.end(), [&](const auto& line) {
        return line.first.ends_with(std::string(" ") + plant.born) &&
               (plant.nan ? line.second.first : line.second.second);
      });
      if (!ran) {
        i += f.body.size() / 40;
        continue;
      }
      Found found{made.traced == made.noted && made.same_outputs && made.same_trap, true, ""};
      if (!found.same)
        for (const auto& [line, born] : made.traced)
          if (const auto at = made.noted.find(line); at == made.noted.end() || at->second != born)
            found.differing += line + "; ";
      return found;
    }
  }
  return {};
}

TEST(Planted, TwentyKindsAreNotedAtTheirLineInEightKernels) {
  static constexpr const char* kKernels[] = {
      "gla.chunk",  "gla.fused_recurrent", "simple_gla.chunk",      "rwkv6.chunk",
      "hgrn.chunk", "short_conv.fused",    "rwkv7.fused_recurrent", "linear_attn.chunk"};
  std::map<std::string, std::pair<Program, TensorMap>> made;
  for (size_t k = 0; k < std::size(kKernels); ++k) {
    Case c;
    c.kernel = kKernels[k];
    c.B = 1, c.T = 40, c.H = 1, c.K = 16, c.V = 16, c.dtype = Dtype::bf16;
    const Kernel& kernel = find_kernel(c.kernel);
    const Operator& op = find_operator(kernel.operator_name);
    if (c.kernel == "hgrn.chunk" || c.kernel == "short_conv.fused") c.K = 1;
    const ResolvedCase resolved = resolve_unchecked(c, op);
    TensorMap inputs = draw_inputs(resolved);
    Program program = program_of(kernel, resolved, inputs);
    made[c.kernel] = {std::move(program), std::move(inputs)};
  }
  for (size_t p = 0; p < std::size(kPlants); ++p)
    for (const size_t k : {p % 8, (3 * p + 1) % 8}) {
      const auto& [program, inputs] = made.at(kKernels[k]);
      const Found found = find(program, inputs, kPlants[p], p % 2 ? 0.5 : 0.2);
      EXPECT_TRUE(found.planted) << kPlants[p].kind << " in " << kKernels[k];
      EXPECT_TRUE(found.same) << kPlants[p].kind << " in " << kKernels[k] << ": " << found.differing;
    }
}

TEST(Planted, TheHistoricNanOfRwkv6IsNotedAtItsLine) {
  const Case c =
      parse_token("rwkv6.chunk@S2b/B1/T9/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/w@0,0,0,0=-128");
  const Kernel& kernel = find_kernel(c.kernel);
  const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
  const TensorMap inputs = draw_inputs(resolved);
  const TracedAndNoted made = traced_and_noted(program_of(kernel, resolved, inputs), inputs);
  EXPECT_EQ(made.traced, made.noted);
  bool infinity = false, nan = false;
  for (const auto& [line, born] : made.noted) {
    infinity |= line.starts_with("kernels/channel/chunk_scores.cuh:198 ") && born.second;
    nan |= born.first;
  }
  EXPECT_TRUE(infinity && nan);
}

}  // namespace planted_test
}  // namespace assay::watch
