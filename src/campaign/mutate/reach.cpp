#include "src/campaign/mutate/reach.h"

#include <algorithm>
#include <bit>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/traced_launch.h"

namespace assay {
namespace {

struct ReachTrace : vm::PlainTrace {
  static constexpr unsigned hooks =
      vm::hook::guarded | vm::hook::before | vm::hook::after | vm::hook::end_block;
  const vm::Op* ops = nullptr;
  std::vector<uint8_t> executed;  ///< by op
  uint64_t longest_warp = 0;

  void before(vm::Warp&, const vm::Op& op, uint32_t) { note(op); }
  void guarded(vm::Warp&, const vm::Op& op, uint32_t) { note(op); }
  void after(vm::Warp& warp, const vm::Op& op, uint32_t mask) {
    if (op.d_cell != vm::Cell::mask || op.row->flow != vm::Flow::comparison) return;
    uint8_t& seen = executed[static_cast<size_t>(&op - ops)];
    if (warp.mask(op.d) & mask) seen |= saw_true;
    if (~warp.mask(op.d) & mask) seen |= saw_false;
    const ptx::Type type = op.row->sources[0];
    if (ptx::is_float(type) || op.s[1] == vm::no_slot || (seen & saw_any_order) == saw_any_order) return;
    if (vm::cell_of(type) == vm::Cell::wide)
      seen |= orders(as<int64_t>(warp.wide(op.s[0])), as<int64_t>(warp.wide(op.s[1])), mask);
    else if (type == ptx::Type::s32)
      seen |= orders(as<int32_t>(warp.word(op.s[0])), as<int32_t>(warp.word(op.s[1])), mask);
    else
      seen |= orders(warp.word(op.s[0]), warp.word(op.s[1]), mask);
  }
  void end_block(vm::Block& block) {
    for (const vm::Warp& warp : block.warps) longest_warp = std::max(longest_warp, warp.executed);
  }

 private:
  void note(const vm::Op& op) { executed[static_cast<size_t>(&op - ops)] |= came_to; }
  template <class Integer, class Cells>
  static const Integer* as(const Cells* cells) {
    return reinterpret_cast<const Integer*>(cells);
  }
  template <class Integer>
  static uint8_t orders(const Integer* a, const Integer* b, uint32_t mask) {
    uint8_t seen = 0;
    vm::each_lane(mask, [&](int i) {
      seen |= a[i] < b[i] ? saw_less : a[i] == b[i] ? saw_equal : saw_greater;
    });
    return seen;
  }
};

}  // namespace

bool Reach::has(const std::string& module, int32_t function, int32_t instruction) const {
  const auto found = executed.find({module, function});
  return found != executed.end() && (found->second[static_cast<size_t>(instruction)] & came_to);
}

int64_t new_reach(const std::vector<uint8_t>& own, const std::vector<uint8_t>& seen) {
  int64_t gained = 0;
  for (size_t i = 0; i < own.size(); ++i)
    gained += std::popcount(static_cast<unsigned>(own[i] & ~(i < seen.size() ? seen[i] : 0)));
  return gained;
}

int64_t add_reach(const std::vector<uint8_t>& own, std::vector<uint8_t>& seen) {
  const int64_t gained = new_reach(own, seen);
  seen.resize(std::max(seen.size(), own.size()));
  for (size_t i = 0; i < own.size(); ++i) seen[i] |= own[i];
  return gained;
}

int64_t Reach::add(const Reach& other) {
  int64_t gained = 0;
  for (const auto& [where, flags] : other.executed) gained += add_reach(flags, executed[where]);
  return gained;
}

Reach reach_of(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options) {
  Reach reach;
  vm::PreparedProgram prepared(plan, inputs, options);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const vm::LaunchContext& context = prepared.enter(i);
    const vm::Code& code = *context.code;
    ReachTrace trace;
    trace.ops = code.ops.data();
    trace.executed.assign(code.ops.size(), 0);
    const bool trapped = vm::run_traced(context, prepared.blocks(i), trace).trap.has_value();
    reach.longest_warp = std::max(reach.longest_warp, trace.longest_warp);
    for (size_t at = 0; at < code.ops.size(); ++at) {
      const vm::Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0) continue;
      auto& flags = reach.executed[{plan.launches[i].module, op.function}];
      flags.resize(code.module->functions[static_cast<size_t>(op.function)].body.size());
      flags[static_cast<size_t>(op.instruction)] |= trace.executed[at];
    }
    if (trapped) break;
  }
  return reach;
}

}  // namespace assay
