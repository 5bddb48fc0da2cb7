// The virtual machine: executes a program's launches over tagged memory, bit for bit, and on request records
// where non-finite values were born.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"
#include "src/base/vm/recording.h"

namespace assay::vm {

/// What runs instructions; the bits are the same. `by_size`: compiled where a launch has so many warps that
/// compiling pays, else interpreted.
enum class ExecutedBy : uint8_t { interpreter, compiled, by_size };
/// Of MachineOptions that say nothing: what choose_engine was told last, else ASSAY_ENGINE in the
/// environment, else by_size.
ExecutedBy default_engine();
/// "interpreter", "compiled" or "auto", by size; throws BadInput for others. Compiled code wants AVX-512:
/// elsewhere, and under checks, shadows and traces, the interpreter runs.
void choose_engine(const std::string& name);

struct MachineOptions {
  std::string arch = "sm_90";
  int threads = 0;                      ///< 0: all cores
  uint64_t instruction_budget = 0;      ///< warp instructions per warp; 0: a generous default
  uint64_t most_lane_instructions = 0;  ///< run() throws OverBudget soon after so many; 0: never
  bool branches = false;                ///< run() notes which sides of its guards a run took
  /// The order of blocks and warps, where a program leaves it open. 0: ascending, each warp until it waits.
  /// 1: descending. Any other: shuffled by that number, warps taking turns of a few hundred instructions;
  /// the same order for the same number. All but 0 run on one thread.
  uint64_t order = 0;
  /// All blocks of a launch run together, so that those that wait for others get on in any order. run() asks
  /// for it by itself where a warp hangs and reads what other blocks may write.
  bool together = false;
  ExecutedBy engine = default_engine();
};

/// What a run that takes more than MachineOptions::most_lane_instructions throws.
class OverBudget : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs every launch of the program. Throws BadInput for PTX the machine cannot run (opcode, line and kernel
/// named), and here as wherever a program runs Abandoned (src/base/numerics/abandon.h).
Outcome run(const Program&, const TensorMap& inputs, const MachineOptions&);

/// A piece of memory that launches find at an address of its own, and work on as it lies there.
struct LiveStorage {
  std::string name;
  uint64_t address = 0, bytes = 0;
  std::byte* data = nullptr;
  const Tensor* tensor = nullptr;  ///< names of elements; null: none
  const TensorLayout* layout = nullptr;
};

/// Runs every launch once on the storages: sorted by address, none overlapping another. What a launch wrote
/// until it trapped stays. Blocks that wait for each other run together from the start.
Outcome run_in_place(const Program&, std::span<const LiveStorage>, const MachineOptions&);

/// The same run in the recording machine: blocks one after another, `recording` filled (see recording.h).
/// Dependences of all but the newest 2^26 unions are forgotten; a run that watches an event collects that
/// one's when it happens, and ends after its block (without outputs).
Outcome run_recorded(const Program&, const TensorMap& inputs, const MachineOptions&, Recording* recording,
                     int32_t watched_event = -1);

/// Rows of the instruction table for `assay list instructions`: forms, and for each of sm_80, sm_89 and sm_90
/// where the bits come from ("exact", "measured", "modelled") or "-" where the architecture lacks the forms.
struct InstructionRow {
  std::string forms;
  std::array<std::string, 3> status;
};
std::vector<InstructionRow> instruction_rows();

}  // namespace assay::vm
