#include "src/verification/diagnosis/repair_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "src/base/vm/opcode.h"

namespace assay {
namespace {

using vm::Flow;
using vm::Instead;
using vm::Op;
using vm::OpChange;

/// Registers that are tried in the place of one.
constexpr size_t kOthers = 32;

/// Not where it says whether something is there: compilers make it of a boolean, or of a pointer.
bool has_neighbours(const vm::Code& code, const Op& op, const vm::Use& use) {
  const ptx::Instruction* const instruction = vm::instruction_of(code, op);
  const ptx::Comparison by = instruction ? instruction->form.comparison : ptx::Comparison::none;
  const bool orders = by != ptx::Comparison::eq && by != ptx::Comparison::ne;
  return orders || ptx::bytes_of(use.type) == 4;
}
/// A boolean that is stored, as a number.
bool is_of_literals(const vm::Code& code, const Op& op) {
  const auto is_literal = [&](const vm::Use& use) {
    return is_predicate(use) || std::any_of(code.immediates.begin(), code.immediates.end(),
                                            [&](const vm::Immediate& i) { return i.slot == use.slot; });
  };
  const auto reads = code.signature(op).reads;
  return std::all_of(reads.begin(), reads.end(), is_literal);
}

/// The number that an op takes as written; none: it is in a register, or of the launch.
std::optional<uint64_t> literal_of(const vm::Code& code, const vm::Use& use) {
  for (const vm::Immediate& i : code.immediates)
    if (i.slot == use.slot) return i.bits;
  return std::nullopt;
}
/// Sizes of tiles, strides and distances are wrong by such a factor.
bool may_be_a_size(const vm::Code& code, const vm::Use& use, Flow flow) {
  constexpr uint64_t kMost = 4096;
  const uint64_t least = flow == Flow::exchange ? 1 : 2;  // of lanes
  const std::optional<uint64_t> literal = is_float(use) ? std::nullopt : literal_of(code, use);
  return literal && *literal >= least && *literal <= kMost;
}

std::string register_name(const vm::Code& code, vm::Slot slot) {
  for (const vm::RegisterPlace& place : code.registers)
    if (place.slot == slot)
      return code.module->functions[static_cast<size_t>(place.function)]
          .registers[static_cast<size_t>(place.reg)]
          .name;
  return "a literal";
}

std::string text_of(const vm::Code& code, const Op& op) {
  const ptx::Instruction* in = instruction_of(code, op);
  return in ? fmt::format("{} (PTX line {})", in->opcode, in->ptx_line) : "";
}

std::string words(Instead instead, bool predicate) {
  switch (instead) {
    case Instead::zero:
      return predicate ? "never true" : "taken for 0";
    case Instead::one:
      return predicate ? "always true" : "taken for 1";
    case Instead::negated:
      return predicate ? "inverted" : "negated";
    case Instead::next:
      return "one more";
    case Instead::previous:
      return "one less";
    case Instead::half:
      return "halved";
    case Instead::twice:
      return "doubled";
    case Instead::another:
      return "another";
  }
  return "";
}

}  // namespace

std::vector<std::pair<OpChange, int>> ways_of(const vm::Code& code, const Op& op,
                                              const vm::ChangedRuns::Executed& executed, bool floats,
                                              const Standing& standing) {
  std::vector<std::pair<OpChange, int>> ways;
  const size_t at = code.index(op);
  const vm::Signature& signature = code.signature(op);
  const auto add = [&](OpChange::Of of, size_t source, std::initializer_list<Instead> all, int simplicity) {
    for (const Instead instead : all) ways.push_back({{of, at, source, instead, vm::no_slot}, simplicity});
  };
  using Of = OpChange::Of;
  if (op.guarded) {
    if (executed.held[at] && !standing.ends) add(Of::guard, 0, {Instead::zero}, kChoice);
    if (executed.failed[at] && !standing.goes_on) add(Of::guard, 0, {Instead::one}, kChoice);
    if (executed.held[at] && executed.failed[at] && !standing.ends && !standing.goes_on)
      add(Of::guard, 0, {Instead::negated}, kChoice);
  }
  if (!executed.times[at]) return ways;
  const Flow flow = signature.flow();
  const int of_a_step = standing.heads_loop ? kBound : kStep;  // where a loop begins
  const bool chooses = flow == Flow::comparison || flow == Flow::logic;
  if (chooses && !standing.merely_guards && !signature.writes.empty() && is_predicate(signature.writes[0]))
    add(Of::result, 0, {Instead::zero, Instead::one, Instead::negated}, kChoice);
  for (size_t i = 0; i < signature.reads.size(); ++i) {
    const vm::Use& use = signature.reads[i];
    if (use.slot == vm::no_slot || use.purpose == vm::Purpose::guard) continue;
    const bool counts =
        flow == Flow::integer || flow == Flow::comparison || flow == Flow::copy || flow == Flow::exchange;
    if (counts && may_be_a_size(code, use, flow)) add(Of::source, i, {Instead::half, Instead::twice}, kStep);
    if (use.purpose == vm::Purpose::address) {
      add(Of::source, i, {Instead::next, Instead::previous}, kStep);
    } else if (is_predicate(use)) {
      if (!standing.merely_guards && !is_of_literals(code, op))
        add(Of::source, i, {Instead::zero, Instead::one, Instead::negated}, kChoice);
    } else if (flow == Flow::arithmetic && is_float(use)) {
      if (floats) add(Of::source, i, {Instead::zero, Instead::one, Instead::negated}, kTerm);
    } else if (flow == Flow::comparison) {
      // One more on one side is one less on the other. Of what is wrong of bounds one is the likeliest.
      if (is_float(use)) continue;
      add(Of::source, i, {Instead::zero}, kStep);
      const bool is_last = i + 1 == signature.reads.size() || is_predicate(signature.reads[i + 1]) ||
                           signature.reads[i + 1].slot == vm::no_slot;
      if (is_last && has_neighbours(code, op, use))
        add(Of::source, i, {Instead::next, Instead::previous}, kBound);
    } else if (flow == Flow::integer || flow == Flow::shift || flow == Flow::logic) {
      if (is_float(use)) continue;
      add(Of::source, i, {Instead::zero}, kStep);
      add(Of::source, i, {Instead::next, Instead::previous}, of_a_step);
    } else if (flow == Flow::copy && use.cell == vm::Cell::word) {
      if (floats) add(Of::source, i, {Instead::zero}, kTerm);
      if (!is_float(use)) add(Of::source, i, {Instead::next, Instead::previous}, of_a_step);
    }
  }
  if (flow != Flow::load || signature.writes.empty()) return ways;
  const vm::Use& loaded = signature.writes[0];
  const bool sizes = op.space == ptx::Space::param && !is_float(loaded);
  if (sizes) add(Of::result, 0, {Instead::next, Instead::previous}, kStep);
  if (!sizes && floats) add(Of::result, 0, {Instead::zero}, kTerm);
  return ways;
}

std::string sentence_of(const vm::Code& code, const OpChange& change) {
  const Op& op = code.ops[change.op];
  const vm::Signature& signature = code.signature(op);
  const std::string in = text_of(code, op);
  if (change.of == OpChange::Of::guard)
    return fmt::format("the guard {} of {} {}", register_name(code, op.guard), in,
                       words(change.instead, true));
  if (change.of == OpChange::Of::result) {
    const vm::Use& use = signature.writes[0];
    return fmt::format("{} of {} {}", register_name(code, use.slot), in,
                       words(change.instead, is_predicate(use)));
  }
  const vm::Use& use = signature.reads[change.source];
  if (change.instead == Instead::another)
    return fmt::format("{} for {} in {}", register_name(code, change.by), register_name(code, use.slot), in);
  return fmt::format("{} {} in {}", register_name(code, use.slot), words(change.instead, is_predicate(use)),
                     in);
}

std::map<vm::Slot, Lifetime> lifetimes(const vm::Code& code, const vm::ChangedRuns::Executed& executed) {
  std::map<vm::Slot, Lifetime> all;
  for (const vm::RegisterPlace& place : code.registers) {
    const ptx::Register& reg =
        code.module->functions[static_cast<size_t>(place.function)].registers[static_cast<size_t>(place.reg)];
    Lifetime& made = all[place.slot];
    made.cell = vm::cell_of(reg.type), made.real = ptx::is_float(reg.type);
  }
  for (size_t i = 0; i < code.ops.size(); ++i) {
    if (!executed.times[i]) continue;
    for (const vm::Use& use : code.signatures[i].writes)
      if (const auto known = all.find(use.slot); known != all.end())
        known->second.first_write = std::min(known->second.first_write, i), known->second.last_write = i;
    for (const vm::Use& use : code.signatures[i].reads)
      if (const auto known = all.find(use.slot); known != all.end()) known->second.last_read = i;
  }
  return all;
}

std::vector<vm::Slot> others_for(const std::map<vm::Slot, Lifetime>& all, const vm::Use& use, size_t at) {
  const auto own = all.find(use.slot);
  const bool real = own == all.end() ? is_float(use) : own->second.real;
  std::vector<std::pair<size_t, vm::Slot>> near;
  for (const auto& [slot, life] : all)
    if (slot != use.slot && life.cell == use.cell && life.real == real && life.first_write < at &&
        life.last_read >= at)
      near.emplace_back(life.last_write < at ? at - life.last_write : life.last_write - at, slot);
  std::sort(near.begin(), near.end());
  if (near.size() > kOthers) near.resize(kOthers);
  std::vector<vm::Slot> slots;
  for (const auto& [distance, slot] : near) slots.push_back(slot);
  return slots;
}

}  // namespace assay
