// Births planted in eight of the project's kernels, two of them with wgmma: one instruction changed, or
// inputs.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "tools/watch/birth_lines.h"

namespace assay::watch {

struct Plant {
  enum class Into {
    float_result,  ///< `text` takes the place of an instruction that makes %D, an f32
    product,       ///< an mma.sync multiplies the largest numbers
    inputs         ///< keys and values of one token are the largest numbers: sums of wgmma
  };
  const char* kind;
  Into into;
  const char* text;
  const char* born;  ///< opcode of the instruction in which it is born
  bool nan;          ///< else infinity
};
std::span<const Plant> plants();

/// One plant in one kernel.
struct PlantedCase {
  const Plant* plant;
  std::string kernel;
  double share;  ///< how far into the entry's text a place is looked for
};
std::vector<PlantedCase> planted_cases();

struct PlantedProgram {
  Program program;
  TensorMap inputs;
  BirthLines traced;  ///< by the machine; the plant among them
};
/// Nothing where no place for it runs.
std::optional<PlantedProgram> planted(const PlantedCase&);

/// The kernel whose NaN rwkv6's authors met: a chunk's decays multiplied up to an infinity.
PlantedProgram historic_nan();
/// The line of its infinity.
inline constexpr const char* kHistoricLine = "kernels/channel/chunk_scores.cuh:224 ";

}  // namespace assay::watch
