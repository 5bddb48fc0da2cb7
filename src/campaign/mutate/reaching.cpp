#include "src/campaign/mutate/reaching.h"

#include <algorithm>

#include "src/base/vm/signature.h"

namespace assay {
namespace {

using ptx::Instruction;

/// Nothing after it is reached by falling through.
bool leaves(const Instruction& in, vm::Control control) {
  using enum vm::Control;
  return in.predicate < 0 && (control == branch || control == branch_table || control == ret ||
                              control == exit || control == trap);
}

void collect_targets(const ptx::Operand& operand, std::vector<int32_t>& targets) {
  if (operand.kind == ptx::Operand::Kind::label && operand.target >= 0) targets.push_back(operand.target);
  for (const ptx::Operand& element : operand.elements) collect_targets(element, targets);
}

/// What can run right before each instruction.
std::vector<std::vector<int32_t>> predecessors_of(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> before(f.body.size() + 1);
  for (size_t i = 0; i < f.body.size(); ++i) {
    const vm::Control control = vm::signature_of(f.body[i]).control;
    if (!leaves(f.body[i], control)) before[i + 1].push_back(static_cast<int32_t>(i));
    if (control != vm::Control::branch && control != vm::Control::branch_table) continue;
    std::vector<int32_t> targets;
    for (const ptx::Operand& operand : f.body[i].operands) collect_targets(operand, targets);
    for (const int32_t target : targets)
      before[static_cast<size_t>(target)].push_back(static_cast<int32_t>(i));
  }
  return before;
}

}  // namespace

std::optional<std::vector<int32_t>> reaching_writes(const ptx::Function& f, int32_t at, int32_t reg) {
  const auto before = predecessors_of(f);  // what a call gives back is among the registers that it names
  std::vector<bool> seen(f.body.size() + 1);
  std::vector<int32_t> work{at}, found;
  while (!work.empty()) {
    const int32_t here = work.back();
    work.pop_back();
    if (here == 0) return std::nullopt;
    for (const int32_t i : before[static_cast<size_t>(here)]) {
      if (seen[static_cast<size_t>(i)]) continue;
      seen[static_cast<size_t>(i)] = true;
      const Instruction& in = f.body[static_cast<size_t>(i)];
      const vm::TextSignature signature = vm::signature_of(in);
      const std::vector<int32_t>&written = signature.writes, &named = signature.reads;
      if (signature.control == vm::Control::call && std::find(named.begin(), named.end(), reg) != named.end())
        return std::nullopt;
      const bool writes = std::find(written.begin(), written.end(), reg) != written.end();
      if (writes) found.push_back(i);
      if (!writes || in.predicate >= 0) work.push_back(i);
    }
  }
  return found;
}

}  // namespace assay
