#include "src/base/watch/rehearsal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::watch {
namespace {

using ptx::Operand;
using ptx::Type;

void rename_targets(const Operand& operand, std::string& text, const auto& label) {
  if (operand.kind == Operand::Kind::label && operand.target >= 0)
    if (const size_t at = text.rfind(operand.name); at != text.npos)
      text.replace(at, operand.name.size(), label(operand.target));
  for (const Operand& element : operand.elements) rename_targets(element, text, label);
}

}  // namespace

std::string RehearsalText::label(const char* what, int32_t instruction) const {
  return instruction < 0 ? fmt::format("$assay_{}_{}", number_, what)
                         : fmt::format("$assay_{}_{}{}", number_, what, instruction);
}
std::string RehearsalText::label_of(int32_t instruction) const {
  return label("from", instruction);
}
void RehearsalText::mark(int times, Code& code) const {
  if (marks_cold_) code.text += fmt::format("\t.pragma \"frequency {}\";\n", times);
}

std::string RehearsalText::declarations() const {
  return "\t.reg .b16 %assay_sum_h, %assay_sum_b, %assay_zero_h;\n\t.reg .b32 %assay_sum, %assay_largest, "
         "%assay_sum_hh, %assay_sum_bb, %assay_sum_d, %assay_zero_w, %assay_low, %assay_high;\n\t.reg .pred "
         "%assay_found, %assay_any;\n";
}

void RehearsalText::begin(Code& code) const {
  std::set<Type> types;
  bool besides = false;
  for (const RehearsalTest& test : tests_) types.insert(test.type), besides |= test.first >= 0;
  code.line("mov.b32 %assay_sum, 0");
  if (besides) code.line("mov.b32 %assay_largest, 0");
  if (types.contains(Type::f64)) code.line("mov.b32 %assay_sum_d, 0");
  const bool halves = types.contains(Type::f16) || types.contains(Type::bf16),
             pairs = types.contains(Type::f16x2) || types.contains(Type::bf16x2);
  if (halves)
    for (const char* name : {"%assay_sum_h", "%assay_sum_b", "%assay_zero_h"})
      code.line(fmt::format("mov.b16 {}, 0", name));
  if (pairs)
    for (const char* name : {"%assay_sum_hh", "%assay_sum_bb", "%assay_zero_w"})
      code.line(fmt::format("mov.b32 {}, 0", name));
  code.line("bra.uni " + label("first"));
  code.label(label("watched"));
  mark(1, code);
}

/// A sum of all times 0: 0, or NaN for good.
void RehearsalText::test(const RehearsalTest& test, Code& code) const {
  const ptx::Instruction& in = view_.function.body[static_cast<size_t>(test.behind)];
  const auto name = [&](int32_t reg) { return view_.function.registers[static_cast<size_t>(reg)].name; };
  const std::string guard =
      in.predicate < 0 ? "" : fmt::format("@{}{} ", in.predicate_negated ? "!" : "", name(in.predicate));
  const std::string value = name(test.reg);
  const auto sum = [&](const char* type, const char* of, const char* zero) {
    code.line(fmt::format("{0}fma.rn.{1} {2}, {3}, {4}, {2}", guard, type, of, value, zero));
  };
  switch (test.type) {
    case Type::f64:
      code.line(fmt::format("mov.b64 {{%assay_low, %assay_high}}, {}", value));
      code.line("and.b32 %assay_high, %assay_high, 0x7FFFFFFF");
      return code.line(guard + "max.u32 %assay_sum_d, %assay_sum_d, %assay_high");
    case Type::f16x2:
      return sum("f16x2", "%assay_sum_hh", "%assay_zero_w");
    case Type::bf16x2:
      return sum("bf16x2", "%assay_sum_bb", "%assay_zero_w");
    case Type::f16:
      return sum("f16", "%assay_sum_h", "%assay_zero_h");
    case Type::bf16:
      return sum("bf16", "%assay_sum_b", "%assay_zero_h");
    default:
      if (test.first < 0) return sum("f32", "%assay_sum", "0f00000000");
  }
  // NaN where both are infinite, which a maximum leaves out.
  code.line(fmt::format("sub.rn.f32 %assay_high, {}, {}", value, name(test.first)));
  code.line("abs.f32 %assay_high, %assay_high");
  code.line("max.f32 %assay_largest, %assay_largest, %assay_high");
}

