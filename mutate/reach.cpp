#include "mutate/reach.h"

#include <algorithm>

#include "src/vm/engine.h"
#include "src/vm/launch.h"

namespace assay {
namespace {

struct ReachTrace {
  static constexpr bool enabled = true;
  const vm::Op* ops = nullptr;
  std::vector<uint8_t> executed;  ///< by op
  uint64_t longest_warp = 0;

  void begin_block(vm::Block&) {}
  void before(vm::Warp&, const vm::Op& op, uint32_t) { note(op); }
  void guarded(vm::Warp&, const vm::Op& op, uint32_t) { note(op); }
  void after(vm::Warp&, const vm::Op&, uint32_t) {}
  void landed(vm::Warp&, const vm::Landing&) {}
  void copied_local(vm::Warp&, uint32_t, uint32_t, uint32_t, uint32_t) {}
  void end_block(vm::Block& block) {
    for (const vm::Warp& warp : block.warps) longest_warp = std::max(longest_warp, warp.executed);
  }

 private:
  void note(const vm::Op& op) { executed[static_cast<size_t>(&op - ops)] = 1; }
};

}  // namespace

bool Reach::has(const std::string& module, int32_t function, int32_t instruction) const {
  const auto found = executed.find({module, function});
  return found != executed.end() && found->second[static_cast<size_t>(instruction)] != 0;
}

Reach reach_of(const Plan& plan, const TensorMap& inputs, const vm::MachineOptions& options) {
  Reach reach;
  vm::PreparedPlan prepared(plan, inputs, options);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const vm::LaunchContext& context = prepared.enter(i);
    const vm::Code& code = *context.code;
    ReachTrace trace;
    trace.ops = code.ops.data();
    trace.executed.assign(code.ops.size(), 0);
    vm::Worker worker;
    vm::prepare_worker(worker, context);
    vm::Engine<ReachTrace> engine(worker, trace);
    const auto& grid = plan.launches[i].grid;
    const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
    for (uint64_t block = 0; block < blocks && !worker.block.trap; ++block) engine.run_block(block);
    reach.longest_warp = std::max(reach.longest_warp, trace.longest_warp);
    for (size_t at = 0; at < code.ops.size(); ++at) {
      const vm::Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0) continue;
      auto& flags = reach.executed[{plan.launches[i].module, op.function}];
      flags.resize(code.module->functions[static_cast<size_t>(op.function)].body.size());
      flags[static_cast<size_t>(op.instruction)] |= trace.executed[at];
    }
    if (worker.block.trap) break;
  }
  return reach;
}

}  // namespace assay
