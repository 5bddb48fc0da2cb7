#include "src/campaign/mutate/propagation.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/campaign/mutate/value_range.h"
#include "src/base/ptx/type.h"
#include "src/base/vm/traced_launch.h"

namespace assay {
namespace {

/// By line of the module's text, which a mutation keeps: a hash of all that the instructions there give, and to
/// whom.
struct EffectTrace : vm::PlainTrace {
  static constexpr unsigned hooks = vm::hook::after;
  int32_t function = -1;
  const ptx::Function* code = nullptr;
  std::map<int32_t, uint64_t> hashes;

  void after(vm::Warp& warp, const vm::Op& op, uint32_t mask) {
    if (op.function != function || op.instruction < 0) return;
    hash_ = &hashes[code->body[static_cast<size_t>(op.instruction)].ptx_line];
    add(mask);
    if (op.d != vm::no_slot) cell(warp, op.d, op.d_cell, mask);
    if (op.d2 != vm::no_slot) add(warp.mask(op.d2) & mask);
    if (!op.row) return;
    const bool loads = op.row->effect == vm::Effect::load || op.row->effect == vm::Effect::load_matrix;
    const bool stores = op.row->effect == vm::Effect::store;
    const uint32_t slots = loads || stores ? op.slot_count : op.row->effect == vm::Effect::matrix ? 4 : 0;
    for (uint32_t i = 0; i < slots && i < op.slot_count; ++i) cell(warp, op.slots[i], vm::Cell::word, mask);
    if (!stores) return;
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

std::map<int32_t, uint64_t> effects_of(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options,
                                       const std::string& module, int32_t function) {
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

std::string_view base_of(const ptx::Instruction& in) {
  return std::string_view(in.opcode).substr(0, in.opcode.find('.'));
}

/// Where the run can come from: the instruction before, and branches.
std::vector<std::vector<int32_t>> predecessors_of(const ptx::Function& f) {
  std::vector<std::vector<int32_t>> before(f.body.size());
  for (size_t i = 0; i < f.body.size(); ++i) {
    const ptx::Instruction& in = f.body[i];
    const std::string_view base = base_of(in);
    const bool leaves = base == "bra" || base == "ret" || base == "exit" || base == "trap" || base == "brx";
    if (i + 1 < f.body.size() && (!leaves || in.predicate >= 0)) before[i + 1].push_back(static_cast<int32_t>(i));
    if (base != "bra" || in.operands.empty() || in.operands[0].target < 0) continue;
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
    const bool reads = std::any_of(read.begin(), read.end(), [&](int32_t reg) { return infected.contains(reg); });
    if (differs(in) ? base_of(in) == "st" : reads) ends.push_back(static_cast<int32_t>(i));
  }
  return ends;
}

std::string_view why_it_ends(const ptx::Instruction& in) {
  struct Row {
    std::string_view opcodes, why;
  };
  static constexpr Row rows[] = {
      {" selp ", "the other one is chosen"},
      {" setp set ", "it compares alike"},
      {" min max ", "the other one is taken"},
      {" bra ", "the way is the same"},
      {" ld ldu atom red ldmatrix ", "the same is read there"},
      {" st stmatrix ", "nothing reads what is stored, or the same was there"},
      {" and or xor not lop3 shl shr shf bfe bfi prmt ", "the bits that differ are left out"},
      {" shfl vote match ", "no lane takes it from there"},
      {" fma mma wgmma sqrt ex2 lg2 rcp ", "it is rounded away, or times zero"},
  };
  const std::string name = " " + std::string(base_of(in)) + " ";
  for (const Row& row : rows)
    if (row.opcodes.find(name) != std::string_view::npos) return row.why;
  if (constexpr std::string_view either = " add sub mul mad div rem cvt "; either.find(name) != either.npos) {
    const auto type = ptx::type_named(in.opcode.substr(in.opcode.rfind('.') + 1));
    return type && ptx::is_float(*type) ? "it is rounded away, or times zero" : "the number is the same";
  }
  return "not where it differs";
}

std::vector<int32_t> closed_branches(const ptx::Function& f, const std::vector<bool>& came_to, int32_t instruction) {
  const auto before = predecessors_of(f);
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
