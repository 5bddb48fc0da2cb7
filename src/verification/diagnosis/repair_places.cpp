#include "src/verification/diagnosis/repair_places.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/verification/diagnosis/guarding_ops.h"
#include "src/verification/diagnosis/repair_ways.h"

namespace assay {
namespace {

using vm::Flow;
using vm::Op;
using vm::OpChange;

/// The op's line, where that is another than the repair's.
std::optional<ChainLink> elsewhere(const vm::Code& code, const Op& op, const SourceText& source,
                                   const Repair& repair) {
  ChainLink link = link_of(*code.module, op.function, op.instruction, source);
  const SourceLocation &a = link.where, &b = repair.at.where;
  if (a.line <= 0 || (a.file == b.file && a.line == b.line)) return std::nullopt;
  return link;
}

/// Compilers put a comparison where its operands are made, and the branch where the condition stands.
void add_branch(const vm::Code& code, const Op& comparison, const SourceText& source, Repair& repair) {
  const auto writes = code.signature(comparison).writes;
  if (writes.empty() || !is_predicate(writes[0])) return;
  for (size_t at = code.index(comparison) + 1; at < code.ops.size(); ++at) {
    const Op& op = code.ops[at];
    if (!op.guarded || op.guard != writes[0].slot || op.function < 0 || op.instruction < 0) continue;
    repair.branch = elsewhere(code, op, source, repair);
    return;
  }
}

/// Compilers compute once what several statements take, on the line of one of them.
void add_taker(const vm::Code& code, const Op& maker, const SourceText& source, Repair& repair) {
  const auto writes = code.signature(maker).writes;
  if (writes.empty() || is_predicate(writes[0])) return;
  for (size_t at = code.index(maker) + 1; at < code.ops.size(); ++at) {
    const Op& op = code.ops[at];
    const auto takes = [&](const vm::Use& use) { return use.slot == writes[0].slot; };
    const auto reads = code.signatures[at].reads;
    if (std::none_of(reads.begin(), reads.end(), takes) || op.function < 0 || op.instruction < 0) continue;
    std::optional<ChainLink> link = elsewhere(code, op, source, repair);
    if (!link || link->where.file != repair.at.where.file) continue;
    repair.taker = std::move(link);
    return;
  }
}

/// What is wrong of a term or of a condition may be what made it: the last op before that writes it and
/// does more than move it. Arguments are right.
void add_maker(const vm::Code& code, const Op& user, size_t operand, const SourceText& source,
               Repair& repair) {
  vm::Slot slot = code.signature(user).reads[operand].slot;
  for (size_t at = code.index(user); at-- > 0;) {
    const auto writes = code.signatures[at].writes;
    if (std::none_of(writes.begin(), writes.end(), [&](const vm::Use& use) { return use.slot == slot; }))
      continue;
    const Op& op = code.ops[at];
    const auto reads = code.signatures[at].reads;
    if (code.signatures[at].flow() == Flow::copy && reads.size() == 1 && reads[0].slot != vm::no_slot) {
      slot = reads[0].slot;
      continue;
    }
    if (op.function < 0 || op.instruction < 0 || op.space == ptx::Space::param) return;
    repair.maker = elsewhere(code, op, source, repair);
    return;
  }
}

/// A number is compared as it should be, but made wrongly on another line.
void add_compared(const vm::Code& code, const Op& comparison, const SourceText& source, Repair& repair) {
  const auto reads = code.signature(comparison).reads;
  for (size_t i = 0; i < reads.size() && !repair.maker; ++i)
    if (reads[i].slot != vm::no_slot && reads[i].purpose == vm::Purpose::value && !is_float(reads[i]) &&
        !is_predicate(reads[i]))
      add_maker(code, comparison, i, source, repair);
}

/// The line of which one of the branch's ways computes most more than the other.
void add_decided(const vm::Code& code, const Op& branch, const SourceText& source,
                 const std::function<bool(const SourceLocation&)>& may_compute_wrong, Repair& repair) {
  struct Computed {
    size_t first = SIZE_MAX;
    int balance = 0;  ///< ops of the one way less those of the other
  };
  std::map<std::pair<std::string, int>, Computed> lines;
  const auto add = [&](int32_t from, int sign) {
    for (const size_t at : ops_until(code, from, branch.reconverge)) {
      const Op& op = code.ops[at];
      const Flow flow = code.signature(op).flow();
      if (op.function < 0 || op.instruction < 0) continue;
      if (flow != Flow::arithmetic && flow != Flow::select && flow != Flow::store) continue;
      const SourceLocation where = location_of(*code.module, op.function, op.instruction);
      if (where.line == 0 || !may_compute_wrong(where)) continue;
      Computed& line = lines[{where.file, where.line}];
      line.first = std::min(line.first, at), line.balance += sign;
    }
  };
  add(static_cast<int32_t>(code.index(branch)) + 1, 1);
  add(branch.target, -1);
  const Computed* most = nullptr;
  for (const auto& [line, computed] : lines) {
    const auto order = [](const Computed& c) { return std::pair(-std::abs(c.balance), c.first); };
    if (!most || order(computed) < order(*most)) most = &computed;
  }
  if (!most) return;
  const Op& op = code.ops[most->first];
  repair.decides = link_of(*code.module, op.function, op.instruction, source);
}

}  // namespace

void note_places(const vm::Code& code, const OpChange& change, int simplicity, const SourceText& source,
                 const std::function<bool(const SourceLocation&)>& may_compute_wrong, Repair& repair) {
  const Op& op = code.ops[change.op];
  const Flow flow = code.signature(op).flow();
  if (change.of == OpChange::Of::guard && code.signature(op).control == vm::Control::branch)
    add_decided(code, op, source, may_compute_wrong, repair);
  if (flow == Flow::comparison) add_branch(code, op, source, repair);
  if (flow == Flow::integer || flow == Flow::shift) add_taker(code, op, source, repair);
  const bool of_source = change.of == OpChange::Of::source;
  // A number that a loop begins with is no term that something made.
  const auto is_count = [](const vm::Use& use) { return !is_float(use) && !is_predicate(use); };
  const bool counts =
      of_source && flow != Flow::comparison && is_count(code.signature(op).reads[change.source]);
  if (of_source && simplicity <= kTerm && !counts) add_maker(code, op, change.source, source, repair);
  if (!of_source && flow == Flow::comparison) add_compared(code, op, source, repair);
}

}  // namespace assay
