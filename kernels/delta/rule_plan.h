// What the plans of the delta rules share, whatever their mode.
#pragma once
#include <string>
#include <vector>

#include "kernels/delta/rule_kernels.h"
#include "kernels/launch_tables.h"

namespace assay::delta {

/// A plan being made: outputs and the table of sequences are there to begin with.
class RulePlan {
 public:
  /// Throws BadInput where the case is outside rule_limits(). `chunk`: tokens per chunk of the tables.
  RulePlan(const Member&, const std::string& mode, int64_t chunk, const ResolvedCase&,
           const TensorMap& inputs);

  const Member& member;
  const ResolvedCase& c;
  const TensorMap& inputs;
  const Sizes sizes;
  const gated::Sequences sequences;
  Program plan;
  const PointerArgument gates;  ///< null where nothing decays

  /// Launches from here on are those of the member's <source>.cu, built for the case's gates, for the
  /// operator's whether they are there or not, or for any.
  void use(const std::string& source);
  void use_for_own_gates(const std::string& source);
  void use_for_any_gates(const std::string& source);
  /// device::block_threads per block; none where there are no blocks. `rows`: the grid's second size.
  void launch(const std::string& function, int64_t blocks, std::vector<Argument> arguments,
              const std::vector<Argument>& last, uint32_t shared_bytes = 0, uint32_t rows = 1);
  /// A scan of fused_recurrent, by value columns, each block some of them, or by key channels, the rows of
  /// the state. Arguments that all end with follow: sequences, scale, key heads, heads, K, V.
  void scan_columns(const std::string& scan, std::vector<Argument> arguments);
  void scan_rows(const std::string& scan, std::vector<Argument> arguments);

  PointerArgument input(const std::string& name) const { return gated::input_or_null(inputs, name); }
  PointerArgument output(const std::string& name) const { return gated::output_or_null(plan, name); }
  /// A new workspace; null where it has no bytes.
  PointerArgument workspace(const std::string& name, int64_t bytes) {
    return gated::workspace_of(plan, name, bytes);
  }
  Argument scale() const { return Argument::rounded(c.scale); }

  /// Where a gradient of queries or keys goes: the output, or a workspace of each value head's part.
  struct KeyGradient {
    PointerArgument stored, of_value_heads;
  };
  KeyGradient key_gradient(const std::string& output);
  /// Where the gates' gradient goes: the output, or a workspace [token, heads, K] fp32 where gates are of
  /// tokens.
  PointerArgument gate_gradient();
  /// What gradients made token by token keep, fp32: [token, heads, V], products null where the rates have no
  /// gradient; the state by rows at the start of every kept_tokens.
  struct Kept {
    PointerArgument residuals, updates, pulls, products, states;
  };
  Kept keep();
  /// The sums of what the two above and `products` [token, heads, V] (or null), whose sums are dbeta, have
  /// been left.
  void add_sums(const PointerArgument& products);
  /// dbeta, by channel the products of x and y [token, heads, V] as scans keep them, or null.
  void add_rate_sums(const PointerArgument& x, const PointerArgument& y);
  /// Of heads that share keys.
  void add_group_sums();

 private:
  void use_module(const std::string& name);
  void use_for(const std::string& source, Gates);
  std::vector<Argument> sized() const;
  bool shares_keys() const { return sizes.HV != sizes.H; }
  bool decays() const { return !gates.buffer.empty(); }
  int64_t rows() const { return sizes.B * sizes.T * sizes.HV; }
  void add_sum(const std::string& function, Dtype, int64_t blocks, std::vector<Argument> arguments);

  std::string module_;
};

/// What fused_recurrent declares of S: of its decay, its product with it, the update from what is read.
Arithmetic recurrent_arithmetic(const ResolvedCase&);
/// Roundings of x^T S over the key channels of a column of columns.cuh.
double roundings_over_keys(const Sizes&);
/// Roundings of a sum over channels in sums.cu: a lane's share, 5 halvings.
double roundings_over_channels(int64_t channels);
/// Of a sum over a group's value heads: half of them, in pairs.
double roundings_over_group(int64_t heads);

}  // namespace assay::delta
