// The virtual machine: executes a plan's launches over tagged memory, bit for bit, and on request records where
// non-finite values were born.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/plan/outcome.h"
#include "src/plan/plan.h"
#include "src/ptx/program.h"

namespace assay::vm {

/// One recorded instruction instance that made or carried a non-finite value.
struct Event {
  int32_t launch = 0;                 ///< index into Plan::launches
  int32_t instruction = 0;            ///< index into the function's body
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<double> operand_values; ///< in PTX order, sources only; tensor-core sums: the terms that matter
  std::vector<uint64_t> operand_bits;
  std::vector<std::string> operand_names;
  double result = 0;
  bool from_finite = false;           ///< no operand is NaN (for a NaN result) / non-finite (for an Inf result)
  std::vector<int32_t> parents;       ///< events that produced its non-finite operands, earliest first
  std::vector<int64_t> inputs;        ///< provenance of the operands: (tensor ordinal << 40 | flat element), sorted
  bool inputs_truncated = false;
};

struct Recording {
  std::vector<Event> events;
  /// Event behind each non-finite element of an output, by (output name, flat element); -1 if none.
  std::function<int32_t(const std::string& output, int64_t flat)> event_of;
  std::vector<std::string> input_names;   ///< tensor ordinals of Event::inputs
  std::vector<ptx::Module> modules;       ///< parsed, for names and lines
  std::vector<std::pair<int32_t, int32_t>> launch_functions; ///< launch -> (module, function)
};

struct MachineOptions {
  std::string arch = "sm_90";
  int threads = 0;                  ///< 0: all cores
  uint64_t instruction_budget = 0;  ///< warp instructions per warp; 0: a generous default
};

/// Runs every launch of the plan. Throws BadInput for PTX the machine cannot run (opcode, line and kernel named).
Outcome run(const Plan&, const TensorMap& inputs, const MachineOptions&);

/// The same run in the recording machine. Only `launch` blocks that `keep` accepts need provenance; null keeps all.
Outcome run_recorded(const Plan&, const TensorMap& inputs, const MachineOptions&, Recording*);

/// Rows of the instruction table for `assay list instructions`: form and status per architecture.
struct InstructionRow { std::string form, status; };
std::vector<InstructionRow> instruction_rows();

}  // namespace assay::vm
