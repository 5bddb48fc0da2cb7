#include "src/campaign/mutate/needed.h"

#include <algorithm>

#include "src/base/vm/signature.h"

namespace assay {
namespace {

using ptx::Instruction;

/// D = A B + C of one warp, element by element.
bool is_sum_of_products(const Instruction& in) {
  return in.form.operation == ptx::Operation::mma && in.operands.size() == 4 &&
         in.operands[0].elements.size() == in.operands[3].elements.size();
}

/// What the instruction's result in `reg` depends on.
std::vector<int32_t> sources_of(const Instruction& in, int32_t reg) {
  if (!is_sum_of_products(in)) return read_registers(in);
  std::vector<int32_t> sources;
  for (size_t i = 0; i < in.operands[0].elements.size(); ++i)
    if (in.operands[0].elements[i].reg == reg && in.operands[3].elements[i].reg >= 0)
      sources.push_back(in.operands[3].elements[i].reg);
  for (const size_t factor : {1u, 2u})
    for (const ptx::Operand& element : in.operands[factor].elements)
      if (element.reg >= 0) sources.push_back(element.reg);
  if (in.predicate >= 0) sources.push_back(in.predicate);
  return sources;
}

}  // namespace

bool acts(const Instruction& in) {
  const vm::TextSignature s = vm::signature_of(in);
  const bool stores = std::any_of(s.accesses.begin(), s.accesses.end(), [](const vm::Access& access) {
    return access.direction != vm::Access::Direction::read;
  });
  const bool waits = s.meaning && s.meaning->asynchronous.step != vm::Step::none;
  return s.writes.empty() || stores || waits || s.control != vm::Control::none ||
         (s.form.sync && !is_sum_of_products(in));
}

NeededRegisters::NeededRegisters(const ValueRanges& ranges) {
  mark(ranges, -1, nullptr);
}
NeededRegisters::NeededRegisters(const ValueRanges& ranges, int32_t at, const Instruction& instead) {
  mark(ranges, at, &instead);
}

void NeededRegisters::mark(const ValueRanges& ranges, int32_t at, const Instruction* instead) {
  const ptx::Function& f = ranges.function();
  needed_.assign(f.registers.size(), false);
  std::vector<int32_t> work;
  const auto need = [&](int32_t reg) {
    if (needed_[static_cast<size_t>(reg)]) return;
    needed_[static_cast<size_t>(reg)] = true;
    work.push_back(reg);
  };
  const auto instruction = [&](int32_t i) -> const Instruction& {
    return i == at ? *instead : f.body[static_cast<size_t>(i)];
  };
  for (int32_t i = 0; i < static_cast<int32_t>(f.body.size()); ++i)
    if (acts(instruction(i)))
      for (const int32_t reg : read_registers(instruction(i))) need(reg);
  const std::vector<int32_t> others = instead ? written_registers(*instead) : std::vector<int32_t>{};
  while (!work.empty()) {
    const int32_t reg = work.back();
    work.pop_back();
    for (const int32_t i : ranges.definitions(reg))
      if (i != at)
        for (const int32_t source : sources_of(instruction(i), reg)) need(source);
    if (std::find(others.begin(), others.end(), reg) != others.end())
      for (const int32_t source : sources_of(*instead, reg)) need(source);
  }
}

}  // namespace assay
