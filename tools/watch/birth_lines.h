// Births by line and opcode, as the machine's trace tells them and as the watch does, in one form.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "src/base/vm/births.h"

namespace assay::watch {

/// "a.cu:12 ex2.approx.f32", without a source line that of the PTX: whether NaN, whether infinities.
using BirthLines = std::map<std::string, std::pair<bool, bool>>;

inline std::string birth_line(const std::string& file, int line, int ptx_line, const std::string& opcode) {
  const std::string place = file.empty() ? std::to_string(ptx_line) : file + ":" + std::to_string(line);
  return place + " " + opcode;
}

/// What the machine's own trace sees born.
inline BirthLines traced_lines(const Program& program, const TensorMap& inputs,
                               const vm::MachineOptions& machine) {
  BirthLines made;
  for (const LineBirths& line : vm::run_births(program, inputs, machine))
    if (line.nans || line.infinities)
      made[birth_line(line.where.file, line.where.line, line.where.ptx_line, line.instruction)] = {
          line.nans > 0, line.infinities > 0};
  return made;
}

}  // namespace assay::watch