std::string RehearsalText::found(Code& code) const {
  std::set<Type> types;
  bool besides = false;
  for (const RehearsalTest& test : tests_) types.insert(test.type), besides |= test.first >= 0;
  const auto differs = [&](const char* bits, const char* sum) {
    code.line(fmt::format("setp.ne.or.{} %assay_found, {}, 0, %assay_found", bits, sum));
  };
  code.line("setp.nan.f32 %assay_found, %assay_sum, %assay_sum");
  if (besides) code.line("setp.eq.or.f32 %assay_found, %assay_largest, 0f7F800000, %assay_found");
  if (types.contains(Type::f64))
    code.line("setp.ge.or.u32 %assay_found, %assay_sum_d, 0x7FF00000, %assay_found");
  if (types.contains(Type::f16) || types.contains(Type::bf16))
    differs("b16", "%assay_sum_h"), differs("b16", "%assay_sum_b");
  if (types.contains(Type::f16x2) || types.contains(Type::bf16x2))
    differs("b32", "%assay_sum_hh"), differs("b32", "%assay_sum_bb");
  return "%assay_found";
}

void RehearsalText::gate(int32_t instruction, Code& code) const {
  code.line(fmt::format("bar.red.or.pred %assay_any, 0, {}", found(code)));
  code.line("@%assay_any bra.uni " + label("again"));
  code.line("bra.uni " + label_of(instruction));
}

void RehearsalText::leave(int32_t instruction, Code& code) const {
  code.line(fmt::format("@{} bra {}", found(code), label("watched")));
  code.line("bra " + label_of(instruction));
}

/// What stands before an instruction where scopes begin or end.
void RehearsalText::scopes_before(int32_t number, Code& code) const {
  const auto i = static_cast<size_t>(number);
  if (i == 0 || !part_.holds[i - 1] || (text_.depth(i) == 1 && text_.depth(i - 1) == 1)) return;
  const size_t from = text_.at(i - 1).end, begin = text_.at(i).begin;
  Insertions without;
  text_.leave_out_names(from, begin, without, text_.depth(i - 1) - 1);
  code.text += without.into(text_.whole(), from, begin);
}

void RehearsalText::instruction(int32_t number, Code& code) const {
  const auto i = static_cast<size_t>(number);
  const ptx::Instruction& in = view_.function.body[i];
  std::string own(text_.whole().substr(text_.at(i).begin, text_.at(i).end - text_.at(i).begin));
  for (const Operand& operand : in.operands)
    rename_targets(operand, own, [&](int32_t to) { return label("first", to); });
  code.text += "\t" + own + "\n";
}

Code RehearsalText::rehearsal() const {
  Code code;
  code.label(label("first"));
  mark(1'000'000, code);
  std::set<int32_t> targets;
  for (size_t i = 0; i < part_.holds.size(); ++i)
    if (part_.holds[i])
      for (const int32_t to : successors(view_, static_cast<int32_t>(i)))
        if (to != static_cast<int32_t>(i) + 1 || view_.signatures[i].control != vm::Control::none)
          targets.insert(to);
  auto next = tests_.begin();
  for (size_t i = 0; i < part_.holds.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    const bool is_gate = std::count(part_.gates.begin(), part_.gates.end(), number) > 0,
               is_leave = std::count(part_.leaves.begin(), part_.leaves.end(), number) > 0;
    if (!part_.holds[i] && !is_gate && !is_leave) continue;
    scopes_before(number, code);
    if (targets.contains(number)) code.label(label("first", number)), mark(1'000'000, code);
    if (is_gate) gate(number, code);
    if (is_leave) leave(number, code);
    if (!part_.holds[i]) continue;
    instruction(number, code);
    for (; next != tests_.end() && next->behind == number; ++next) test(*next, code);
  }
  code.label(label("again"));
  mark(1, code);
  if (part_.copies) code.text += "\tcp.async.wait_all;\n";
  if (part_.multiplies) code.line("wgmma.wait_group.sync.aligned 0");
  if (part_.copies || part_.multiplies) code.line("bar.sync 0");
  code.line("bra.uni " + label("watched"));
  return code;
}

}  // namespace assay::watch
