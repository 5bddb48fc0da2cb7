#include "src/verification/diagnosis/guarding_ops.h"

#include <algorithm>

#include "src/verification/diagnosis/source_line.h"

namespace assay {

namespace {

using Line = std::pair<std::string, int>;

Line line_of(const vm::Code& code, const Locations& locations, size_t at) {
  const vm::Op& op = code.ops[at];
  if (op.function < 0 || op.instruction < 0) return {};
  const SourceLocation where = locations.of(op.function, op.instruction);
  return {where.file, where.line > 0 ? where.line : -where.ptx_line};  // none: each its own
}

}  // namespace

std::set<size_t> merely_guarding(const vm::Code& code) {
  const Locations locations(*code.module);
  const auto line = [&](size_t at) { return line_of(code, locations, at); };
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

std::set<size_t> counting(const vm::Code& code) {
  using vm::Flow;
  const Locations locations(*code.module);
  std::map<vm::Slot, std::vector<size_t>> writers;
  std::vector<size_t> open;
  std::set<size_t> found;
  for (size_t at = 0; at < code.ops.size(); ++at) {
    for (const vm::Use& use : code.signatures[at].writes) writers[use.slot].push_back(at);
    if (code.signatures[at].flow() == Flow::comparison) open.push_back(at);
  }
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    for (const vm::Use& use : code.signatures[at].reads) {
      if (use.slot == vm::no_slot || use.cell == vm::Cell::mask || ptx::is_float(use.type)) continue;
      const auto made = writers.find(use.slot);
      if (made == writers.end()) continue;
      for (const size_t maker : made->second) {
        const Flow flow = code.signatures[maker].flow();
        const bool counts = flow == Flow::integer || flow == Flow::copy || flow == Flow::conversion;
        if (counts && !found.contains(maker) &&
            line_of(code, locations, maker) == line_of(code, locations, at))
          found.insert(maker), open.push_back(maker);
      }
    }
  }
  return found;
}

std::set<size_t> ops_until(const vm::Code& code, int32_t at, int32_t until) {
  constexpr size_t kLongest = 1000;
  std::set<size_t> seen;
  std::vector<int32_t> open{at};
  while (!open.empty() && seen.size() < kLongest) {
    const int32_t next = open.back();
    open.pop_back();
    if (next < 0 || next == until || static_cast<size_t>(next) >= code.ops.size()) continue;
    if (!seen.insert(static_cast<size_t>(next)).second) continue;
    const vm::Op& op = code.ops[static_cast<size_t>(next)];
    const vm::Control control = code.signature(op).control;
    if (control == vm::Control::branch) open.push_back(op.target);
    const bool leaves =
        control == vm::Control::branch || control == vm::Control::exit || control == vm::Control::ret;
    if (!leaves || op.guarded) open.push_back(next + 1);
  }
  return seen;
}

}  // namespace assay
