// run_exact: what a program's outputs are on real numbers. The same instructions, branches and integers from
// the same inputs, every rounding and conversion the identity, every approximate function exact
// (error_trace.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/vm/machine.h"

namespace assay::vm {

/// Element by element, in the tensor's order.
struct ExactOutput {
  std::vector<double> value;  ///< exact, within `slack`; NaN where the machine's is not finite
  /// What the exact value may be off by for reasons that are not the formula's: the shadow's own rounding,
  /// and the rounding of the program's constants (a literal, a float argument), each followed along its
  /// derivative. Infinite behind sums by atom.add.f32 and behind integer operations that change a rounded
  /// float's word. Not seen, so that the slack is too small: words taken apart by mov or read by halves from
  /// memory, 64-bit integer work, exchanges by atom.exch and atom.cas, halves changed by xor.
  std::vector<double> slack;
};

struct ExactRun {
  std::map<std::string, ExactOutput> outputs;  ///< those that hold reals, and inputs changed in place
  /// Comparisons of floats that exact operands would have decided the other way. Where only selections of f32
  /// follow, the exact value is that of the other operand.
  uint64_t turned = 0;
  uint64_t branches_turned = 0;  ///< of these: others; the program on real numbers would go another way
  double seconds = 0;
};

/// Results do not depend on the number of threads. After a trap there are no outputs. Throws BadInput as
/// run() does.
ExactRun run_exact(const Program&, const TensorMap& inputs, const MachineOptions&);

}  // namespace assay::vm
