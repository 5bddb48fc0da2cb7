// call: direct, and through the address of a function (PTX ISA 9.7.13, "call").
#include <algorithm>

#include "src/vm/decoder.h"
#include "src/vm/memory.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Type;

Decoder::CallSite Decoder::call_site(const ptx::Instruction& instruction) {
  CallSite site;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::vector)
      (site.target ? site.arguments : site.returns) = &operand;
    else if (!site.target)
      site.target = &operand;
  }
  return site;
}

int32_t Decoder::function_named(const std::string& name) const {
  for (size_t i = 0; i < module_->functions.size(); ++i)
    if (module_->functions[i].name == name) return static_cast<int32_t>(i);
  return -1;
}

void Decoder::call(const ptx::Instruction& instruction, Op& op) {
  const CallSite site = call_site(instruction);
  if (!site.target) fail(instruction, "names no function");
  if (site.target->kind == Operand::Kind::reg) return call_address(instruction, site, op);
  const int32_t callee = function_named(site.target->name);
  if (callee < 0) fail(instruction, "unknown function " + site.target->name);
  call_function(instruction, site, callee, op);
}

/// Arguments are copied to the callee's parameters in local memory, and its results back by a second op after
/// it returns. Op::slots holds (from, to, bytes) triples.
void Decoder::call_function(const ptx::Instruction& instruction, const CallSite& site, int32_t callee,
                            Op& op) {
  const ptx::Function& target = module_->functions[static_cast<size_t>(callee)];
  if (!target.defined) fail(instruction, "function " + target.name + " has no body in this module");
  if (callee == function_ || target.entry) fail(instruction, "recursion is not supported");

  auto triples = [&](const Operand* list, const std::vector<ptx::Parameter>& parameters, size_t first,
                     bool to_callee) {
    std::vector<Slot> result;
    const size_t count = list ? list->elements.size() : 0;
    if (count != parameters.size()) fail(instruction, "wrong number of arguments for " + target.name);
    for (size_t i = 0; i < count; ++i) {
      const Operand& argument = list->elements[i];
      if (argument.symbol < 0) fail(instruction, "arguments must be .param variables");
      const auto local =
          static_cast<int32_t>(argument.symbol - static_cast<int32_t>(module_->variables.size()));
      const auto mine = static_cast<Slot>(function_offsets_.at({function_, local}));
      const auto theirs =
          static_cast<Slot>(function_offsets_.at({callee, -1 - static_cast<int32_t>(first + i)}));
      result.insert(result.end(), {to_callee ? mine : theirs, to_callee ? theirs : mine,
                                   static_cast<Slot>(parameters[i].bytes)});
    }
    return result;
  };
  set_slots(op, triples(site.arguments, target.parameters, 0, true));
  call_fixups_.emplace_back(code_->ops.size(), callee);
  pending_functions_.push_back(callee);
  if (!site.returns || site.returns->elements.empty()) return;
  // The copy of results runs after the call returns: the call is appended first.
  Op copy = op;
  copy.row = find_row("call results");
  copy.kind = copy.row->kind;
  set_slots(copy, triples(site.returns, target.returns, target.parameters.size(), false));
  code_->ops.push_back(op);
  op = copy;
}

/// Functions whose address the module takes: in an initialiser or as a source operand.
std::vector<int32_t> Decoder::functions_with_an_address() const {
  std::vector<char> taken(module_->functions.size(), 0);
  auto mark = [&](int32_t function) {
    if (function >= 0) taken[static_cast<size_t>(function)] = 1;
  };
  for (const ptx::Variable& variable : module_->variables)
    for (const ptx::Variable::Address& address : variable.addresses) mark(address.function);
  for (const ptx::Function& function : module_->functions)
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.opcode.starts_with("call")) continue;
      for (const Operand& operand : instruction.operands)
        if (operand.kind == Operand::Kind::symbol && operand.symbol == -1 && operand.parameter < 0)
          mark(function_named(operand.name));
    }
  std::vector<int32_t> result;
  for (size_t i = 0; i < taken.size(); ++i)
    if (taken[i]) result.push_back(static_cast<int32_t>(i));
  return result;
}

/// An indirect call: "is it this function? then call it" for every function whose address the module takes
/// and whose parameters fit, after a check that each lane's address is one of them.
void Decoder::call_address(const ptx::Instruction& instruction, const CallSite& site, Op& op) {
  auto fits = [](const Operand* list, const std::vector<ptx::Parameter>& parameters) {
    return (list ? list->elements.size() : 0) == parameters.size();
  };
  const Slot address = source(*site.target, Type::u64);
  std::vector<int32_t> callees;
  std::vector<Slot> offsets;
  for (const int32_t callee : functions_with_an_address()) {
    const ptx::Function& target = module_->functions[static_cast<size_t>(callee)];
    if (!target.defined || target.entry || callee == function_) continue;
    if (!fits(site.arguments, target.parameters) || !fits(site.returns, target.returns)) continue;
    callees.push_back(callee);
    offsets.push_back(static_cast<Slot>(function_address(callee) - function_base));
  }
  Op check = op;
  check.row = find_row("call target");
  check.kind = check.row->kind;
  check.s[0] = address;
  check.source_count = 1;
  set_slots(check, offsets);
  if (callees.empty()) {
    op = check;
    return;
  }
  code_->ops.push_back(check);
  for (const int32_t callee : callees) {
    Op compare = check;
    compare.row = find_row("setp.eq.u64");
    compare.kind = compare.row->kind;
    compare.d_cell = Cell::mask;
    compare.d = code_->register_bytes;
    code_->register_bytes += 64;
    compare.s[1] = constant_slot(function_address(callee), Cell::wide);
    compare.source_count = 2;
    compare.slot_count = 0;
    compare.guarded = false;  // a guarded call: its guard joins the comparison
    if (op.guarded) {
      compare.boolean = BooleanOp::land;
      compare.s[2] = op.guard;
      compare.third_negated = op.guard_negated;
      compare.source_count = 3;
    }
    code_->ops.push_back(compare);
    Op chosen = op;
    chosen.guarded = true;
    chosen.guard_negated = false;
    chosen.guard = compare.d;
    call_function(instruction, site, callee, chosen);
    if (callee == callees.back())
      op = chosen;
    else
      code_->ops.push_back(chosen);
  }
}

}  // namespace assay::vm
