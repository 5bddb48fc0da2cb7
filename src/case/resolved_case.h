// A case looked up and checked, once, where it comes in: from a token, from options, from a fuzzer's draw.
// Case is the form that is written and edited (change T, drop an input, resolve again); this is the form that
// is run.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor_layout.h"
#include "src/case/case.h"
#include "src/case/decay_profiles.h"
#include "src/case/override.h"
#include "src/case/values.h"

namespace assay {

/// An argument that a run takes or gives, with its shape.
struct SizedArgument {
  ArgumentSpec spec;
  Tensor shape;                        ///< without data
  std::optional<TensorLayout> layout;  ///< of an input that does not lie row by row
};

struct ResolvedCase {
  Case case_;  ///< as written: for its token, and for cu_seqlens, seed and blocks
  const Operator* op = nullptr;
  Direction direction = Direction::forward;
  Sizes sizes;
  Dtype dtype = Dtype::bf16, gate_dtype = Dtype::fp32;
  double scale = 1;  ///< the case's own, else the operator's default (scale_of)
  ParsedDecay decay{};
  const ValueKind* values = nullptr;
  std::vector<Override> overrides;
  std::vector<SizedArgument> inputs;   ///< those that are there, in the operator's order, then cotangents
  std::vector<SizedArgument> outputs;  ///< outputs, gradients of the inputs that are there, or both

  bool forward() const { return direction != Direction::backward; }
  bool backward() const { return direction != Direction::forward; }
  /// Is this input there?
  bool has(std::string_view input) const;
};

/// Throws BadInput where a size, a packed layout, a profile or a name makes no sense for the operator.
ResolvedCase resolve(const Case&, const Operator&);
/// The same without asking whether sizes and names make sense together: of a case that was made from one that
/// has been resolved. Throws for a name that is none, and for a layout that an input cannot have.
ResolvedCase resolve_unchecked(const Case&, const Operator&);

/// An argument as the case shapes it, whether it is there or not.
SizedArgument sized(const ArgumentSpec&, const Case&);

/// Is M, where the operator has such an axis, the slots of its states? Else it is the writes of a token.
bool has_slots(const Operator&);
/// M of a case that asks for none: 64 slots, 2 writes; 0 where the operator has no such axis.
int64_t usual_slots(const Operator&);

/// Inputs drawn from the case alone: same case, same bits, on every host and any number of threads. Rounded
/// once to the formats of the case.
TensorMap draw_inputs(const ResolvedCase&, int threads = 1);

}  // namespace assay
