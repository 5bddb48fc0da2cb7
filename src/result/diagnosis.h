// Named causes of a finding, and whose fault it is.
#pragma once
#include <string>
#include <vector>

namespace assay {

struct Diagnosis {
  std::string cause;
  std::string explanation;
  double score = 0;
  std::vector<std::string> evidence;  ///< what speaks for it
  std::vector<std::string> against;   ///< and what against
};

/// Whose fault a finding is, where a GPU ran beside the machine.
struct Triage {
  /// "none", "kernel" (or its code generator), "compiler-or-hardware" (what was made of the PTX, or what runs it),
  /// "race", or "kernel and compiler-or-hardware".
  std::string fault;
  std::string explanation;            ///< one line
  std::vector<std::string> evidence;  ///< machine against reference, GPU against machine, GPU twice, races
};

}  // namespace assay
