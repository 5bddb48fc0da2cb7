#include "src/verification/diagnosis/called_bodies.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/opcode.h"

namespace assay {
namespace {

/// Registers that are tried in the place of one.
constexpr size_t kOfBody = 32;
/// Of an op that is compared with those of other calls, in nanoseconds (counted_work.h).
constexpr double kOfOp = 400;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

/// "%d2r5": at depth 2, "r5".
CalledBodies::Name CalledBodies::name_of(const std::string& reg) {
  size_t at = 2;
  while (at < reg.size() && is_digit(reg[at])) ++at;
  if (!reg.starts_with("%d") || at == 2 || at == reg.size()) return {0, reg};
  return {std::atoi(reg.c_str() + 2), reg.substr(at)};
}

void CalledBodies::add(size_t launch, const vm::Code& code, const std::vector<Where>& where) {
  Launch& here = launches_[launch];
  for (const vm::RegisterPlace& place : code.registers) {
    const ptx::Function& function = code.module->functions[static_cast<size_t>(place.function)];
    const Name name = name_of(function.registers[static_cast<size_t>(place.reg)].name);
    here.slots[{name.depth, name.own}] = place.slot;
    here.names[place.slot] = name;
  }
  count_work(static_cast<double>(code.ops.size()), kOfOp);
  for (size_t at = 0; at < code.ops.size(); ++at) {
    const vm::Signature& signature = code.signatures[at];
    const ptx::Instruction* const in = vm::instruction_of(code, code.ops[at]);
    Op& op = here.ops.emplace_back();
    if (!in || where[at].body < 0) continue;
    op.body = where[at].body;
    std::string text = std::to_string(where[at].line) + in->opcode;
    const auto note = [&](const vm::Use& use) {
      const auto known = here.names.find(use.slot);
      text += known == here.names.end() ? " -" : ' ' + known->second.own;
      if (known != here.names.end()) op.depth = std::max(op.depth, known->second.depth);
    };
    for (const vm::Use& use : signature.writes) note(use);
    for (const vm::Use& use : signature.reads) note(use);
    std::map<vm::Slot, size_t>& written = here.written[op.body];
    for (const vm::Use& use : signature.writes)
      if (here.names.contains(use.slot)) written.try_emplace(use.slot, at);
    if (op.depth == 0) continue;
    op.sites = sites_number_.try_emplace(text, static_cast<int>(sites_.size())).first->second;
    if (static_cast<size_t>(op.sites) == sites_.size()) sites_.emplace_back();
    sites_[static_cast<size_t>(op.sites)].push_back({launch, at});
  }
}

const std::vector<CalledBodies::Site>* CalledBodies::alike(const Site& site) const {
  const auto known = launches_.find(site.launch);
  if (known == launches_.end()) return nullptr;
  const int number = known->second.ops[site.op].sites;
  return number < 0 ? nullptr : &sites_[static_cast<size_t>(number)];
}

std::vector<vm::Slot> CalledBodies::own_registers(const Site& site) const {
  const Launch& here = launches_.at(site.launch);
  const Op& op = here.ops[site.op];
  std::vector<std::pair<size_t, vm::Slot>> near;
  for (const auto& [slot, at] : here.written.at(op.body))
    if (here.names.at(slot).depth == op.depth)
      near.emplace_back(at < site.op ? site.op - at : at - site.op, slot);
  std::sort(near.begin(), near.end());
  if (near.size() > kOfBody) near.resize(kOfBody);
  std::vector<vm::Slot> slots;
  for (const auto& [distance, slot] : near) slots.push_back(slot);
  return slots;
}

vm::Slot CalledBodies::in_call(const Site& from, vm::Slot slot, const Site& to) const {
  const Launch &here = launches_.at(from.launch), &there = launches_.at(to.launch);
  const auto name = here.names.find(slot);
  if (name == here.names.end()) return vm::no_slot;
  const auto known = there.slots.find({there.ops[to.op].depth, name->second.own});
  return known == there.slots.end() ? vm::no_slot : known->second;
}

}  // namespace assay
