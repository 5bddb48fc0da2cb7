#include "tests/watch/traced_and_noted.h"

#include "src/base/watch/watched_program.h"

namespace assay::watch {

TracedAndNoted traced_and_noted(const Program& program, const TensorMap& inputs, const std::string& arch) {
  TracedAndNoted made;
  const vm::MachineOptions machine{.arch = arch, .threads = 1};
  const Outcome plain = vm::run(program, inputs, machine);
  made.traced = traced_lines(program, inputs, machine);
  const WatchedProgram watched = watch::watched(program);
  made.counts = watched.counts;
  made.text = *watched.program.modules[0].ptx;
  TensorMap with_buffer = inputs;
  with_buffer[kBufferName] = watched.buffer;
  const Outcome outcome = vm::run(watched.program, with_buffer, machine);
  made.same_trap = plain.trap.has_value() == outcome.trap.has_value();
  made.trapped = plain.trap.has_value();
  if (outcome.trap && !plain.trap) made.text = outcome.trap->message + "\n" + made.text;
  made.added =
      static_cast<double>(outcome.lane_instructions) / static_cast<double>(plain.lane_instructions) - 1;
  if (!made.same_trap || outcome.trap) return made;
  for (const auto& [name, tensor] : plain.outputs)
    made.same_outputs &= tensor.data == outcome.outputs.at(name).data;
  for (const NotedBirth& birth : noted_births(watched.modules, outcome.outputs.at(kBufferName).data)) {
    const std::string opcode = birth.instruction.substr(0, birth.instruction.find(' '));
    const SourceLocation& at = birth.where;
    auto& line = made.noted[birth_line(at.file, at.line, at.ptx_line, opcode)];
    (birth.record.born == Born::nan ? line.first : line.second) = true;
  }
  return made;
}

}  // namespace assay::watch
