// What comes of running a program. A trap is data about the kernel, never an exception.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/tensor/tensor.h"

namespace assay {

struct SourceLocation {
  std::string file;  ///< as in the PTX's .file
  int line = 0;
  int ptx_line = 0;
  std::string function;  ///< entry
  /// Of inlined code its own line and the calls around it, "kernels/gla/chunk.cu:106", innermost first; else
  /// empty.
  std::vector<std::string> frames;
};
template <typename Io>
void fields(Io& io, SourceLocation& x) {
  io.type("location");
  ASSAY_FIELD(file);
  ASSAY_FIELD(line);
  ASSAY_FIELD(ptx_line);
  ASSAY_FIELD(function);
  io.or_null("frames", x.frames);
}

/// Why a run did not complete.
enum class TrapKind : uint8_t {
  out_of_bounds,
  misaligned,
  barrier,         ///< a barrier that cannot be passed, a mask that names absent lanes
  hang,            ///< the budget of instructions or seconds is used up
  launch,          ///< no GPU launches this
  unsupported,     ///< by the machine
  unwritten_read,  ///< where the first read of what nothing wrote ends the run
  warpgroup,       ///< wgmma that the four warps of a warpgroup do not execute alike
  wgmma_race,      ///< wgmma without a fence before it
  call,            ///< to no function
  branch,          ///< to no entry of a branch table
  assertion,
  trap,    ///< the instruction
  raised,  ///< an exception of the program's own code on the host
};
constexpr std::array<std::string_view, 14> names_of(TrapKind) {
  return {"out-of-bounds", "misaligned", "barrier", "hang",   "launch",    "unsupported", "unwritten-read",
          "warpgroup",     "wgmma-race", "call",    "branch", "assertion", "trap",        "raised"};
}

/// A run that did not complete.
struct Trap {
  TrapKind kind{};
  std::string message;  ///< one line
  SourceLocation where;
  std::array<uint32_t, 3> block{}, thread{};
};
template <typename Io>
void fields(Io& io, Trap& x) {
  io.type("trap");
  ASSAY_FIELD(kind);
  ASSAY_FIELD(message);
  ASSAY_FIELD(where);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
}

/// Smallest and largest argument an exponential saw in a run (finite ones; NaN counted).
struct ExponentRange {
  SourceLocation where;
  std::string instruction;  ///< "ex2.approx.ftz.f32"
  double min = 0, max = 0;
  uint64_t count = 0, nans = 0;
};
template <typename Io>
void fields(Io& io, ExponentRange& x) {
  io.type("exponent_range");
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(min);
  ASSAY_FIELD(max);
  ASSAY_FIELD(count);
  ASSAY_FIELD(nans);
}

/// Of the predicated instructions of one entry, branches included, which sides were taken in a launch: 1: the
/// guard held for some thread, 2: it did not for some thread, 3: both. In the order of the machine's code.
struct BranchSides {
  std::string function;
  std::vector<uint8_t> sides;
};
template <typename Io>
void fields(Io& io, BranchSides& x) {
  ASSAY_FIELD(function);
  ASSAY_FIELD(sides);
}

struct Outcome {
  std::optional<Trap> trap;
  TensorMap outputs;
  TensorMap changed_inputs;                    ///< inputs that the launches wrote to, as they left them
  std::vector<std::string> changed_variables;  ///< vm only: of modules, in global memory, by name
  std::vector<ExponentRange> exponents;        ///< vm only
  std::vector<BranchSides> branches;           ///< vm only, by launch, where asked for
  std::vector<std::string> printed;            ///< vm only: by printf, a line each, as far as there is room
  uint64_t not_printed = 0;                    ///< lines beyond that
  bool together = false;           ///< vm only: blocks wait for each other, and had to run together
  uint64_t lane_instructions = 0;  ///< vm only
  double seconds = 0;              ///< wall clock of the launches (cuda: events)
};
template <typename Io>
void fields(Io& io, Outcome& x) {
  ASSAY_FIELD(trap);
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(changed_inputs);
  ASSAY_FIELD(changed_variables);
  ASSAY_FIELD(exponents);
  ASSAY_FIELD(branches);
  ASSAY_FIELD(printed);
  ASSAY_FIELD(not_printed);
  ASSAY_FIELD(together);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds);
}

}  // namespace assay
