#include "src/base/vm/thread_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/event_log.h"
#include "src/base/vm/slice_trace.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

uint64_t linear(const std::array<uint32_t, 3>& at, const std::array<uint32_t, 3>& size) {
  return at[0] + uint64_t{size[0]} * (at[1] + uint64_t{size[1]} * at[2]);
}

/// What is asked of a warp of one block.
struct Asked {
  std::map<uint32_t, std::vector<size_t>> moments;  ///< by record
  uint32_t lanes = 0;
  std::array<size_t, 32> thread{};  ///< into ValuesNear::threads
};
using AskedBlock = std::map<uint32_t, Asked>;  ///< by warp

struct NearTrace : PlainTrace {
  static constexpr unsigned hooks = hook::begin_block | hook::after | hook::landed;
  static constexpr double nanoseconds = 50;

  void begin_block(Block& block) {
    code = block.context->code, record = 0;
    const auto known = asked.find(block.linear);
    of_block = known == asked.end() ? nullptr : &known->second;
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& signature = code->signature(op);
    if (!SliceTrace::is_logged(signature)) return;
    const uint32_t now = record++;
    if (!of_block || op.function < 0 || op.instruction < 0) return;
    const auto known = of_block->find(warp.index);
    if (known == of_block->end()) return;
    const auto real = [](const Use& use) { return use.type == ptx::Type::f32 || use.type == ptx::Type::f64; };
    const auto made = std::find_if(signature.writes.begin(), signature.writes.end(), real);
    if (made != signature.writes.end()) note(warp, op, mask, now, signature.flow(), *made, known->second);
  }
  void landed(Warp&, const Landing&) { ++record; }

  const Code* code = nullptr;
  std::map<uint64_t, AskedBlock> asked;  ///< by block of the launch
  AskedBlock* of_block = nullptr;
  ValuesNear* to = nullptr;
  uint32_t record = 0, apart = 0;
  size_t count = 0, most = 0;

 private:
  static double number(const Warp& warp, const Use& use, int lane) {
    return use.cell == Cell::wide ? value_of(use.type, warp.wide(use.slot)[lane])
                                  : value_of(use.type, warp.word(use.slot)[lane]);
  }
  void note(const Warp& warp, const Op& op, uint32_t mask, uint32_t now, Flow flow, const Use& use,
            const Asked& of) {
    const auto next = of.moments.lower_bound(now);
    const bool is_near = (next != of.moments.end() && next->first - now <= apart) ||
                         (next != of.moments.begin() && now - std::prev(next)->first <= apart);
    if (!is_near || count > most) return;
    each_lane(mask & of.lanes, [&](int lane) {
      to->threads[of.thread[static_cast<size_t>(lane)]].values.push_back(
          {now, op.function, op.instruction, flow, number(warp, use, lane)});
      ++count;
    });
    if (next == of.moments.end() || next->first != now) return;
    for (const size_t moment : next->second) {
      to->warps[moment].mask |= mask;
      each_lane(mask, [&](int lane) {
        to->warps[moment].number[static_cast<size_t>(lane)] = number(warp, use, lane);
      });
    }
  }
};

}  // namespace

ValuesNear values_near(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                       const std::vector<ThreadMoment>& moments, uint32_t apart, size_t most) {
  PreparedProgram prepared(program, inputs, options);
  ValuesNear found;
  found.warps.resize(moments.size()), found.lane.resize(moments.size());
  std::vector<std::map<uint64_t, AskedBlock>> asked(program.launches.size());
  for (size_t i = 0; i < moments.size(); ++i) {
    const ThreadMoment& at = moments[i];
    const Launch& launch = program.launches[static_cast<size_t>(at.launch)];
    const uint64_t thread = linear(at.thread, launch.block);
    const auto lane = static_cast<size_t>(thread % 32);
    Asked& of = asked[static_cast<size_t>(at.launch)][linear(at.block, launch.grid)]
                     [static_cast<uint32_t>(thread / 32)];
    found.lane[i] = static_cast<uint8_t>(lane);
    of.moments[at.record].push_back(i);
    if (of.lanes >> lane & 1) continue;
    of.lanes |= 1u << lane, of.thread[lane] = found.threads.size();
    found.threads.push_back({at.launch, at.block, at.thread, nullptr, {}});
  }
  NearTrace trace;
  trace.to = &found, trace.apart = apart, trace.most = most;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const LaunchContext& context = prepared.enter(i);
    if (std::any_of(context.cluster.begin(), context.cluster.end(), [](uint32_t n) { return n > 1; }))
      return {};
    trace.asked = std::move(asked[i]);
    if (run_traced(context, prepared.blocks(i), trace).trap || trace.count > most) return {};
    for (ThreadValues& thread : found.threads)
      if (thread.launch == static_cast<int32_t>(i)) thread.module = context.code->module;
  }
  return found;
}

}  // namespace assay::vm
