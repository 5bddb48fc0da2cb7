#include "reference/sampled_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

/// Slots `from` to `end` of y are a token's.
void token_weights(const SampledChunk& chunk, const SoftmaxErrors& errors, const SampledWeights& y,
                   size_t from, size_t end, SampledWeights& p) {
  const float largest = *std::max_element(y.value.begin() + static_cast<std::ptrdiff_t>(from),
                                          y.value.begin() + static_cast<std::ptrdiff_t>(end));
  float sum = 0, noisy = 0, shared = 0, mean_eta = 0;
  for (size_t i = from; i < end; ++i) sum += p.value[i] = std::exp(y.value[i] - largest);
  Lanes near_mean = {}, sums = {};
  for (size_t i = from; i < end; ++i) {
    const float w = p.value[i] /= sum;
    const Lanes off = y.near[i] + y.far[i];
    near_mean += w * y.near[i];
    for (int l = 0; l < kNoiseSamples; ++l) {
      p.far[i][l] = w * std::exp(off[l]);
      noisy += w * (1 - w) * off[l] * off[l] / kNoiseSamples;
    }
    shared += w * (1 - w);
    sums += p.far[i];
    p.moved[i] = std::sqrt(y.moved[i]) + static_cast<float>(errors.per_nat) * (largest - y.value[i]);
    mean_eta += w * p.moved[i];
  }
  for (size_t i = from; i < end; ++i) {
    const float w = p.value[i], eta = p.moved[i];
    p.near[i] = w * (y.near[i] - near_mean);
    p.far[i] = p.far[i] / sums - w - p.near[i];
    Lanes stored;
    chunk.draw(NoiseSource::weight, static_cast<int64_t>(i),
               errors.weight * std::fmin(binade(w), (1 - w) / chunk.u()), stored);
    p.near[i] += stored;
    p.far[i] += chunk.common() * (alike(w, chunk.u()) * roundings_of(errors.weight, chunk.u()) * w);
    const float off = w * ((1 - w) * eta + (mean_eta - w * eta) + static_cast<float>(errors.divide));
    p.moved[i] = noisy > kNoisyLogits * shared ? std::numeric_limits<float>::infinity() : off * off;
  }
}

void token_gradients(const SampledChunk& chunk, const SoftmaxErrors& errors, const SampledWeights& p,
                     const SampledWeights& dp, size_t from, size_t end, SampledWeights& dy) {
  float mean = 0, sizes = 0, of_p = 0, of_dp = 0;
  Lanes near_mean = {}, means = {};
  for (size_t i = from; i < end; ++i) mean += p.value[i] * dp.value[i];
  for (size_t i = from; i < end; ++i) {
    near_mean += p.near[i] * dp.value[i] + p.value[i] * dp.near[i];
    means += (p.value[i] + p.near[i] + p.far[i]) * (dp.value[i] + dp.near[i] + dp.far[i]);
    sizes += p.value[i] * std::fabs(dp.value[i]);
    of_p += std::sqrt(p.moved[i]) * std::fabs(dp.value[i] - mean);
    of_dp += p.value[i] * std::sqrt(dp.moved[i]);
  }
  const auto inner = static_cast<float>(errors.inner), divide = static_cast<float>(errors.divide);
  for (size_t i = from; i < end; ++i) {
    const float w = p.value[i], value = dp.value[i] - mean, f = std::sqrt(dp.moved[i]);
    dy.value[i] = w * value;
    dy.near[i] = p.near[i] * value + w * (dp.near[i] - near_mean);
    dy.far[i] = (w + p.near[i] + p.far[i]) * (dp.value[i] + dp.near[i] + dp.far[i] - means) - dy.value[i] -
                dy.near[i];
    Lanes stored;
    chunk.draw(NoiseSource::weight_gradient, static_cast<int64_t>(i), errors.gradient * binade(dy.value[i]),
               stored);
    dy.near[i] += stored;
    const float common = of_p + (divide + inner) * sizes, off = std::sqrt(p.moved[i]) * std::fabs(value) +
                                                                w * (common + (1 - w) * f + (of_dp - w * f)) +
                                                                2 * inner * std::fabs(dy.value[i]);
    dy.moved[i] = off * off;
  }
}

}  // namespace

SampledWeights sampled_softmax(const SampledChunk& chunk, int64_t slots, const SoftmaxErrors& errors,
                               const SampledWeights& y) {
  SampledWeights p(y.value.size());
  const auto M = static_cast<size_t>(slots);
  for (size_t i = 0; i < y.value.size(); i += M) token_weights(chunk, errors, y, i, i + M, p);
  return p;
}

SampledWeights sampled_softmax_gradient(const SampledChunk& chunk, int64_t slots, const SoftmaxErrors& errors,
                                        const SampledWeights& p, const SampledWeights& dp) {
  SampledWeights dy(p.value.size());
  const auto M = static_cast<size_t>(slots);
  for (size_t i = 0; i < p.value.size(); i += M) token_gradients(chunk, errors, p, dp, i, i + M, dy);
  return dy;
}

}  // namespace assay
