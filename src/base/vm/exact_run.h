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
  /// What the exact value may be off by for reasons that are not the formula's: the shadow's own doubles, the
  /// rounding of the program's constants (a literal, a float argument, a table) along its derivative, what
  /// polynomials leave out of their functions. Infinite where no shadow follows: behind sums by atomics,
  /// 8-bit floats, integer work that neither moves a float nor leaves it its value, what a turned comparison
  /// decides (error_trace.h). Polynomials with coefficients from memory are not seen as such.
  std::vector<double> slack;
};

struct ExactRun {
  std::map<std::string, ExactOutput> outputs;  ///< those that hold reals, and inputs changed in place
  /// Comparisons that exact operands would have decided the other way. Where only selections follow, the
  /// exact value is that of the other operand.
  uint64_t turned = 0;
  uint64_t branches_turned = 0;  ///< branches, exits and stores that they decide; what follows is lost
  std::string loss;  ///< the instruction behind which no shadow followed first, and where; or empty
  double seconds = 0;
};

/// Results do not depend on the number of threads. After a trap there are no outputs. Throws BadInput as
/// run() does.
ExactRun run_exact(const Program&, const TensorMap& inputs, const MachineOptions&);

}  // namespace assay::vm
