// What comes of running a program. A trap is data about the kernel, never an exception.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
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

/// A run that did not complete: out of bounds, misaligned, illegal barrier use, instruction budget exhausted.
struct Trap {
  std::string kind;     ///< "out-of-bounds", "misaligned", "barrier", "hang", "launch", ...
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

struct Outcome {
  std::optional<Trap> trap;
  TensorMap outputs;
  TensorMap changed_inputs;              ///< inputs that the launches wrote to, as they left them
  std::vector<ExponentRange> exponents;  ///< vm only
  std::vector<BranchSides> branches;     ///< vm only, by launch, where asked for
  uint64_t lane_instructions = 0;        ///< vm only
  double seconds = 0;                    ///< wall clock of the launches (cuda: events)
};

}  // namespace assay
