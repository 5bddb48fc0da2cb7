// Named causes of a finding: each is a file in src/verification/diagnosis/causes/ and a row in causes.def,
// decided by evidence and ranked.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/shadow_report.h"
#include "src/case/case.h"
#include "src/result/comparison.h"
#include "src/result/diagnosis.h"
#include "src/result/formula.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

/// What a cause may look at. Pointers are null where that evidence was not gathered.
struct Evidence {
  const Case* case_ = nullptr;
  const TensorMap* inputs = nullptr;
  const OriginTrace* trace = nullptr;  ///< of a non-finite element
  const std::vector<OutputComparison>* outputs = nullptr;
  const std::vector<ExponentRange>* exponents = nullptr;
  const Operator* op = nullptr;  ///< what the kernel claims to compute
  /// The run beside exact arithmetic; its element is the worst violation.
  const ShadowReport* shadow = nullptr;
  const FormulaReport* formula = nullptr;  ///< the program on real numbers against the reference
  const Trap* trap = nullptr;
  const CheckReport* checks = nullptr;
  const std::vector<std::string>* properties = nullptr;  ///< those that fail: "NAME: what"
  /// Whether the element stays finite where its sequence is filled up with zero rows to a whole chunk.
  std::optional<bool> finite_when_padded;
  /// Whether, where all rows decay alike, an exponential's argument exceeds what one row's decay can make it.
  std::optional<bool> spans_rows;
};

struct Cause {
  std::string_view name;     ///< "masked-lane-overflow"
  std::string_view summary;  ///< one line for `assay list causes`
  /// Score 0 (ruled out) to 1 (nothing speaks against it), with the evidence for it.
  std::function<Diagnosis(const Evidence&)> judge;
};

/// The causes of causes.def, and those that checks and traps name.
const std::vector<Cause>& causes();
/// Names and summaries of everything that may be named: causes, mutated meanings (meaning.h), the rest.
std::vector<std::pair<std::string_view, std::string_view>> cause_names();
/// The name of what nothing explains.
inline constexpr std::string_view kUnexplained = "unexplained";
/// Of a file's tensors, not of a kernel (src/verification/verify/expected_outputs.h).
inline constexpr std::string_view kTransposed = "transposed";
/// Best first, of equal ones the earlier; of one name the best.
void rank(std::vector<Diagnosis>&);
/// Causes with a positive score, best first.
std::vector<Diagnosis> diagnose(const Evidence&);

}  // namespace assay
