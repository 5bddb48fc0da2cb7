// What an operator is: its arguments with named axes, its domain, and its mathematics. One row per operator
// in operators.def; the row carries the behaviour, nothing else enumerates operators.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/arithmetic.h"
#include "src/base/numerics/format.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// Sizes a case binds to axis letters. N is the number of sequences (B, or cu_seqlens entries - 1).
struct Sizes {
  int64_t B = 1, T = 1, H = 1, HV = 1, K = 1, V = 1, M = 1, N = 1;
  /// Value of an axis: "B", "T", "H", "HV", "K", "V", "M", "N"; "HQ" (query heads that share one of the H key
  /// heads) is HV, "D" (channels of an operator without heads) is V; "H*V" is the product of its parts.
  int64_t of(std::string_view axis) const;
};

/// What an argument is drawn and judged as.
enum class Role {
  value,      ///< plain real input in the case's dtype
  positive,   ///< as `value`, domain x >= 0
  unit,       ///< as `value`, drawn as rows of length one: what a delta rule reads its state with
  opposed,    ///< as `value`, drawn against the unit rows: what it writes for what it read
  along,      ///< as `value`, drawn along the unit rows: what a rule reads with that writes with them
  rate,       ///< as `value`, domain [0, 2]: how much of what a key is bound to is replaced
  log_decay,  ///< natural-log decay, domain [-1e4, 0], in the case's gate dtype; also its gradient
  state,      ///< initial / final state and their gradients, always fp32
  output,     ///< in the case's dtype
};

/// Inputs of the case's dtype.
constexpr bool is_plain(Role role) {
  return role == Role::value || role == Role::positive || role == Role::unit || role == Role::opposed ||
         role == Role::along || role == Role::rate;
}

struct ArgumentSpec {
  std::string_view name;
  std::vector<std::string_view> axes;
  Role role;
  bool optional = false;
  /// An optional argument that stands in for another one: present only where that one is absent.
  std::string_view instead_of = "";
  /// Domain x >= 0, whatever the role.
  bool not_negative = false;
};

/// What an operator's bounds are made of beyond sums of products of absolute values, or norms instead.
enum class BoundShape { sums, softmax, quotient, norms };

/// A number that shapes an operator's mathematics beside its tensors.
struct ParameterSpec {
  std::string_view name;
  double value = 0;  ///< where a problem does not give it
  std::string_view summary;
  double least = 0, most = HUGE_VAL;  ///< its domain, both ends included
  bool whole = false;
  std::string_view at_most = "";  ///< another parameter, which it does not exceed
};

/// One output element's reference: the exact value lies in [mid - rad, mid + rad].
/// `bound`: how far the kernel's declared arithmetic can be from the exact value, output rounding included;
/// `companion`: sigma |q|^T Pm, the absolute companion.
struct ReferenceOutput {
  std::string name;
  std::vector<Axis> axes;
  std::vector<double> mid, rad, bound, companion;
  /// The part of `bound` that is absolute: underflow, and half of the output format's smallest subnormal.
  std::vector<double> underflow;
  double roundoff = 0;    ///< u of the format it is stored in, as `bound` counts it
  int rung = 0;           ///< highest rung of the precision ladder used: 0 double, 1 double-double, 2 MPFR
  int64_t wide = 0;       ///< elements whose radius exceeds 2^-10 of the bound after the last rung
  std::string undecided;  ///< why, in one line; empty where wide = 0
};

struct ReferenceResult {
  std::vector<ReferenceOutput> outputs;
  double seconds = 0;
};

/// Everything an evaluation needs. Absent optional inputs are absent keys.
struct Problem {
  Sizes sizes;
  std::vector<int64_t> cu_seqlens;  ///< empty: B sequences of T tokens; else N+1 offsets into T (B = 1)
  double scale = 1;
  const TensorMap* inputs = nullptr;
  std::map<std::string, double> parameters;  ///< those given; the others have their default
  Arithmetic arithmetic;
  AdjointArithmetic adjoint;
  int threads = 1;
};

struct Slice;       // slices.h
struct NoiseBlock;  // rounding_noise.h
/// Called for each block once, from up to Problem::threads threads at a time and in any order.
using NoiseVisit = std::function<void(const NoiseBlock&)>;

struct Operator {
  std::string_view name;
  std::string_view summary;  ///< one line
  std::string_view formula;  ///< plain text
  std::string_view citation;
  std::vector<ArgumentSpec> inputs;
  std::vector<ArgumentSpec> outputs;
  std::vector<ParameterSpec> parameters;
  /// True where no values make its arithmetic exact (a fixed decay, a quotient, an exponential).
  bool inexact = false;
  /// True where a head's number enters its mathematics: heads cannot change places.
  bool heads_differ = false;
  /// False where the outputs are not proportional to the scale.
  bool proportional_to_scale = true;
  /// An absent gate is a gate of zeros; where not, decays then follow from another input.
  bool absent_gate_is_zero = true;
  /// The operator that computes the same from decays given as an input `g`, one per token and head; "": none.
  std::string_view with_gates = "";
  BoundShape bound_shape = BoundShape::sums;
  /// Has its formula a scale that a caller chooses?
  bool takes_scale = true;
  /// Default scale for these sizes (K^-1/2 for most; 1 where there is none).
  double (*default_scale)(const Sizes&) = [](const Sizes&) { return 1.0; };
  /// Forward values with enclosures and bounds, by the precision ladder. Throws BadInput where a required
  /// input is missing, has another size, or cu_seqlens does not pack T. Values that are not finite come out
  /// as not finite, with rad = inf.
  ReferenceResult (*evaluate)(const Problem&);
  /// Gradients "dX" of every present input X, for the cotangents "d" + output among the inputs ("do";
  /// those of states are optional), with enclosures and bounds.
  ReferenceResult (*evaluate_adjoint)(const Problem&);
  /// Samples of what the declared roundings of operands do to one slice's outputs, and to its gradients
  /// (rounding_noise.h); null where no model of them is known.
  void (*forward_noise)(const Problem&, const Slice&, const NoiseVisit&) = nullptr;
  void (*adjoint_noise)(const Problem&, const Slice&, const NoiseVisit&) = nullptr;

  /// What a gradient takes beside the inputs: "do", "dfinal_state"?.
  std::vector<ArgumentSpec> cotangents() const;
  /// What it gives: "dq", "dk", ..., one per input, in that input's format.
  std::vector<ArgumentSpec> gradients() const;
};

/// A delta rule: takes out of its state what it reads there.
bool removes_from_state(const Operator&);

/// All operators, in the order of operators.def.
const std::vector<Operator>& operators();
/// By name; throws BadInput listing what there is.
const Operator& find_operator(std::string_view name);

}  // namespace assay
