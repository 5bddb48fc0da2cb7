#include "src/campaign/mutate/reaching.h"

#include <algorithm>
#include <string_view>

#include "src/campaign/mutate/value_range.h"

namespace assay {
namespace {

using ptx::Instruction;

std::string_view base_of(const Instruction& in) {
  return std::string_view(in.opcode).substr(0, in.opcode.find('.'));
}

/// Nothing after it is reached by falling through.
bool leaves(const Instruction& in) {
  const std::string_view base = base_of(in);
  return in.predicate < 0 &&
         (base == "bra" || base == "brx" || base == "ret" || base == "exit" || base == "trap");
}

void collect_targets(const ptx::Operand& operand, std::vector<int32_t>& targets) {
  if (operand.kind == ptx::Operand::Kind::label && operand.target >= 0) targets.push_back(operand.target);
  for (const ptx::Operand& element : operand.elements) collect_targets(element, targets);
}

/// What can run right before each instruction.
std::vector<std::vector<int32_t>> predecessors_of(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> before(f.body.size() + 1);
  for (size_t i = 0; i < f.body.size(); ++i) {
    if (!leaves(f.body[i])) before[i + 1].push_back(static_cast<int32_t>(i));
    if (base_of(f.body[i]) != "bra" && base_of(f.body[i]) != "brx") continue;
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
      const std::vector<int32_t> written = written_registers(in), named = read_registers(in);
      if (base_of(in) == "call" && std::find(named.begin(), named.end(), reg) != named.end())
        return std::nullopt;
      const bool writes = std::find(written.begin(), written.end(), reg) != written.end();
      if (writes) found.push_back(i);
      if (!writes || in.predicate >= 0) work.push_back(i);
    }
  }
  return found;
}

}  // namespace assay
