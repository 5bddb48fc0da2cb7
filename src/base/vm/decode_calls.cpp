// call: direct, and through the address of a function (PTX ISA 9.7.13, "call").
#include <algorithm>

#include "src/base/vm/decoder.h"
#include "src/base/vm/memory.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Type;

/// The sizes of a call's parameters are those of the function.
bool Decoder::takes(const CallSite& site, const ptx::Function& function) const {
  auto same = [&](const Operand* list, const std::vector<ptx::Parameter>& parameters) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto local = list->elements[i].symbol - static_cast<int32_t>(module_->variables.size());
      if (local < 0 || here().variables[static_cast<size_t>(local)].bytes != parameters[i].bytes)
        return false;
    }
    return true;
  };
  return same(site.arguments, function.parameters) && same(site.returns, function.returns);
}

void Decoder::call(const ptx::Instruction& instruction, Op& op) {
  const CallSite site = call_site(instruction);
  if (!site.target) fail(instruction, "names no function");
  if (site.target->kind == Operand::Kind::reg) return call_address(instruction, site, op);
  const int32_t callee = call_graph_.function_named(site.target->name);
  if (callee < 0) fail(instruction, "unknown function " + site.target->name);
  call_function(instruction, site, callee, op);
}

/// Which of the function's variables a call's argument is.
int32_t Decoder::argument_variable(const ptx::Instruction& instruction, const Operand& argument) const {
  const auto local = argument.symbol - static_cast<int32_t>(module_->variables.size());
  if (argument.kind != Operand::Kind::symbol || local < 0 ||
      here().variables[static_cast<size_t>(local)].space != ptx::Space::param)
    fail(instruction, "arguments must be .param variables");
  return local;
}

/// Arguments are copied to the callee's parameters in local memory, and its results back by a second op after
/// it returns. Op::slots holds (from, to, bytes) triples.
void Decoder::call_function(const ptx::Instruction& instruction, const CallSite& site, int32_t callee,
                            Op& op) {
  const ptx::Function& target = module_->functions[static_cast<size_t>(callee)];
  if (!target.defined && call_system(instruction, site, target, op)) return;
  if (!target.defined && (target.name.starts_with("__cudaCDP") || target.name.starts_with("cudaGraph")))
    fail(instruction, target.name + ": dynamic parallelism is not supported");
  if (!target.defined) fail(instruction, "function " + target.name + " has no body in this module");
  if (target.entry) fail(instruction, target.name + " is an entry, not a function");
  auto triples = [&](const Operand* list, const std::vector<ptx::Parameter>& parameters, size_t first,
                     bool to_callee) {
    std::vector<Slot> result;
    const size_t count = list ? list->elements.size() : 0;
    if (count != parameters.size()) fail(instruction, "wrong number of arguments for " + target.name);
    for (size_t i = 0; i < count; ++i) {
      const int32_t local = argument_variable(instruction, list->elements[i]);
      const ptx::Variable& argument = here().variables[static_cast<size_t>(local)];
      if (argument.bytes != parameters[i].bytes)
        fail(instruction, argument.name + " has " + std::to_string(argument.bytes) + " bytes, " +
                              parameters[i].name + " of " + target.name + " has " +
                              std::to_string(parameters[i].bytes));
      const auto mine = static_cast<Slot>(function_offsets_.at({function_, local}));
      const auto theirs =
          static_cast<Slot>(function_offsets_.at({callee, -1 - static_cast<int32_t>(first + i)}));
      result.insert(result.end(), {to_callee ? mine : theirs, to_callee ? theirs : mine,
                                   static_cast<Slot>(parameters[i].bytes)});
    }
    return result;
  };
  const std::vector<Slot> arguments = triples(site.arguments, target.parameters, 0, true);
  if (has_frames(function_) || has_frames(callee))
    return call_with_frames(arguments, triples(site.returns, target.returns, target.parameters.size(), false),
                            callee, op);
  set_slots(op, arguments);
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

/// Calls that the system answers. Op::slots holds the arguments' places in local memory; the result takes the
/// first one's. False: it knows no such function.
bool Decoder::call_system(const ptx::Instruction& instruction, const CallSite& site,
                          const ptx::Function& target, Op& op) {
  struct Known {
    std::string_view name;
    const char* row;
    std::vector<int64_t> arguments;  ///< bytes
    int64_t result;
  };
  static const Known known[] = {{"vprintf", "call vprintf", {8, 8}, 4},
                                {"malloc", "call malloc", {8}, 8},
                                {"free", "call free", {8}, 0},
                                {"__assertfail", "call assertion", {8, 8, 4, 8, 8}, 0}};
  const auto found = std::find_if(std::begin(known), std::end(known),
                                  [&](const Known& each) { return each.name == target.name; });
  if (found == std::end(known)) return false;
  const auto place = [&](const Operand& argument, int64_t bytes) {
    const int32_t local = argument_variable(instruction, argument);
    if (here().variables[static_cast<size_t>(local)].bytes != bytes)
      fail(instruction, "wrong size of an argument");
    return static_cast<Slot>(function_offsets_.at({function_, local}));
  };
  if (!site.arguments || site.arguments->elements.size() != found->arguments.size())
    fail(instruction, "takes " + std::to_string(found->arguments.size()) + " arguments");
  std::vector<Slot> places;
  for (const Operand& argument : site.arguments->elements)
    places.push_back(place(argument, found->arguments[places.size()]));
  op.row = find_row(found->row);
  op.kind = op.row->kind;
  set_slots(op, places);
  if (target.name == "malloc") code_->heap = code_->global_atomics = true;
  if (!site.returns || site.returns->elements.empty()) return true;
  Op copy = op;
  copy.row = find_row("call results");
  copy.kind = copy.row->kind;
  set_slots(copy,
            {places[0], place(site.returns->elements[0], found->result), static_cast<Slot>(found->result)});
  code_->ops.push_back(op);
  op = copy;
  return true;
}

/// An indirect call: "is it this function? then call it" for every function whose address the module takes
/// and whose parameters fit, after a check that each lane's address is one of them.
void Decoder::call_address(const ptx::Instruction& instruction, const CallSite& site, Op& op) {
  const Slot address = source(*site.target, Type::u64);
  std::vector<int32_t> callees;
  std::vector<Slot> offsets;
  for (const int32_t callee : call_graph_.with_an_address()) {
    const ptx::Function& target = module_->functions[static_cast<size_t>(callee)];
    if (!target.defined || target.entry || !fits(site, target)) continue;
    if (call_graph_.is_recursive(function_, callee) || !takes(site, target)) continue;
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
    compare.d = new_cell(Cell::mask);
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
