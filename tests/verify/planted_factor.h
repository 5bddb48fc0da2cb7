// Programs with a fault of their formula planted: an output, or one term of what it is made of, is 1 + delta
// times what it was.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"

namespace assay {

/// Elements of a tensor in place, each times a factor: a launch after all others.
inline Module factor_module(Dtype dtype) {
  const bool wide = dtype == Dtype::fp32;
  const std::string load = wide                   ? "ld.global.f32 %f1, [%rd4];"
                           : dtype == Dtype::fp16 ? "ld.global.u16 %h1, [%rd4]; cvt.f32.f16 %f1, %h1;"
                                                  : "ld.global.u16 %h1, [%rd4]; mov.b32 %f1, {%h2, %h1};",
                    store = wide                   ? "st.global.f32 [%rd4], %f1;"
                            : dtype == Dtype::fp16 ? "cvt.rn.f16.f32 %h1, %f1; st.global.u16 [%rd4], %h1;"
                                                   : "cvt.rn.bf16.f32 %h1, %f1; st.global.u16 [%rd4], %h1;";
  const std::string text = fmt::format(R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry scale_elements(.param .u64 to, .param .u32 first, .param .u32 end, .param .f32 factor) {{
.reg .pred %p; .reg .b16 %h<3>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %rd<5>;
ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [first]; ld.param.u32 %r2, [end]; ld.param.f32 %f2, [factor];
mov.u16 %h2, 0; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r3, 128, %r4; add.s32 %r5, %r5, %r1;
setp.ge.u32 %p, %r5, %r2;
@%p ret;
cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r5, {}; add.s64 %rd4, %rd2, %rd3;
{}
mul.rn.f32 %f1, %f1, %f2;
{}
ret;
}}
)",
                                       wide ? 4 : 2, load, store);
  return {fmt::format("scale_elements.{}", format(dtype).name), "scale_elements.ptx",
          std::make_shared<const std::string>(text)};
}

/// `factor` times the elements first .. end - 1 of an output.
inline Program with_scaled_output(Program program, const std::string& output, int64_t first, int64_t end,
                                  float factor) {
  for (const ProgramOutput& o : program.outputs) {
    if (o.name != output || first >= end) continue;
    const Module module = factor_module(o.dtype);
    program.modules.push_back(module);
    Launch launch{.module = module.name, .function = "scale_elements"};
    launch.grid = {static_cast<uint32_t>((end - first + 127) / 128), 1, 1}, launch.block = {128, 1, 1};
    launch.arguments = {PointerArgument{output, 0}, static_cast<uint32_t>(first), static_cast<uint32_t>(end),
                        Argument::rounded(factor)};
    program.launches.push_back(std::move(launch));
  }
  return program;
}

/// An instruction whose fp32 results can be scaled behind it.
struct Term {
  size_t module = 0;  ///< of Program::modules
  int32_t ptx_line = 0;
  std::vector<std::string> registers;
  std::string where;  ///< "fma.rn.f32 at kernels/gla/chunk.cu:12"
};

namespace planted_factor {

inline bool makes_terms(const ptx::Instruction& i) {
  for (const char* start :
       {"fma.rn", "mul.rn", "mul.f32", "add.rn", "add.f32", "sub.f32", "sub.rn", "mma.sync"})
    if (i.opcode.starts_with(start)) return i.predicate < 0 && !i.operands.empty();
  return false;
}
inline std::vector<std::string> float_results(const ptx::Function& function, const ptx::Instruction& i) {
  std::vector<std::string> names;
  const ptx::Operand& result = i.operands.front();
  const std::vector<ptx::Operand> one{result};
  for (const ptx::Operand& o : result.elements.empty() ? one : result.elements)
    if (o.kind == ptx::Operand::Kind::reg && o.reg >= 0) {
      const ptx::Register& r = function.registers[static_cast<size_t>(o.reg)];
      if (r.type == ptx::Type::f32) names.push_back(r.name);
    }
  return names;
}

}  // namespace planted_factor

/// Of the functions that the program launches, one per source line and opcode.
inline std::vector<Term> terms_of(const Program& program) {
  std::vector<Term> terms;
  for (size_t m = 0; m < program.modules.size(); ++m) {
    const ptx::Module module = ptx::parse(*program.modules[m].ptx, program.modules[m].path);
    for (const ptx::Function& function : module.functions) {
      bool launched = false;
      for (const Launch& launch : program.launches)
        launched = launched || (launch.module == program.modules[m].name && launch.function == function.name);
      for (const ptx::Instruction& i : function.body) {
        if (!launched || !planted_factor::makes_terms(i)) continue;
        const ptx::Line* const line = i.line >= 0 ? &module.lines[static_cast<size_t>(i.line)] : nullptr;
        Term term{m, i.ptx_line, planted_factor::float_results(function, i), ""};
        const bool placed = line && line->file >= 0;
        term.where = fmt::format("{} of {} at {}:{}", i.opcode, function.name,
                                 placed ? module.files[static_cast<size_t>(line->file)] : "line",
                                 placed ? line->line : i.ptx_line);
        bool seen = term.registers.empty();
        for (const Term& t : terms) seen = seen || t.where == term.where;
        if (!seen) terms.push_back(std::move(term));
      }
    }
  }
  return terms;
}

/// The results of that instruction, times `factor`.
inline Program with_scaled_term(Program program, const Term& term, float factor) {
  Module& module = program.modules[term.module];
  std::string text = *module.ptx;
  size_t begin = 0;
  for (int32_t line = 1; line < term.ptx_line; ++line) begin = text.find('\n', begin) + 1;
  const size_t end = text.find(';', begin) + 1;
  std::string products;
  for (const std::string& r : term.registers)
    products += fmt::format(" mul.rn.f32 {0}, {0}, 0f{1:08X};", r, std::bit_cast<uint32_t>(factor));
  module.ptx = std::make_shared<const std::string>(text.insert(end, products));
  return program;
}

}  // namespace assay
