#include "src/verification/compare/accumulated_decay.h"

#include <cmath>

namespace assay {

std::optional<AccumulatedDecay> accumulated_decay(const Tensor& got, const ReferenceOutput& reference,
                                                  const std::vector<int64_t>& cu_seqlens) {
  if (got.axes.size() < 2 || got.size() == 0) return std::nullopt;
  const int64_t batches = got.axes[0].size, tokens = got.axes[1].size,
                channels = got.size() / (batches * tokens);
  std::vector<bool> starts(static_cast<size_t>(tokens + 1));
  for (const int64_t t : cu_seqlens) starts[static_cast<size_t>(t)] = true;
  AccumulatedDecay worst;
  for (int64_t row = 0; row < batches; ++row)
    for (int64_t channel = 0; channel < channels; ++channel) {
      AccumulatedDecay sum;
      for (int64_t t = 0; t < tokens; ++t) {
        if (starts[static_cast<size_t>(t)]) sum = {};
        const int64_t flat = (row * tokens + t) * channels + channel;
        const auto at = static_cast<size_t>(flat);
        const double error = got.value(flat) - reference.mid[at];
        if (!std::isfinite(error)) return std::nullopt;
        ++sum.steps, sum.decay += reference.mid[at], sum.error += error, sum.bound += reference.bound[at];
        if (!worst.element.empty() && std::fabs(sum.error) <= std::fabs(worst.error)) continue;
        worst = sum;
        worst.element = got.element_name(flat);
      }
    }
  return worst;
}

}  // namespace assay
