#include "fuzz/cost.h"

#include <algorithm>

#include "kernels/kernel.h"

namespace assay {
namespace {

/// Tiles are padded to multiples of 16 rows and channels.
double padded(int64_t n) {
  return static_cast<double>((std::max<int64_t>(n, 1) + 15) / 16 * 16);
}

/// Recurrences of keys by values that stand behind the outputs, in units of the plain gated one: none of
/// gates and scans, more where a normaliser or a removal goes along. Of a kernel that is not ours: one.
double recurrences(const Case& c) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.name != c.kernel) continue;
    const Operator& op = find_operator(kernel.operator_name);
    const auto states = std::count_if(op.outputs.begin(), op.outputs.end(),
                                      [](const ArgumentSpec& output) { return output.role == Role::state; });
    const bool of_matrices = std::any_of(
        op.outputs.begin(), op.outputs.end(),
        [](const ArgumentSpec& output) { return output.role == Role::state && output.axes.size() > 3; });
    const bool removes = std::any_of(op.inputs.begin(), op.inputs.end(),
                                     [](const ArgumentSpec& input) { return input.role == Role::opposed; });
    return !of_matrices ? 0 : (states > 1 && c.M == 0) || removes ? 1.5 : 1;
  }
  return 1;
}

}  // namespace

double estimated_cost(const Case& c) {
  const double sequences = c.cu_seqlens.empty() ? static_cast<double>(c.B) : double(c.cu_seqlens.size() - 1);
  const double tokens = static_cast<double>(c.B * c.T) + 16 * sequences;
  const double heads = static_cast<double>(std::max(c.H, c.HV));
  const double channels = padded(c.K), values = padded(c.V);
  // Gradients take about three times the work of the outputs.
  const double passes = (runs_forward(c) ? 1 : 0) + (runs_backward(c) ? 3 : 0);
  const double share = recurrences(c);
  if (share == 0) return passes * heads * tokens * 60 * std::max(channels, values);
  const auto of_recurrence = [&](double keys, double columns) {
    const double per_token = 60 * keys + 24 * columns + 1.9 * keys * columns;
    return share * passes * heads * (tokens * per_token + sequences * 8 * keys * columns);
  };
  // With slots there are two recurrences, from the channels of k and of v to the slots.
  if (c.M > 0) return of_recurrence(padded(c.M), channels) + of_recurrence(padded(c.M), values);
  return of_recurrence(channels, values);
}

}  // namespace assay
