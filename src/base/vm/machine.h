// The virtual machine: executes a program's launches over tagged memory, bit for bit, and on request records
// where non-finite values were born.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"
#include "src/base/vm/recording.h"

namespace assay::vm {

struct MachineOptions {
  std::string arch = "sm_90";
  int threads = 0;                  ///< 0: all cores
  uint64_t instruction_budget = 0;  ///< warp instructions per warp; 0: a generous default
  bool branches = false;            ///< run() notes which sides of its guards a run took
  /// The order of blocks and warps, where a program leaves it open. 0: ascending, each warp until it waits.
  /// 1: descending. Any other: shuffled by that number, warps taking turns of a few hundred instructions;
  /// the same order for the same number. All but 0 run on one thread.
  uint64_t order = 0;
  /// All blocks of a launch run together, so that those that wait for others get on in any order. run() asks
  /// for it by itself where a warp hangs and reads what other blocks may write.
  bool together = false;
};

/// Runs every launch of the program. Throws BadInput for PTX the machine cannot run (opcode, line and kernel
/// named).
Outcome run(const Program&, const TensorMap& inputs, const MachineOptions&);

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
