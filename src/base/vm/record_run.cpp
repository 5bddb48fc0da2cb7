// run_recorded: the program's launches, block by block, under the recorder.
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

/// The inputs that lie in an allocation: itself, or its parts.
std::vector<std::string> inputs_in(const Allocation& allocation, const TensorMap& inputs) {
  std::vector<std::string> names;
  if (inputs.contains(allocation.name)) names.push_back(allocation.name);
  for (const Part& part : allocation.parts)
    if (inputs.contains(part.name)) names.push_back(part.name);
  return names;
}

/// How the elements of an input lie in the allocation; nothing: row by row, as all of it. False: not by whole
/// elements.
bool lies_by_elements(const Allocation& allocation, const Tensor& input, const std::string& name,
                      std::optional<TensorLayout>& layout) {
  if (allocation.name == name) {
    if (allocation.layout) layout = *allocation.layout;
    return true;
  }
  const auto part = std::find_if(allocation.parts.begin(), allocation.parts.end(),
                                 [&](const Part& p) { return p.name == name; });
  const auto width = static_cast<uint64_t>(format(input.dtype).bytes);
  layout = TensorLayout{{input.size()},
                        {1},
                        static_cast<int64_t>(part->offset / width),
                        static_cast<int64_t>(allocation.bytes / width)};
  return part->offset % width == 0;
}

/// An area per tensor and workspace. Elements of real inputs become leaves, as long as there are numbers for
/// them; where several lie in one storage, what is read there is known to be of an input, not of which
/// element.
void add_areas(const Memory& memory, const Program& program, const TensorMap& inputs, RecordedRun& run) {
  uint32_t next_leaf = 0;
  for (const Allocation& allocation : memory.allocations()) {
    ProvenanceMemory::Origin area;
    if (allocation.tensor) area.element_bytes = static_cast<uint32_t>(format(allocation.tensor->dtype).bytes);
    const bool constant = std::any_of(program.constants.begin(), program.constants.end(),
                                      [&](const Tensor& t) { return t.name == allocation.name; });
    if (constant) area.untouched = kNothing;
    const std::vector<std::string> held = inputs_in(allocation, inputs);
    for (const std::string& name : held) {
      const Tensor& input = inputs.at(name);
      const auto elements = static_cast<uint64_t>(input.size());
      area.untouched = is_real(input.dtype) ? kForgotten : kNothing;
      const bool numbered = is_real(input.dtype) && next_leaf + elements < kLeaf && held.size() == 1 &&
                            lies_by_elements(allocation, input, name, area.layout);
      area.is_input = numbered;
      if (numbered) {
        area.element_bytes = static_cast<uint32_t>(format(input.dtype).bytes);
        area.first_leaf = next_leaf;
        run.leaves.push_back({next_leaf, static_cast<int32_t>(run.input_names.size())});
        next_leaf += static_cast<uint32_t>(elements);
      }
      run.input_names.push_back(name);
    }
    const uint32_t width = area.element_bytes;
    run.memory.add(allocation.name, allocation.base, allocation.bytes, std::move(area));
    run.memory.name(allocation.name, {allocation.base, width});
    for (const Part& part : allocation.parts)
      run.memory.name(part.name, {allocation.base + part.offset,
                                  part.tensor ? static_cast<uint32_t>(format(part.tensor->dtype).bytes) : 1});
  }
}

}  // namespace

Outcome run_recorded(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                     Recording* recording, int32_t watched_event) {
  const auto start = std::chrono::steady_clock::now();
  PreparedProgram prepared(program, inputs, options);
  auto run = std::make_shared<RecordedRun>();
  run->launches = program.launches;
  run->watched = watched_event;
  add_areas(prepared.memory(), program, inputs, *run);
  Recorder recorder(run);
  Outcome outcome;
  for (size_t i = 0; i < program.launches.size() && !outcome.trap && !recorder.finished(); i++) {
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
