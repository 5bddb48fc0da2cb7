// A case: everything needed to replay one run of a kernel. Its one-line token is its only identity.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "src/base/fields/names.h"
#include "src/base/numerics/format.h"
#include "src/base/tensor/tensor.h"

namespace assay {

enum class Direction : uint8_t { forward, backward, both };
constexpr std::array<std::string_view, 3> names_of(Direction) {
  return {"forward", "backward", "both"};
}
/// By its name; throws BadInput with the nearest.
Direction direction_of(const std::string& name);

/// The form that is written and edited, by options, tokens, fuzzing and shrinking. Nothing is checked and
/// names are text; what runs is its ResolvedCase (resolved_case.h). `values` names how inputs are drawn,
/// apart from decays: a row of values.def; `decay` a row of decay_profiles.def, `layout` rows of layouts.def.
struct Case {
  std::string kernel;                    ///< "gla.chunk", or "gla.chunk@S1"
  int64_t B = 1, T = 64, H = 1, HV = 0;  ///< HV = 0: as H
  int64_t K = 64, V = 64, M = 0;
  std::vector<int64_t> cu_seqlens;  ///< empty: not packed
  Dtype dtype = Dtype::bf16;
  Dtype gate_dtype = Dtype::fp32;
  std::string decay = "logsigmoid";  ///< "profile" or "profile:arg,arg"
  std::string values = "normal";
  double rates = 2;  ///< the largest rate that is drawn; keys are then no longer than their rates allow
  uint64_t seed = 1;
  std::optional<double> scale;               ///< absent: the operator's default
  std::map<std::string, double> parameters;  ///< of the operator, those given (src/case/parameters.h)
  Direction direction = Direction::forward;
  std::set<std::string> without;  ///< absent optional inputs
  bool initial_state = false;
  bool final_state_gradient = false;
  /// Single-element overrides made by shrinking: "g[0,16,0,3]=-90" (applied after drawing, rounded to the
  /// dtype).
  std::vector<std::string> overrides;

  /// How inputs lie in memory (src/case/layouts.h): "heads-first", "q=padded,k=4096:64:64:1"; empty: row by
  /// row.
  std::string layout;

  /// Blocks of each launch that run, as in "0,5,last" (src/base/program/block_choice.h); empty: all. Tensors
  /// above kLargestHeld are then made on demand.
  std::string blocks;

  bool operator==(const Case&) const = default;
};

Sizes sizes_of(const Case&);
/// Whether the run gives the operator's outputs, and whether it gives gradients ("both" gives both).
bool runs_forward(const Case&);
bool runs_backward(const Case&);
/// What a run of this case's direction may take: the operator's inputs, then cotangents where it runs
/// backward.
std::vector<ArgumentSpec> inputs_of(const Case&, const Operator&);
/// What it gives: outputs, gradients of the inputs that are there, or both.
std::vector<ArgumentSpec> outputs_of(const Case&, const Operator&);
/// Is this argument of inputs_of there? Absent ones have no tensor.
bool is_present(const Case&, const ArgumentSpec&);
/// The number format the case gives an argument.
Dtype dtype_of(const Case&, const ArgumentSpec&);
/// The scale a run uses: the case's own, else the operator's default; for exact values the power of two at or
/// below it.
double scale_of(const Case&, const Operator&);
/// resolve() without its result: throws BadInput where a size or a name makes no sense.
void validate(const Case&, const Operator&);

/// One line, no blanks, shell-safe, readable: "gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0".
std::string token_of(const Case&);
Case parse_token(const std::string& token);

/// Inputs drawn from the case alone: same case, same bits, on every host. Rounded once to the formats of the
/// case.
TensorMap draw_inputs(const Case&, const Operator&);

}  // namespace assay
