#include "src/campaign/mutate/ways.h"

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/value_range.h"

namespace assay {
namespace {

using ptx::Instruction;

bool jumps(vm::Control control) {
  return control == vm::Control::branch || control == vm::Control::branch_table;
}

/// Where it runs, nothing after it is reached by falling through.
bool leaves(vm::Control control) {
  using enum vm::Control;
  return jumps(control) || control == ret || control == exit || control == trap;
}

void collect_targets(const ptx::Operand& operand, std::vector<int32_t>& targets) {
  if (operand.kind == ptx::Operand::Kind::label && operand.target >= 0) targets.push_back(operand.target);
  for (const ptx::Operand& element : operand.elements) collect_targets(element, targets);
}

}  // namespace

std::vector<int32_t> next_of(const ptx::Function& f, int32_t at, bool runs, bool rests) {
  const Instruction& in = f.body[static_cast<size_t>(at)];
  const vm::Control control = vm::signature_of(in).control;
  std::vector<int32_t> next;
  if (rests || !leaves(control)) next.push_back(at + 1);
  if (runs && jumps(control))
    for (const ptx::Operand& operand : in.operands) collect_targets(operand, next);
  return next;
}

std::vector<std::vector<int32_t>> successors_of(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> next(f.body.size() + 1);
  for (size_t i = 0; i < f.body.size(); ++i)
    next[i] = next_of(f, static_cast<int32_t>(i), true, f.body[i].predicate >= 0);
  return next;
}

std::vector<std::vector<int32_t>> predecessors_of(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> before(f.body.size() + 1);
  const auto next = successors_of(f);
  for (size_t i = 0; i < f.body.size(); ++i)
    for (const int32_t to : next[i]) before[static_cast<size_t>(to)].push_back(static_cast<int32_t>(i));
  return before;
}

bool is_come_to(const ptx::Function& f, ValueRanges& ranges, int32_t instruction) {
  std::vector<bool> seen(f.body.size() + 1);
  std::vector<int32_t> work{0};
  seen[0] = true;
  while (!work.empty()) {
    const int32_t at = work.back();
    work.pop_back();
    if (at == instruction) return true;
    if (static_cast<size_t>(at) == f.body.size()) continue;
    const Instruction& in = f.body[static_cast<size_t>(at)];
    bool runs = true, rests = in.predicate >= 0;
    if (rests && leaves(vm::signature_of(in).control))
      if (const ValueRange p = ranges.read_by(at, in.predicate); p.single()) {
        runs = (p.low != 0) != in.predicate_negated;
        rests = !runs;
      }
    for (const int32_t to : next_of(f, at, runs, rests)) {
      if (seen[static_cast<size_t>(to)]) continue;
      seen[static_cast<size_t>(to)] = true;
      work.push_back(to);
    }
  }
  return false;
}

}  // namespace assay
