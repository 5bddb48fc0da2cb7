// run_recorded: the plan's launches, block by block, under the recorder.
#include <algorithm>
#include <chrono>

#include "src/base/vm/machine.h"
#include "src/base/vm/recorder.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

bool is_real(Dtype d) {
  return d != Dtype::i32 && d != Dtype::i64 && d != Dtype::u8;
}

/// An area per tensor and workspace. Elements of real inputs become leaves, as long as there are numbers for
/// them.
void add_areas(const Memory& memory, const Plan& plan, const TensorMap& inputs, RecordedRun& run) {
  uint32_t next_leaf = 0;
  for (const Allocation& allocation : memory.allocations()) {
    ProvenanceMemory::Origin area;
    if (allocation.tensor) area.element_bytes = static_cast<uint32_t>(format(allocation.tensor->dtype).bytes);
    const bool constant = std::any_of(plan.constants.begin(), plan.constants.end(),
                                      [&](const Tensor& t) { return t.name == allocation.name; });
    if (constant) area.untouched = kNothing;
    const auto input = inputs.find(allocation.name);
    if (input != inputs.end()) {
      const auto elements = static_cast<uint64_t>(input->second.size());
      const bool numbered = is_real(input->second.dtype) && next_leaf + elements < kLeaf;
      area.untouched = is_real(input->second.dtype) ? kForgotten : kNothing;
      area.is_input = numbered;
      if (allocation.layout) area.layout = *allocation.layout;
      if (numbered) {
        area.first_leaf = next_leaf;
        run.leaves.push_back({next_leaf, static_cast<int32_t>(run.input_names.size())});
        next_leaf += static_cast<uint32_t>(elements);
      }
      run.input_names.push_back(allocation.name);
    }
    run.memory.add(allocation.name, allocation.base, allocation.bytes, std::move(area));
  }
}

}  // namespace

Outcome run_recorded(const Plan& plan, const TensorMap& inputs, const MachineOptions& options,
                     Recording* recording, int32_t watched_event) {
  const auto start = std::chrono::steady_clock::now();
  PreparedPlan prepared(plan, inputs, options);
  auto run = std::make_shared<RecordedRun>();
  run->launches = plan.launches;
  run->watched = watched_event;
  add_areas(prepared.memory(), plan, inputs, *run);
  Recorder recorder(run);
  Outcome outcome;
  for (size_t i = 0; i < plan.launches.size() && !outcome.trap && !recorder.finished(); i++) {
    const LaunchContext& context = prepared.enter(i);
    TracedLaunch done = run_traced(context, prepared.blocks(i), recorder,
                                   [&](bool trapped) { return trapped || recorder.finished(); });
    outcome.trap = std::move(done.trap);
    outcome.lane_instructions += done.lane_instructions;
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome.trap && !recorder.finished()) outcome.outputs = prepared.take_outputs();
  *recording = make_recording(run);
  return outcome;
}

}  // namespace assay::vm
