#include "tools/watch/plants.h"

#include <algorithm>

#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "src/base/ptx/program.h"
#include "src/base/vm/matrix_form.h"
#include "src/case/case.h"

namespace assay::watch {
namespace {

using Into = Plant::Into;

constexpr Plant kPlants[] = {
    {"overflow in exp", Into::float_result, "ex2.approx.ftz.f32 %D, 0f43160000;", "ex2.approx.ftz.f32",
     false},
    {"0 x inf", Into::float_result, "mul.rn.f32 %D, 0f00000000, 0f7F800000;", "mul.rn.f32", true},
    {"inf - inf", Into::float_result, "sub.rn.f32 %D, 0f7F800000, 0f7F800000;", "sub.rn.f32", true},
    {"overflow in a sum", Into::float_result, "add.rn.f32 %D, 0f7F7FFFFF, 0f7F7FFFFF;", "add.rn.f32", false},
    {"overflow in a product", Into::float_result, "mul.rn.f32 %D, 0f7F000000, 0fC0800000;", "mul.rn.f32",
     false},
    {"overflow in a fused product", Into::float_result, "fma.rn.f32 %D, 0f7F000000, 0f40000000, 0f00000000;",
     "fma.rn.f32", false},
    {"division by zero", Into::float_result, "div.rn.f32 %D, 0f3F800000, 0f00000000;", "div.rn.f32", false},
    {"0 / 0", Into::float_result, "div.full.f32 %D, 0f00000000, 0f00000000;", "div.full.f32", true},
    {"reciprocal of zero", Into::float_result, "rcp.approx.ftz.f32 %D, 0f00000000;", "rcp.approx.ftz.f32",
     false},
    {"rsqrt of a negative", Into::float_result, "rsqrt.approx.f32 %D, 0fBF800000;", "rsqrt.approx.f32", true},
    {"rsqrt of zero", Into::float_result, "rsqrt.approx.f32 %D, 0f00000000;", "rsqrt.approx.f32", false},
    {"sqrt of a negative", Into::float_result, "sqrt.rn.f32 %D, 0fBF800000;", "sqrt.rn.f32", true},
    {"logarithm of zero", Into::float_result, "lg2.approx.f32 %D, 0f00000000;", "lg2.approx.f32", false},
    {"logarithm of a negative", Into::float_result, "lg2.approx.f32 %D, 0fC0000000;", "lg2.approx.f32", true},
    {"sine of infinity", Into::float_result, "sin.approx.f32 %D, 0f7F800000;", "sin.approx.f32", true},
    {"conversion to fp16", Into::float_result,
     "{ .reg .f32 %pf; .reg .b16 %ph; mov.f32 %pf, 0f49742400; cvt.rn.f16.f32 %ph, %pf; cvt.f32.f16 %D, %ph; "
     "}",
     "cvt.rn.f16.f32", false},
    {"conversion to bf16", Into::float_result,
     "{ .reg .f32 %pf; .reg .b16 %ph; mov.f32 %pf, 0f7F7FFFFF; cvt.rn.bf16.f32 %ph, %pf; mov.b32 %D, {%ph, "
     "%ph}; }",
     "cvt.rn.bf16.f32", false},
    {"conversion to two fp16", Into::float_result,
     "{ .reg .f32 %pf; .reg .b32 %pr; mov.f32 %pf, 0f49742400; cvt.rn.f16x2.f32 %pr, %pf, 0f3F800000; "
     "mov.b32 %D, %pr; }",
     "cvt.rn.f16x2.f32", false},
    {"conversion of a double", Into::float_result,
     "{ .reg .f64 %pd; mov.f64 %pd, 0d7E37E43C8800759C; cvt.rn.f32.f64 %D, %pd; }", "cvt.rn.f32.f64", false},
    {"overflow in two fp16", Into::float_result,
     "{ .reg .b32 %pr; mov.b32 %pr, 0x7bff3c00; fma.rn.f16x2 %pr, %pr, %pr, %pr; mov.b32 %D, %pr; }",
     "fma.rn.f16x2", false},
    {"sums of a tensor core", Into::product, "", "mma.sync", false},
    {"sums of a warpgroup", Into::inputs, "", "wgmma.mma_async", false},
};

constexpr const char* kKernels[] = {
    "gla.chunk",  "gla.fused_recurrent", "simple_gla.chunk_hopper", "rwkv6.chunk",
    "hgrn.chunk", "short_conv.fused",    "rwkv7.fused_recurrent",   "linear_attn.chunk_hopper"};

/// The program of a case, and its inputs.
PlantedProgram program_of_case(const Case& c) {
  const Kernel& kernel = find_kernel(c.kernel);
  const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
  PlantedProgram made;
  made.inputs = draw_inputs(resolved);
  made.program = program_of(kernel, resolved, made.inputs);
  return made;
}

/// Where an instruction begins in the text.
size_t place_of(const std::string& text, const ptx::Instruction& in) {
  size_t begin = 0;
  for (int line = 1; line < in.ptx_line; ++line) begin = text.find('\n', begin) + 1;
  return begin + static_cast<size_t>(in.ptx_column - 1);
}

/// What makes an f32, with the plant in its place; empty where the instruction does not.
std::string with_other_result(const std::string& text, const ptx::Function& f, const ptx::Instruction& in,
                              const Plant& plant) {
  using ptx::Operation;
  const Operation o = in.form.operation;
  if ((o != Operation::mul && o != Operation::fma && o != Operation::add) ||
      in.form.type() != ptx::Type::f32 || in.predicate >= 0)
    return "";
  std::string made = plant.text;
  for (size_t at; (at = made.find("%D")) != made.npos;)
    made.replace(at, 2, f.registers[static_cast<size_t>(in.operands[0].reg)].name);
  const size_t begin = place_of(text, in);
  return text.substr(0, begin) + made + text.substr(text.find(';', begin) + 1);
}

/// An mma.sync of bf16 or tf32, with the largest bf16 in all of A and B: 7F7F is that, and 7F7F7F7F as large
/// a tf32. Empty where the instruction is another.
std::string with_largest_factors(const std::string& text, const ptx::Instruction& in) {
  const std::vector<vm::Element> elements = vm::elements_of(in);
  const bool fits = in.form.operation == ptx::Operation::mma && in.predicate < 0 && elements.size() == 4 &&
                    (elements[1] == vm::Element::bf16 || elements[1] == vm::Element::tf32);
  if (!fits) return "";
  const size_t begin = place_of(text, in), end = text.find(';', begin) + 1;
  std::string made;
  int fragment = 0;  // {D}, {A}, {B}, {C}
  for (size_t i = begin; i < end; ++i) {
    if (text[i] == '{') ++fragment;
    const bool of_factor = text[i] == '%' && (fragment == 2 || fragment == 3);
    if (!of_factor) {
      made += text[i];
      continue;
    }
    made += "%plant";
    i = text.find_first_of(",} ", i) - 1;
  }
  return text.substr(0, begin) + "{ .reg .b32 %plant; mov.b32 %plant, 0x7F7F7F7F; " + made + " }" +
         text.substr(end);
}

bool is_born(const BirthLines& lines, const Plant& plant) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
    const std::string opcode = line.first.substr(line.first.find(' ') + 1);
    const bool same =
        plant.into == Into::float_result ? opcode == plant.born : opcode.starts_with(plant.born);
    return same && (plant.nan ? line.second.first : line.second.second);
  });
}

