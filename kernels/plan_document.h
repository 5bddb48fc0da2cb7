// A stranger's plan as written: the JSON document of kernels/plan.schema.json, checked for form, expressions
// unevaluated.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/domain.h"
#include "src/base/numerics/format.h"

namespace assay {

/// One argument of a launch, in the order of the entry's parameters.
struct ArgumentEntry {
  enum class Kind { null, pointer, i8, i16, i32, i64, f32, f64, composed } kind = Kind::null;
  std::string name;  ///< pointer: tensor or workspace
  /// Scalar: value; pointer: byte offset ("0" unless written); composed (struct, bytes, tensor map): its
  /// JSON.
  std::string expression;
  bool zeros_when_absent = false;  ///< pointer: an absent input is passed as zeros instead of a null pointer
  std::string where;               ///< "/launches/0/arguments/3"
  std::vector<std::string> tensors;      ///< composed: those that it names, workspaces too
  std::vector<std::string> given_zeros;  ///< composed: those of them that are zeros where they are absent

  bool names(std::string_view tensor) const;
  /// Is an absent tensor of that name to be there as zeros?
  bool wants_zeros(std::string_view tensor) const;
};

/// A launch, or a fill: `fill` is the tensor or workspace whose bytes become 0.
struct LaunchEntry {
  std::string fill;      ///< empty: a launch
  std::string function;  ///< may hold {dtype} and {gate_dtype}
  std::string ptx;       ///< file that holds it, likewise; empty: the one PTX file
  std::array<std::string, 3> grid, block;
  std::string shared = "0";
  std::vector<ArgumentEntry> arguments;
  std::string where;  ///< "/launches/0"
};

struct WorkspaceEntry {
  std::string name, bytes, where;
};

struct PlanDocument {
  std::string path;
  std::string operator_name, name, summary;
  std::vector<Dtype> dtypes, gate_dtypes;
  int64_t max_K = 256, max_V = 256;
  double gate_min = -1e4, gate_max = 0, rate_max = kLargestRate;
  std::string accepts = "1";  ///< expression: nonzero where the kernel can run
  std::optional<std::string> arithmetic_preset;
  std::map<std::string, std::string> arithmetic;  ///< number of arithmetic.def -> expression
  /// Of gradients, likewise: numbers of the ADJOINT rows, and what S and dL/dS have beside the forward
  /// numbers.
  std::map<std::string, std::string> backward, backward_state, backward_adjoint;
  std::optional<int64_t> resume_granularity;
  bool exponents_nonpositive = false;
  bool formula = true;                   ///< false: its inputs are made from the operator's by rounding
  std::vector<std::string> omits;        ///< outputs the kernel does not make
  std::vector<std::string> reads_views;  ///< inputs that the launches read by their strides
  std::map<std::string, std::vector<std::string>> layouts;  ///< tensor -> its axes, the slowest first
  std::vector<WorkspaceEntry> workspaces;
  std::vector<LaunchEntry> launches;           ///< forward; empty: it has only gradients
  std::vector<LaunchEntry> backward_launches;  ///< of gradients; empty: it has none

  /// "plan.json at /launches/0/grid", the head of every message about this document.
  std::string at(const std::string& pointer) const {
    return path + " at " + (pointer.empty() ? "/" : pointer);
  }
};

/// Reads and checks the form of a plan. Throws BadInput naming file, JSON pointer, what is wrong and what to
/// write.
PlanDocument read_plan_document(const std::string& path);
PlanDocument parse_plan_document(const std::string& text, const std::string& path);

}  // namespace assay
