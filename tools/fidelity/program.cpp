#include "tools/fidelity/program.h"

#include <fmt/format.h>

#include <cstring>

#include "src/base/ptx/type.h"
#include "tools/fidelity/operand_table.h"

namespace assay::fidelity {
namespace {

using ptx::Type;

enum class Width { half, word, wide, predicate };

Width width_of(Type type) {
  if (type == Type::pred) return Width::predicate;
  switch (ptx::bytes_of(type)) {
    case 2:
      return Width::half;
    case 8:
      return Width::wide;
    default:
      return Width::word;  // 8-bit values live in wider registers
  }
}

const char* register_type(Type type) {
  switch (width_of(type)) {
    case Width::half:
      return ".b16";
    case Width::wide:
      return ".b64";
    case Width::predicate:
      return ".pred";
    default:
      return ".b32";
  }
}

constexpr int64_t bytes_per_operand = table_entries * static_cast<int64_t>(sizeof(Template));

/// The text that fills %a<index>.
std::string draw(const DrawnOperand& operand, size_t index) {
  const std::string a = fmt::format("%a{}", index);
  const Width width = width_of(operand.type);
  if (operand.draw == Draw::counter)
    return width == Width::half ? fmt::format("cvt.u16.u32 {}, %i;\n", a)
                                : fmt::format("mov.b32 {}, %i;\n", a);
  const bool uniform = operand.draw == Draw::uniform;
  // A multiplicative hash with two xor-shifts: enough to spread a counter over bit patterns.
  std::string text = fmt::format("mad.lo.u32 %h, {}, 0x9e3779b1, {};\n", uniform ? "%u" : "%i",
                                 0x2c1b3c6du * (2 * index + 1));
  text +=
      "shr.u32 %x, %h, 16;\nxor.b32 %h, %h, %x;\nmul.lo.u32 %h, %h, 0x85ebca6b;\n"
      "shr.u32 %x, %h, 13;\nxor.b32 %h, %h, %x;\n";
  if (width == Width::predicate)
    return text + fmt::format("and.b32 %x, %h, 0x400;\nsetp.ne.u32 {}, %x, 0;\n", a);
  if (operand.draw == Draw::theme)
    text += fmt::format(
        "shr.u32 %x, %ptheme, {};\nand.b32 %x, %x, 15;\nshl.b32 %x, %x, 2;\n"
        "shr.u32 %y, %h, 29;\nand.b32 %y, %y, 3;\nadd.u32 %x, %x, %y;\n",
        4 * operand.group + 8);
  else
    text += fmt::format("shr.u32 %x, {}, {};\nand.b32 %x, %x, 63;\n", uniform ? "%pu" : "%pi",
                        6 * (operand.group % 5));
  text += fmt::format("mad.wide.u32 %at, %x, 16, %table;\nadd.s64 %at, %at, {};\n",
                      bytes_per_operand * static_cast<int64_t>(index));
  if (width == Width::wide)
    return text + fmt::format(
                      "mul.lo.u32 %y, %h, 0xc2b2ae35;\nshr.u32 %x, %y, 15;\nxor.b32 %y, %y, %x;\n"
                      "mov.b64 %w, {{%h, %y}};\nld.global.v2.b64 {{%keep, %set}}, [%at];\n"
                      "and.b64 %w, %w, %keep;\nor.b64 {}, %w, %set;\n",
                      a);
  text += "ld.global.b32 %x, [%at];\nld.global.b32 %y, [%at + 8];\nand.b32 %h, %h, %x;\n";
  return text + (width == Width::half ? fmt::format("or.b32 %h, %h, %y;\ncvt.u16.u32 {}, %h;\n", a)
                                      : fmt::format("or.b32 {}, %h, %y;\n", a));
}

/// Multiplies the digest by an odd number and adds (xor) a register.
std::string fold_in(const std::string& name, Type type, bool wide) {
  std::string text, word = name;
  const Width width = width_of(type);
  // Packed, not converted: after set.<cmp>.f16.f16 and .bf16.bf16 ptxas 13.0 compiles cvt.u32.u16 to a PRMT
  // that keeps the old upper half of %x (seen in the SASS for sm_90, and on an H200 once the loop is
  // unrolled).
  if (width == Width::half) text += fmt::format("mov.b32 %x, {{{}, %zero}};\n", name), word = "%x";
  if (width == Width::predicate) text += fmt::format("selp.b32 %x, 1, 0, {};\n", name), word = "%x";
  if (!wide) return text + fmt::format("mul.lo.u32 %acc, %acc, 0x01000193;\nxor.b32 %acc, %acc, {};\n", word);
  if (width != Width::wide) text += fmt::format("cvt.u64.u32 %w, {};\n", word), word = "%w";
  return text + fmt::format("mul.lo.u64 %acc, %acc, 0x100000001b3;\nxor.b64 %acc, %acc, {};\n", word);
}

std::string registers(const Form& form, bool wide) {
  std::string text =
      ".reg .b32 %t, %n, %i, %u, %k, %start, %ustart, %base, %stride, %to, %pi, %pu, %ptheme, %h, %x, %y, "
      "%lane, %step, %cell, %warpcells, %x0, %x1, %x2, %x3, %matrices;\n.reg .b32 %m<32>;\n.reg .b64 %mw<8>, "
      "%y1;\n"
      ".reg .b64 %out, %table, %memory, %at, %w, %keep, %set, %y0;\n.reg .pred %more, %p0;\n.reg .b16 "
      "%zero;\n";
  text += fmt::format(".reg {} %acc;\n", wide ? ".b64" : ".b32");
  for (size_t i = 0; i < form.operands.size(); ++i)
    text += fmt::format(".reg {} %a{};\n", register_type(form.operands[i].type), i);
  for (size_t i = 0; i < form.results.size(); ++i)
    text += fmt::format(".reg {} %d{};\n", register_type(form.results[i]), i);
  return text;
}

bool mentions(const Form& form, const char* name) {
  return form.body.find(name) != std::string::npos;
}

std::string prologue(const Form& form) {
  std::string text =
      "ld.param.u64 %out, [out]; ld.param.u64 %table, [table]; ld.param.u64 %memory, [memory];\n"
      "ld.param.u32 %base, [base]; ld.param.u32 %stride, [stride]; ld.param.u32 %k, [from]; "
      "ld.param.u32 %to, [to];\n"
      "mov.u32 %lane, %tid.x; mov.u32 %t, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %t, %t, %n, %lane;\n"
      "mad.lo.u32 %start, %t, %stride, %base;\n"
      "and.b32 %x, %t, " +
      fmt::format("{:#x}", ~(form.group - 1)) + "; mad.lo.u32 %ustart, %x, %stride, %base;\n";
  if (form.matrix_bytes) text += "mov.u32 %matrices, matrices;\n";
  if (mentions(form, "cell"))
    text +=
        "mov.u32 %warpcells, cells; shl.b32 %x, %lane, 4; add.u32 %cell, %warpcells, %x;\n"
        "and.b32 %x, %x, 0xfffffe00; add.u32 %warpcells, %warpcells, %x;\n";
  text += "mul.wide.u32 %at, %t, 16; add.s64 %memory, %memory, %at;\nand.b32 %lane, %lane, 31;\n";
  return text;
}

}  // namespace

bool stores_wide(const Form& form, int reveal) {
  if (reveal >= 0) return width_of(form.operands[static_cast<size_t>(reveal)].type) == Width::wide;
  for (const Type type : form.results)
    if (width_of(type) == Width::wide) return true;
  return false;
}

std::string program_text(const Form& form, int reveal) {
  const bool wide = stores_wide(form, reveal);
  std::string text = fmt::format(
      "// {}\n.version {}\n.target sm_90{}\n.address_size 64\n", form.name,
      mentions(form, "mma.sync") && (mentions(form, ".e4m3") || mentions(form, ".e5m2")) ? "8.7" : "8.6",
      mentions(form, "wgmma") ? "a" : "");
  text +=
      ".visible .entry check(.param .u64 out, .param .u64 table, .param .u64 memory, .param .u32 base, "
      ".param .u32 stride, .param .u32 from, .param .u32 to)\n{\n";
  text += registers(form, wide);
  if (form.matrix_bytes) text += fmt::format(".shared .align 1024 .b8 matrices[{}];\n", form.matrix_bytes);
  if (mentions(form, "cell")) text += fmt::format(".shared .align 16 .b8 cells[{}];\n", 16 * block_threads);
  text += prologue(form) + fmt::format("mov.b{} %acc, 0;\nmov.b16 %zero, 0;\nLOOP:\n", wide ? 64 : 32);
  text +=
      "add.u32 %i, %start, %k; add.u32 %u, %ustart, %k; mov.b32 %step, %u;\n"
      "mul.lo.u32 %pi, %i, 0x2545f491; mul.lo.u32 %pu, %u, 0x2545f491; mul.lo.u32 %ptheme, %u, 0x9e3779b1;\n";
  for (size_t i = 0; i < form.operands.size(); ++i) text += draw(form.operands[i], i);
  if (reveal < 0) {
    text += form.body + "\n";
    for (size_t i = 0; i < form.results.size(); ++i)
      text += fold_in(fmt::format("%d{}", i), form.results[i], wide);
  } else {
    text += fold_in(fmt::format("%a{}", reveal), form.operands[static_cast<size_t>(reveal)].type, wide);
  }
  text += "add.u32 %k, %k, 1; setp.lt.u32 %more, %k, %to;\n@%more bra LOOP;\n";
  text += fmt::format(
      "mul.wide.u32 %at, %t, {0}; add.s64 %at, %at, %out; st.global.b{1} [%at], %acc;\nret;\n}}\n",
      wide ? 8 : 4, wide ? 64 : 32);
  return text;
}

namespace {

Tensor tables_of(const Form& form) {
  const auto operands = static_cast<int64_t>(form.operands.size());
  Tensor tensor("table", Dtype::i64, {{"I", std::max<int64_t>(operands, 1) * table_entries * 2}});
  for (int64_t i = 0; i < operands; ++i) {
    const DrawnOperand& operand = form.operands[static_cast<size_t>(i)];
    const OperandTable table = operand.packed                ? theme_table(*operand.packed)
                               : operand.draw == Draw::theme ? theme_table(operand.type)
                                                             : crossed_table(operand.type);
    std::memcpy(tensor.data.data() + i * bytes_per_operand, table.data(), sizeof table);
  }
  return tensor;
}

Program plan_of(const Form& form, int reveal, std::vector<Axis> axes, uint32_t threads) {
  Program plan;
  plan.name = form.name;
  plan.modules.push_back({"m", form.name, std::make_shared<std::string>(program_text(form, reveal))});
  plan.constants.push_back(tables_of(form));
  plan.workspaces.push_back({"memory", int64_t{threads} * 16});
  plan.outputs.push_back({"digests", stores_wide(form, reveal) ? Dtype::i64 : Dtype::i32, std::move(axes)});
  return plan;
}

Launch launch_of(uint32_t base, uint32_t threads, uint32_t stride, uint32_t from, uint32_t to,
                 int64_t offset) {
  Launch launch;
  launch.module = "m";
  launch.function = "check";
  launch.block = {std::min(threads, block_threads), 1, 1};
  launch.grid = {threads / launch.block[0], 1, 1};
  launch.arguments = {PointerArgument{"digests", offset},
                      PointerArgument{"table", 0},
                      PointerArgument{"memory", 0},
                      static_cast<int32_t>(base),
                      static_cast<int32_t>(stride),
                      static_cast<int32_t>(from),
                      static_cast<int32_t>(to)};
  return launch;
}

}  // namespace

Program digest_plan(const Form& form, uint32_t base, uint32_t threads, uint32_t stride) {
  Program plan = plan_of(form, -1, {{"T", threads}}, threads);
  plan.launches.push_back(launch_of(base, threads, stride, 0, stride, 0));
  return plan;
}

Program bare_plan(const Form& form, uint32_t base, uint32_t threads, uint32_t stride, int reveal) {
  Program plan = plan_of(form, reveal, {{"K", stride}, {"T", threads}}, threads);
  const int64_t row = int64_t{threads} * (stores_wide(form, reveal) ? 8 : 4);
  for (uint32_t k = 0; k < stride; ++k)
    plan.launches.push_back(launch_of(base, threads, stride, k, k + 1, row * k));
  return plan;
}

}  // namespace assay::fidelity
