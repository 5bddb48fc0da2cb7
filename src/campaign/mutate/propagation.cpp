#include "src/campaign/mutate/propagation.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/vm/signature.h"
#include "src/base/vm/traced_launch.h"
#include "src/campaign/mutate/value_range.h"

namespace assay {
namespace {

/// By line of the module's text, which a mutation keeps: a hash of all that the instructions there give, and
/// to whom.
struct EffectTrace : vm::PlainTrace {
  static constexpr unsigned hooks = vm::hook::after;
  int32_t function = -1;
  const ptx::Function* code = nullptr;
  std::map<int32_t, uint64_t> hashes;

  void after(vm::Warp& warp, const vm::Op& op, uint32_t mask) {
    if (op.function != function || op.instruction < 0) return;
    hash_ = &hashes[code->body[static_cast<size_t>(op.instruction)].ptx_line];
    add(mask);
    const vm::Signature& signature = warp.block->context->code->signature(op);
    for (const vm::Use& use : signature.writes) cell(warp, use.slot, use.cell, mask);
    if (signature.flow() != vm::Flow::store) return;
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) add(warp.address[lane]);
  }

 private:
  void add(uint64_t value) { *hash_ = (*hash_ ^ value) * 0x100000001b3; }
  void cell(const vm::Warp& warp, vm::Slot slot, vm::Cell kind, uint32_t mask) {
    if (kind == vm::Cell::mask) return add(warp.mask(slot) & mask);
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) add(kind == vm::Cell::wide ? warp.wide(slot)[lane] : warp.word(slot)[lane]);
  }

  uint64_t* hash_ = nullptr;
};

std::map<int32_t, uint64_t> effects_of(const Program& plan, const TensorMap& inputs,
                                       const vm::MachineOptions& options, const std::string& module,
                                       int32_t function) {
  EffectTrace trace;
  vm::PreparedProgram prepared(plan, inputs, options);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const vm::LaunchContext& context = prepared.enter(i);
    const bool here = plan.launches[i].module == module;
    trace.function = here ? function : -2;
    trace.code = here ? &context.code->module->functions[static_cast<size_t>(function)] : nullptr;
    if (vm::run_traced(context, prepared.blocks(i), trace).trap) break;
  }
  return std::move(trace.hashes);
}

/// Where the run can come from: the instruction before, and branches.
std::vector<std::vector<int32_t>> reached_from(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> before(f.body.size());
  for (size_t i = 0; i < f.body.size(); ++i) {
    const ptx::Instruction& in = f.body[i];
    using enum vm::Control;
    const vm::Control control = vm::signature_of(in).control;
    const bool leaves =
        control == branch || control == ret || control == exit || control == trap || control == branch_table;
    if (i + 1 < f.body.size() && (!leaves || in.predicate >= 0))
      before[i + 1].push_back(static_cast<int32_t>(i));
    if (control != branch || in.operands.empty() || in.operands[0].target < 0) continue;
    const auto target = static_cast<size_t>(in.operands[0].target);
    if (target < before.size()) before[target].push_back(static_cast<int32_t>(i));
  }
  return before;
}

}  // namespace

std::vector<int32_t> difference_ends(const Program& original, const Program& changed, const TensorMap& inputs,
                                     const vm::MachineOptions& options, const std::string& module,
                                     const ptx::Function& f, const ptx::Mutation& mutation) {
  const auto was = effects_of(original, inputs, options, module, mutation.function),
             is = effects_of(changed, inputs, options, module, mutation.function);
  const auto differs = [&](const ptx::Instruction& in) {
    const auto a = was.find(in.ptx_line), b = is.find(in.ptx_line);
    if (a == was.end() || b == is.end()) return (a == was.end()) != (b == is.end());
    return a->second != b->second;
  };
  std::set<int32_t> infected;  // registers
  for (const ptx::Instruction& in : f.body)
    if (differs(in))
      for (const int32_t reg : written_registers(in)) infected.insert(reg);
  std::vector<int32_t> ends;
  for (size_t i = 0; i < f.body.size(); ++i) {
    const ptx::Instruction& in = f.body[i];
    if (!was.contains(in.ptx_line)) continue;
    const std::vector<int32_t> read = read_registers(in);
    const bool reads =
        std::any_of(read.begin(), read.end(), [&](int32_t reg) { return infected.contains(reg); });
    if (differs(in) ? vm::signature_of(in).flow() == vm::Flow::store : reads)
      ends.push_back(static_cast<int32_t>(i));
  }
  return ends;
}

std::string_view why_it_ends(const ptx::Instruction& in) {
  const vm::TextSignature signature = vm::signature_of(in);
  const std::string_view rounds = "it is rounded away, or times zero", same = "the number is the same";
  if (signature.control == vm::Control::branch) return "the way is the same";
  switch (signature.flow()) {
    case vm::Flow::select:
      return "the other one is chosen";
    case vm::Flow::comparison:
      return "it compares alike";
    case vm::Flow::load:
    case vm::Flow::load_matrix:
    case vm::Flow::atomic:
      return "the same is read there";
    case vm::Flow::store:
    case vm::Flow::store_matrix:
      return "nothing reads what is stored, or the same was there";
    case vm::Flow::logic:
    case vm::Flow::shift:
    case vm::Flow::permute:
      return "the bits that differ are left out";
    case vm::Flow::exchange:
    case vm::Flow::vote:
      return "no lane takes it from there";
    case vm::Flow::arithmetic:
    case vm::Flow::integer:
    case vm::Flow::conversion:
      if (in.form.operation == ptx::Operation::min || in.form.operation == ptx::Operation::max)
        return "the other one is taken";
      return ptx::is_float(in.form.type()) ? rounds : same;
    case vm::Flow::matrix:
      return rounds;
    default:
      return "not where it differs";
  }
}

std::vector<int32_t> closed_branches(const ptx::Function& f, const std::vector<bool>& came_to,
                                     int32_t instruction) {
  const auto before = reached_from(f);
  std::set<int32_t> seen{instruction};
  std::vector<int32_t> work{instruction}, closed;
  while (!work.empty()) {
    const auto at = static_cast<size_t>(work.back());
    work.pop_back();
    for (const int32_t from : before[at]) {
      if (!seen.insert(from).second) continue;
      (came_to[static_cast<size_t>(from)] ? closed : work).push_back(from);
    }
  }
  std::sort(closed.begin(), closed.end());
  return closed;
}

}  // namespace assay
