#include "src/verification/diagnosis/guarding_ops.h"

#include <algorithm>

#include "src/verification/diagnosis/source_line.h"

namespace assay {

std::set<size_t> merely_guarding(const vm::Code& code) {
  const auto line = [&](size_t at) {
    const vm::Op& op = code.ops[at];
    if (op.function < 0 || op.instruction < 0) return std::pair<std::string, int>();
    const SourceLocation where = location_of(*code.module, op.function, op.instruction);
    return std::pair(where.file, where.line > 0 ? where.line : -where.ptx_line);  // none: each its own
  };
  const auto reads = [&](size_t at, vm::Slot slot) {
    const auto all = code.signatures[at].reads;
    return (code.ops[at].guarded && code.ops[at].guard == slot) ||
           std::any_of(all.begin(), all.end(), [&](const vm::Use& use) { return use.slot == slot; });
  };
  const auto writes = [&](size_t at, vm::Slot slot) {
    const auto all = code.signatures[at].writes;
    return std::any_of(all.begin(), all.end(), [&](const vm::Use& use) { return use.slot == slot; });
  };
  std::set<size_t> merely;
  for (size_t at = code.ops.size(); at-- > 0;) {
    const auto made = code.signatures[at].writes;
    const size_t next = at + 1;
    if (made.size() != 1 || made[0].cell != vm::Cell::mask || next >= code.ops.size()) continue;
    const vm::Slot slot = made[0].slot;
    const bool guards = code.ops[next].guarded && code.ops[next].guard == slot;
    const bool negated = merely.contains(next) && code.signatures[next].reads.size() == 1;
    if (!reads(next, slot) || !(guards || negated) || line(at) != line(next)) continue;
    size_t other = next + 1;
    while (other < code.ops.size() && !reads(other, slot) && !writes(other, slot)) ++other;
    if (other == code.ops.size() || !reads(other, slot)) merely.insert(at);
  }
  return merely;
}

std::map<size_t, bool> loop_conditions(const vm::Code& code) {
  const auto target_of = [&](size_t at) {  // -1: it does not branch
    return code.signatures[at].control == vm::Control::branch ? ptrdiff_t{code.ops[at].target} : -1;
  };
  std::map<size_t, bool> conditions;
  for (size_t last = 0; last < code.ops.size(); ++last) {
    const ptrdiff_t first = target_of(last), end = static_cast<ptrdiff_t>(last);
    if (first < 0 || first > end) continue;
    if (code.ops[last].guarded) conditions[last] = false;
    for (auto at = static_cast<size_t>(first); at < last; ++at)
      if (const ptrdiff_t to = target_of(at); code.ops[at].guarded && to >= 0 && (to < first || to > end))
        conditions[at] = true;
  }
  return conditions;
}

}  // namespace assay
