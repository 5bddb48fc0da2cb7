// What the lanes of one warp held while it ran through a source line: registers, addresses, and beside floats
// their exact counterparts (error_shadow.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/vm/machine.h"

namespace assay::vm {

struct LineQuestion {
  std::string file;  ///< the end of a path, at a '/'; of the PTX itself too
  int line = 0;
  std::optional<std::array<uint32_t, 3>> block;  ///< none: the first that comes there
  std::optional<uint32_t> warp;                  ///< of the block; none: the first that comes there
  uint64_t visit = 1;                            ///< from 1; kLastVisit
};
inline constexpr uint64_t kLastVisit = ~uint64_t{0};

/// A float beside its exact counterpart.
struct ExactValue {
  double value = 0, exact = 0;
  double error = 0;  ///< exact - value
  double ulps = 0;   ///< the same in units in the last place of the value's format
};
template <typename Io>
void fields(Io& io, ExactValue& x) {
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(error, "exact - value");
  ASSAY_FIELD(ulps, "the same in units in the last place");
}

struct LaneValue {
  int lane = 0;
  uint64_t bits = 0;
  std::string text;               ///< in decimal, halves with a blank between; of untyped bits in hexadecimal
  std::vector<ExactValue> exact;  ///< of the floats in it that a shadow follows
};
template <typename Io>
void fields(Io& io, LaneValue& x) {
  ASSAY_FIELD(lane);
  io("bits", Bits{x.bits});
  ASSAY_FIELD(text);
  ASSAY_FIELD(exact);
}

struct RegisterView {
  std::string name, type;  ///< "%f3", "f32"
  std::string role;        ///< "read", "write"; of matrix products "A", "B", "C" and "D"; "guard"
  std::vector<LaneValue> lanes;
};
template <typename Io>
void fields(Io& io, RegisterView& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(type);
  ASSAY_FIELD(role);
  ASSAY_FIELD(lanes);
}

struct ReachedMemory {
  int lane = 0;
  std::string direction;  ///< "read", "write", "update"
  std::string place;      ///< "o[b=0,t=1,h=0,v=3]", "tile + 128"
  uint64_t address = 0;
  uint32_t bytes = 0;
};
template <typename Io>
void fields(Io& io, ReachedMemory& x) {
  ASSAY_FIELD(lane);
  ASSAY_FIELD(direction);
  ASSAY_FIELD(place);
  io("address", Bits{x.address});
  ASSAY_FIELD(bytes);
}

struct SteppedInstruction {
  int ptx_line = 0;
  std::string text;
  std::string guard;      ///< "@!%p1"; empty: none
  uint64_t active = 0;    ///< lanes that came to it
  uint64_t executed = 0;  ///< those of them for which the guard held
  std::vector<RegisterView> registers;
  std::vector<ReachedMemory> memory;
};
template <typename Io>
void fields(Io& io, SteppedInstruction& x) {
  ASSAY_FIELD(ptx_line);
  ASSAY_FIELD(text);
  ASSAY_FIELD(guard);
  io("active", Bits{x.active});
  io("executed", Bits{x.executed});
  ASSAY_FIELD(registers);
  ASSAY_FIELD(memory);
}

/// A visit: from the warp's coming to the line until it goes elsewhere, or comes to one of its instructions
/// again.
struct LineView {
  std::string place;    ///< "kernels/gla/chunk.cu:142"
  uint64_t visits = 0;  ///< of that warp in that launch; 0: no warp that was asked for came there
  uint64_t visit = 0;   ///< the one shown; 0: there were fewer
  uint64_t launch = 0;  ///< into Program::launches
  std::string entry;
  std::array<uint32_t, 3> block{};
  uint32_t warp = 0;
  std::vector<SteppedInstruction> instructions;
  std::string trap;  ///< the message of a run that ended in one
};
template <typename Io>
void fields(Io& io, LineView& x) {
  io.type("line_view", "a warp's lanes at a source line");
  ASSAY_FIELD(place);
  ASSAY_FIELD(visits);
  ASSAY_FIELD(visit);
  ASSAY_FIELD(launch);
  ASSAY_FIELD(entry);
  ASSAY_FIELD(block);
  ASSAY_FIELD(warp);
  ASSAY_FIELD(instructions);
  ASSAY_FIELD(trap);
}

/// Runs the program, blocks one after another, until a block is through in which a warp that was asked for
/// came there. Throws BadInput as run() does, and where no instruction stands at the line, naming the nearest
/// lines that have some.
LineView view_line(const Program&, const TensorMap& inputs, const MachineOptions&, const LineQuestion&);

}  // namespace assay::vm
