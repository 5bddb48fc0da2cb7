// How an operator is an instance of the recurrence that the gated family shares,
//
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t,
//
// and the tensors of one problem read by that form. The blocked evaluators know operators only through it.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "reference/slices.h"
#include "src/base/numerics/double_double.h"

namespace assay {

/// A decay that is no input: its weight e^g with relative error at most 2^-100, and g itself to 2^-50.
struct FixedDecay {
  DoubleDouble weight;
  double log = 0;
};

/// Names of the arguments that play each part; "" where the operator has none.
struct GatedForm {
  std::string_view q = "q", k = "k", v = "v", state = "initial_state";
  std::string_view gate;  ///< log decays [B,T,H,K], or [B,T,H] where not `per_channel`
  bool per_channel = true;
  std::string_view head_gate;  ///< one log decay per head [H], instead of `gate`
  /// u [H,K]: the readout is exclusive and the token's own term weighs u: o_t = scale (S_{t-1} + diag(u) k_t
  /// v_t^T)^T q_t.
  std::string_view bonus;
  FixedDecay (*fixed)(const Problem&, int64_t head) = nullptr;
};

/// The tensors of a problem by their parts. Throws BadInput where one is missing or has another size.
class GatedTensors {
 public:
  GatedTensors(const Problem&, const GatedForm&);

  const GatedForm form;
  const Tensor &q, &k, &v;
  const Tensor *gate, *head_gate, *S0, *bonus;  ///< null where absent

  /// Some decay is not zero.
  bool decays() const { return decays_; }
  bool exclusive() const { return !form.bonus.empty(); }
  /// Any gate at all: without one every weight is 1.
  bool gated() const { return gate || head_gate || form.fixed; }
  /// Columns of the gate's gradient per token: K, or 1.
  int64_t gate_columns() const { return form.per_channel && !head_gate ? K_ : 1; }
  /// Log decays g and weights a = e^g (relative error at most 4 u) of a slice's tokens, tokens x K each. `a`
  /// may be null.
  void read_decays(const Slice&, int64_t first, int64_t tokens, double* g, double* a) const;
  /// The weight of every token of a head, where it is no input.
  std::optional<DoubleDouble> fixed_weight(int64_t head) const;
  /// u of a head, or empty.
  std::vector<double> read_bonus(int64_t head) const;

 private:
  std::vector<FixedDecay> fixed_;  ///< per head
  int64_t H_, K_;
  bool decays_;
};

}  // namespace assay