/// Key and value of one token: their products overflow where a warpgroup sums them.
void make_largest(TensorMap& inputs) {
  for (const char* name : {"k", "v"}) {
    Tensor& tensor = inputs.at(name);
    const int64_t token = tensor.size() / tensor.axes[1].size / tensor.axes[0].size;
    for (int64_t i = 3 * token; i < 4 * token; ++i) tensor.set_bits(i, 0x7F7F);
  }
}

/// Tried from `share` of the way through the first launch's entry on.
bool plant_in_text(PlantedProgram& made, const Plant& plant, double share) {
  const std::string text = *made.program.modules[0].ptx;
  const ptx::Module module = ptx::parse(text, "k");
  const auto entry =
      std::find_if(module.functions.begin(), module.functions.end(),
                   [&](const ptx::Function& f) { return f.name == made.program.launches[0].function; });
  const size_t count = entry->body.size();
  int tries = 0;
  for (auto i = static_cast<size_t>(share * static_cast<double>(count)); i < count && tries < 12; ++i) {
    const ptx::Instruction& in = entry->body[i];
    const std::string changed = plant.into == Into::product ? with_largest_factors(text, in)
                                                            : with_other_result(text, *entry, in, plant);
    if (changed.empty()) continue;
    ++tries;
    made.program.modules[0].ptx = std::make_shared<std::string>(changed);
    made.traced = traced_lines(made.program, made.inputs, {});
    if (is_born(made.traced, plant)) return true;
    i += count / 40;
  }
  return false;
}

}  // namespace

std::span<const Plant> plants() {
  return kPlants;
}

std::vector<PlantedCase> planted_cases() {
  std::vector<PlantedCase> made;
  for (size_t p = 0; p < std::size(kPlants); ++p) {
    const Plant& plant = kPlants[p];
    const double share = p % 2 ? 0.5 : 0.2;
    if (plant.into == Into::product)
      for (const char* kernel : {"gla.chunk", "rwkv6.chunk"}) made.push_back({&plant, kernel, 0});
    else if (plant.into == Into::inputs)
      for (const char* kernel : {"simple_gla.chunk_hopper", "linear_attn.chunk_hopper"})
        made.push_back({&plant, kernel, 0});
    else
      for (const size_t k : {p % 8, (3 * p + 1) % 8}) made.push_back({&plant, kKernels[k], share});
  }
  return made;
}

std::optional<PlantedProgram> planted(const PlantedCase& planted_case) {
  Case c;
  c.kernel = planted_case.kernel;
  c.B = 1, c.T = 40, c.H = 1, c.K = 16, c.V = 16, c.dtype = Dtype::bf16;
  if (c.kernel == "hgrn.chunk" || c.kernel == "short_conv.fused") c.K = 1;
  PlantedProgram made = program_of_case(c);
  const Plant& plant = *planted_case.plant;
  if (plant.into != Into::inputs) {
    if (!plant_in_text(made, plant, planted_case.share)) return std::nullopt;
    return made;
  }
  make_largest(made.inputs);
  made.traced = traced_lines(made.program, made.inputs, {});
  return is_born(made.traced, plant) ? std::optional(std::move(made)) : std::nullopt;
}

PlantedProgram historic_nan() {
  PlantedProgram made = program_of_case(
      parse_token("rwkv6.chunk@S2b/B1/T9/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/w@0,0,0,0=-128"));
  made.traced = traced_lines(made.program, made.inputs, {});
  return made;
}

}  // namespace assay::watch
