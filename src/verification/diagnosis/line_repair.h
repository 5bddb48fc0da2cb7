// Does a program become right where one instruction, or all copies of one, take or give something else?
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/vm/changed_run.h"
#include "src/result/suspect_line.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// What a changed run's outputs are worth.
struct RepairVerdict {
  double left = 1;        ///< of the errors of wrong elements, what is left (root mean square)
  bool whole = false;     ///< every element is right
  bool harmless = false;  ///< right elements still are
};

struct Repair {
  ChainLink at;
  std::string change;                ///< "%p3 taken for false in @%p3 bra $L__BB0_4"
  int simplicity = 0;                ///< less comes first
  double left = 1;                   ///< 0: every element is right
  std::optional<ChainLink> decides;  ///< of a branch's guard: what it keeps from computing
  std::optional<ChainLink> branch;   ///< of a comparison: what it guards, where that is on another line
  std::optional<ChainLink> taker;    ///< of an integer: what takes it on another line of the file
  std::optional<ChainLink> maker;    ///< of an operand: what made it, where that is on another line
};

struct RepairSearch {
  std::function<RepairVerdict(const vm::RealOutputs&)> judge;
  /// Wrong elements, some. Changes run in the blocks behind a few of them first, and where `left` of the
  /// errors of those is as much as before, in no others.
  std::vector<vm::OutputElement> wrong;
  std::function<double(const vm::RealOutputs&, const std::vector<vm::OutputElement>&)> left;
  /// Could other values of an instruction of this line explain what is wrong? Others' floats are not changed.
  std::function<bool(const SourceLocation&)> may_compute_wrong;
  /// How much an instruction stands behind wrong values, and not behind right ones: 0 to 1.
  std::function<double(const ptx::Module*, int32_t function, int32_t instruction)> suspicion;
  /// Guards and bounds are tried before anything else, for so long: of a program that is not optimised, where
  /// each condition is still there. 0: they take their turn.
  double decision_seconds = 0;
  double seconds = 5;  ///< for all else, after those
};
/// Whole repairs first, then what mends most, a line once.
std::vector<Repair> find_repairs(vm::ChangedRuns&, const SourceText&, const RepairSearch&);

}  // namespace assay
