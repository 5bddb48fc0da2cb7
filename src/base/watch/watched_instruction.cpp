#include "src/base/watch/watched_instruction.h"

#include "src/base/vm/matrix_form.h"
#include "src/base/vm/signature.h"

namespace assay::watch {
namespace {

using ptx::Form;
using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;
using ptx::Type;
using Kind = WatchedInstruction::Kind;

/// Whether a source that is NaN or infinite leaves no finite result (IEEE 754; PTX ISA of each instruction).
bool reaches(const Form& form, size_t source) {
  if (form.saturates || form.relu) return false;
  switch (form.operation) {
    case Operation::add:
    case Operation::sub:
    case Operation::mul:
    case Operation::fma:
    case Operation::mad:
    case Operation::sqrt:
    case Operation::lg2:
    case Operation::sin:
    case Operation::cos:
    case Operation::neg:
    case Operation::abs:
    case Operation::cvt:
      return true;
    case Operation::div:
      return source == 0;
    default:
      return false;
  }
}

/// As registers hold elements of the format: 16-bit ones in pairs.
Type register_type(vm::Element element) {
  switch (element) {
    case vm::Element::f16:
      return Type::f16x2;
    case vm::Element::bf16:
      return Type::bf16x2;
    case vm::Element::e4m3:
    case vm::Element::e5m2:
      return Type::b32;
    default:
      return vm::format_of(element).type;
  }
}

void append(std::vector<FloatOperand>& all, const Operand& fragment, Type type) {
  if (fragment.kind != Operand::Kind::vector) return all.push_back({&fragment, type, true});
  for (const Operand& element : fragment.elements) all.push_back({&element, type, true});
}

/// mma.sync...D.A.B.C, wmma.mma...D.C or D.A.B.C: {D}, {A}, {B}, {C}.
WatchedInstruction product(const Instruction& instruction) {
  WatchedInstruction made;
  std::vector<vm::Element> elements = vm::elements_of(instruction);
  if (instruction.form.operation == Operation::wmma_mma && elements.size() == 2)
    elements = {elements[0], vm::Element::f16, vm::Element::f16, elements[1]};
  if (elements.size() != 4) return made.kind = Kind::refused, made;
  made.a_element = elements[1], made.b_element = elements[2];
  std::vector<Type> types;
  for (const vm::Element element : elements) types.push_back(register_type(element));
  if (!ptx::is_float(types[0])) return made;  // sums of integers
  if (vm::has_sparse_a(instruction)) return made.kind = Kind::refused, made;
  append(made.results, instruction.operands[0], types[0]);
  for (size_t i = 1; i < 4; ++i) {
    append(made.sources, instruction.operands[i], types[i]);
    if (i == 1) made.a_count = made.sources.size();
    if (i == 2) made.b_count = made.sources.size() - made.a_count;
  }
  made.in_place = made.results.size() == made.sources.size() - made.a_count - made.b_count;
  for (size_t i = 0; i < made.results.size() && made.in_place; ++i) {
    const Operand &d = *made.results[i].operand, &c = *made.sources[made.a_count + made.b_count + i].operand;
    made.in_place = d.kind == Operand::Kind::reg && c.kind == Operand::Kind::reg && d.reg == c.reg;
  }
  return made.kind = Kind::product, made;
}

/// wgmma.mma_async...D.A.B: {D}, A or {A}, B, scale-d, ...
WatchedInstruction sums(const Instruction& instruction) {
  WatchedInstruction made;
  const std::vector<vm::Element> elements = vm::elements_of(instruction);
  if (elements.size() != 3 || instruction.operands.size() < 4) return made.kind = Kind::refused, made;
  if (vm::format_of(elements[0]).integer) return made;
  if (vm::has_sparse_a(instruction)) return made.kind = Kind::refused, made;
  made.a_element = elements[1], made.b_element = elements[2];
  append(made.results, instruction.operands[0], elements[0] == vm::Element::f16 ? Type::f16x2 : Type::f32);
  if (instruction.operands[1].kind == Operand::Kind::vector)
    append(made.sources, instruction.operands[1], Type::b32);
  made.in_place = true;
  return made.kind = Kind::sums, made;
}

WatchedInstruction scalar(const Instruction& instruction, const vm::Meaning& meaning,
                          const ValueRanges& ranges) {
  WatchedInstruction made;
  const auto& operands = instruction.operands;
  if (operands.size() < 2 || operands[0].kind != Operand::Kind::reg) return made;
  made.results.push_back({&operands[0], meaning.result, true});
  for (size_t i = 0; i < 3 && i + 1 < operands.size() && meaning.sources[i] != Type::none; ++i)
    if (ptx::is_float(meaning.sources[i]))
      made.sources.push_back({&operands[i + 1], meaning.sources[i], reaches(instruction.form, i),
                              instruction.form.operation == Operation::ex2});
  made.crosses =
      ptx::is_packed(meaning.result) && made.sources.size() == 2 && !ptx::is_packed(made.sources[0].type);
  if (ranges.births_of(instruction).any())
    made.kind = Kind::scalar;
  else if (made.sources.size() == 1 && made.sources[0].reaches_result)
    made.kind = Kind::passes;
  return made;
}

}  // namespace

WatchedInstruction watched(const Instruction& instruction, const ValueRanges& ranges) {
  const vm::Meaning* const meaning = vm::meaning_of(instruction);
  WatchedInstruction made;
  if (!meaning) return made.kind = Kind::refused, made;
  if (meaning->flow == vm::Flow::matrix) {
    if (instruction.form.operation == Operation::wgmma_mma_async) return sums(instruction);
    return product(instruction);
  }
  if (meaning->flow == vm::Flow::copy && instruction.operands.size() == 2 &&
      instruction.operands[0].kind == Operand::Kind::reg &&
      instruction.operands[1].kind == Operand::Kind::reg) {
    const Type type = instruction.form.type();
    made.results.push_back({&instruction.operands[0], type, true});
    made.sources.push_back({&instruction.operands[1], type, true});
    return made.kind = Kind::passes, made;
  }
  const bool computes = meaning->flow == vm::Flow::arithmetic || meaning->flow == vm::Flow::conversion;
  if (!computes || !ptx::is_float(meaning->result)) return made;
  return scalar(instruction, *meaning, ranges);
}

}  // namespace assay::watch
