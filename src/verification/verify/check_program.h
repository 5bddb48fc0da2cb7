// A program without a claim: everything that can be said of a run without knowing what is right. Traps, the
// checks of the machine, where non-finite values were born, and whether other orders of blocks and warps,
// other bytes in unwritten memory or other architectures change what comes out.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "src/base/backend/backend.h"
#include "src/base/program/program.h"
#include "src/base/vm/checks/checks.h"
#include "src/result/verification.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

struct ProgramCheckOptions {
  vm::MachineOptions machine;
  vm::Checks checks;
  bool births = true;                        ///< special values by source line
  bool origins = true;                       ///< of outputs that are not finite
  bool orders = true;                        ///< other orders of blocks and warps
  bool poison = true;                        ///< another pattern in unwritten memory
  bool architectures = true;                 ///< others that can run the target
  uint64_t check_instructions = UINT64_MAX;  ///< runs of more lane-instructions are not run under the checks
  /// Runs of more lane-instructions are run once, and only that is judged: the result says so.
  uint64_t repeat_instructions = 2'000'000'000;
  uint64_t shadow_instructions = 0;  ///< Verification::shadow, for runs of at most so many
  OriginOptions origin;              ///< of the first non-finite element
  /// What stands behind an element: `element`, or the first that is not finite (`first`: whose value was born
  /// first), or else the one furthest from its own exact arithmetic.
  bool trace = false, first = false;
  std::string element;           ///< "y[0,3]" or "y[row=0,column=3]"
  std::set<std::string> partly;  ///< outputs that need not be written whole
  std::set<std::string> fixed;   ///< inputs that the run may not change; others are taken as written in place
  const TensorMap* recorded = nullptr;      ///< what the outputs were on a GPU
  const TensorMap* expected = nullptr;      ///< what they should be, within `tolerance`
  double tolerance = 0;                     ///< of |expected|, plus the same of the tensor's root mean square
  Backend* peer = nullptr;                  ///< a GPU, run beside the machine
  std::function<void(const Outcome&)> ran;  ///< told of the first run: what it printed
};

/// `name`: Verification::kernel. Throws BadInput where the program cannot run; every fault of it is data.
Verification check_program(const std::string& name, const Program&, const TensorMap& inputs,
                           const ProgramCheckOptions&);

}  // namespace assay
