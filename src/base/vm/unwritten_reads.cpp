#include "src/base/vm/unwritten_reads.h"

#include <algorithm>
#include <vector>

#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

struct Buffer {
  std::string name;
  uint64_t base = 0;
  std::vector<bool> written;  ///< by byte
};

/// Notes what is stored, and reads of what is not by one block of one launch.
struct FirstReads : PlainTrace {
  static constexpr unsigned hooks = hook::after;

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& signature = warp.block->context->code->signature(op);
    bulk |= signature.flow() == Flow::copy_bulk &&
            std::any_of(signature.accesses.begin(), signature.accesses.end(), [](const Access& access) {
              return access.space == ptx::Space::global && access.direction != Access::Direction::read;
            });
    if (warp.space != ptx::Space::global) return;
    bool reads = false, writes = false;
    for (const Access& access : signature.accesses) {
      if (access.space != ptx::Space::global && access.space != ptx::Space::generic) continue;
      reads |= access.direction != Access::Direction::write;
      writes |= access.direction != Access::Direction::read;
    }
    for (int lane = 0; (reads || writes) && lane < 32; ++lane)
      if (mask >> lane & 1) note(warp, op, lane, reads && watched, writes);
  }

  std::vector<Buffer> buffers;
  bool watched = false;  ///< this is the launch
  std::array<uint32_t, 3> block{}, thread{};
  std::optional<UnwrittenRead> of_thread, of_block;
  bool bulk = false;

 private:
  void note(const Warp& warp, const Op& op, int lane, bool reads, bool writes) {
    const uint64_t address = warp.address[lane],
                   bytes = uint64_t{op.element_bytes} * std::max<uint32_t>(op.vector_length, 1);
    for (Buffer& buffer : buffers) {
      if (address - buffer.base >= buffer.written.size()) continue;
      const uint64_t first = address - buffer.base, end = std::min(first + bytes, buffer.written.size());
      for (uint64_t at = first; reads && at < end; ++at)
        if (!buffer.written[at]) {
          keep(warp, op, lane, buffer.name, at);
          break;
        }
      for (uint64_t at = first; writes && at < end; ++at) buffer.written[at] = true;
    }
  }
  void keep(const Warp& warp, const Op& op, int lane, const std::string& buffer, uint64_t offset) {
    const ThreadPlace at = place_of(warp, lane);
    std::optional<UnwrittenRead>& first = at.thread == thread ? of_thread : of_block;
    if (at.block != block || first) return;
    const LaunchContext& context = *warp.block->context;
    first = {{context.code->module, context.launch_index, op.function, op.instruction, at.block, at.thread},
             buffer,
             offset};
  }
};

std::vector<Buffer> buffers_of(const Program& program, const TensorMap& inputs,
                               const PreparedProgram& prepared) {
  std::vector<std::string> names;
  for (const ProgramOutput& output : program.outputs)
    if (!inputs.contains(output.name)) names.push_back(output.name);
  for (const auto& workspace : program.workspaces) names.push_back(workspace.name);
  std::vector<Buffer> buffers;
  for (const std::string& name : names)
    if (const std::optional<Place> place = prepared.memory().find(name))
      buffers.push_back({name, place->address(), std::vector<bool>(place->bytes)});
  return buffers;
}

}  // namespace

std::optional<UnwrittenRead> find_unwritten_read(const Program& program, const TensorMap& inputs,
                                                 const MachineOptions& options, int32_t launch,
                                                 const std::array<uint32_t, 3>& block,
                                                 const std::array<uint32_t, 3>& thread) {
  PreparedProgram prepared(program, inputs, options);
  if (prepared.refused_launch()) return std::nullopt;
  FirstReads trace;
  trace.buffers = buffers_of(program, inputs, prepared);
  trace.block = block, trace.thread = thread;
  for (int32_t i = 0; i <= launch; ++i) {
    trace.watched = i == launch;
    const bool trapped = run_traced(prepared, static_cast<size_t>(i), trace).trap.has_value();
    if (trace.bulk || (trapped && i < launch)) return std::nullopt;
  }
  return trace.of_thread ? trace.of_thread : trace.of_block;
}

}  // namespace assay::vm
