// What the watch adds to the project's kernels: instructions of their text, and of a run on the machine where
// nothing is born. One row for each kernel, as a share; on a GPU other shares count (registers, stalls).
#include <fmt/format.h>

#include <algorithm>

#include "kernels/claim.h"
#include "kernels/kernel.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"
#include "src/base/watch/watched_program.h"

namespace assay {
namespace {

void row(const Kernel& kernel, bool backward) {
  Case c;
  c.kernel = kernel.name;
  c.B = 1, c.T = 128, c.H = 1, c.K = 64, c.V = 64, c.dtype = Dtype::bf16;
  if (backward) c.direction = Direction::backward;
  const Operator& op = find_operator(kernel.operator_name);
  for (const ArgumentSpec& input : op.inputs)
    if (std::count(input.axes.begin(), input.axes.end(), "M") > 0) c.M = 64;
  const ResolvedCase resolved = resolve_unchecked(c, op);
  TensorMap inputs = draw_inputs(resolved);
  const Program program = program_of(kernel, resolved, inputs);
  const Outcome plain = vm::run(program, inputs, {});
  const watch::WatchedProgram watched = watch::watched(program);
  inputs[watch::kBufferName] = watched.buffer;
  const Outcome with = vm::run(watched.program, inputs, {});
  const auto share = [](auto more, auto of) {
    return 100.0 * static_cast<double>(more) / static_cast<double>(of);
  };
  fmt::print("{:28} {:9} {:7} {:7} {:6.1f} % {:6.1f} %\n", kernel.name, backward ? "backward" : "forward",
             watched.counts.instructions, watched.counts.watched,
             share(watched.counts.added, watched.counts.instructions),
             share(with.lane_instructions - plain.lane_instructions, plain.lane_instructions));
}

}  // namespace
}  // namespace assay

int main() {
  fmt::print("{:28} {:9} {:>7} {:>7} {:>8} {:>8}\n", "kernel", "", "of text", "watched", "text", "run");
  for (const assay::Kernel& kernel : assay::kernels())
    for (const bool backward : {false, true}) {
      try {
        assay::row(kernel, backward);
      } catch (const assay::BadInput&) {
        // Of another shape, or without that direction.
      }
    }
}
