#include "fuzz/cost.h"

#include <algorithm>

#include "kernels/kernel.h"

namespace assay {
namespace {

/// Tiles are padded to multiples of 16 rows and channels.
double padded(int64_t n) {
  return static_cast<double>((std::max<int64_t>(n, 1) + 15) / 16 * 16);
}

/// What stands behind the outputs.
struct Work {
  /// Recurrences of keys by values, in units of the plain gated one: none of gates and scans, more where a
  /// normaliser or a removal goes along.
  double recurrences = 1;
  /// A window of K inputs per channel is carried, and read whole at every token.
  bool window = false;
  /// Without a state: every token's row meets a matrix of weights, here and in the reference.
  bool weights = false;
  /// M is no number of slots: so many writes per token, each of the work of a token.
  bool several_writes = false;
};

/// Of a kernel that is not ours: one recurrence.
Work work_of(const Case& c) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.name != c.kernel) continue;
    const Operator& op = find_operator(kernel.operator_name);
    int64_t states = 0;
    bool of_matrices = false, of_keys = false;
    for (const ArgumentSpec& output : op.outputs) {
      if (output.role != Role::state) continue;
      ++states;
      of_matrices |= output.axes.size() > 3;
      of_keys |= std::count(output.axes.begin(), output.axes.end(), "K") > 0;
    }
    const bool removes = removes_from_state(op);
    const bool weights = std::any_of(op.inputs.begin(), op.inputs.end(), [](const ArgumentSpec& input) {
      return std::count(input.axes.begin(), input.axes.end(), "H*V") > 0;
    });
    if (!of_matrices) return {0, of_keys, weights};
    if (kernel.name.ends_with("_hopper")) return {0.5, false};  // one wgmma is many mma
    return {(states > 1 && c.M == 0) || removes ? 1.5 : 1, false, false, c.M > 0 && !has_slots(op)};
  }
  return {};
}

}  // namespace

double estimated_cost(const Case& c) {
  const double sequences = c.cu_seqlens.empty() ? static_cast<double>(c.B) : double(c.cu_seqlens.size() - 1);
  const auto [recurrences, window, weights, several_writes] = work_of(c);
  const double tokens = static_cast<double>(c.B * c.T * (several_writes ? c.M : 1)) + 16 * sequences;
  const double heads = static_cast<double>(std::max(c.H, c.HV));
  const double channels = padded(c.K), values = padded(c.V);
  // Gradients take about three times the work of the outputs.
  const double passes = (runs_forward(c) ? 1 : 0) + (runs_backward(c) ? 3 : 0);
  if (window) return passes * tokens * static_cast<double>(c.V) * (60 + 25 * static_cast<double>(c.K));
  const double product = weights ? 0.4 * channels * values : 0;
  if (recurrences == 0) return passes * heads * tokens * (60 * std::max(channels, values) + product);
  const auto of_recurrence = [&](double keys, double columns) {
    const double per_token = 60 * keys + 24 * columns + 1.9 * keys * columns;
    return recurrences * passes * heads * (tokens * per_token + sequences * 8 * keys * columns);
  };
  // With slots there are two recurrences, from the channels of k and of v to the slots.
  if (c.M > 0 && !several_writes)
    return of_recurrence(padded(c.M), channels) + of_recurrence(padded(c.M), values);
  return of_recurrence(channels, values);
}

}  // namespace assay
