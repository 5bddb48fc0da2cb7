#include "reference/bounds/chunk_passage.h"

#include <algorithm>
#include <cmath>

#include "reference/bounds/norm_recurrence.h"
#include "reference/bounds/norm_wise.h"

namespace assay {
namespace {

constexpr int64_t kMostChannels = 64, kMostChunks = 64;
/// Of growth^2 (1 + pull): beyond it the doubles of M and P are not worth their roundings.
constexpr double kMostGrowth = 0x1p16;
/// Where this is left of an error at its start a window has done its work.
constexpr double kLeft = 0.25;
/// Of 2 - pull: below it larger weights of what shortens errors least make P larger than sums smaller.
constexpr double kLeastRest = 0.375;

}  // namespace

ChunkPassage::ChunkPassage() : whole(HUGE_VAL), response(HUGE_VAL), lengthened(HUGE_VAL) {}

double passage_weight(double rate, double pull) {
  return std::fmax(std::fabs(rate) * std::clamp(2 - pull, kLeastRest, 1.0), 0x1p-10);
}

ChunkPassages::ChunkPassages(int64_t K) : K_(K) {
  begin();
}

void ChunkPassages::begin() {
  tokens_ = chunks_ = 0, growth_ = 1, pull_ = written_ = 0, begins_ = true;
  if (K_ > kMostChannels) return;
  const auto K = static_cast<size_t>(K_);
  M_.assign(K * K, 0), P_ = M_, read_.assign(2 * K, 0);
  for (size_t i = 0; i < K; ++i) M_[i * K + i] = 1;
}

void ChunkPassages::add(const NormStep& s, double rho, double rate) {
  const double x_square = std::pow(norm(s.x, K_), 2), pull = std::fabs(rate) * norm(s.x, K_) * norm(s.y, K_);
  ++tokens_, growth_ *= std::fmax(1, rho), pull_ = std::fmax(pull_, pull);
  const double omega = passage_weight(rate, pull);
  written_ += omega * x_square;
  if (K_ > kMostChannels || !(growth_ * growth_ * (1 + pull_) <= kMostGrowth)) return;
  const auto K = static_cast<size_t>(K_);
  double *of_M = read_.data(), *of_P = of_M + K;
  std::fill(read_.begin(), read_.end(), 0);
  for (size_t c = 0; c < K; ++c)
    for (size_t j = 0; j < K; ++j) of_M[j] += s.y[c] * M_[c * K + j], of_P[j] += s.y[c] * P_[c * K + j];
  // A P A^T = D P D + D P y rate x^T + rate x (y^T P) D + rate^2 (y^T P y) x x^T, P symmetric.
  double twice = 0;
  for (size_t c = 0; c < K; ++c) twice += of_P[c] * s.y[c];
  const double of_x = rate * rate * twice + omega;
  std::vector<double> weight(K), x(K), crossed(K);
  for (size_t c = 0; c < K; ++c) {
    weight[c] = exponential(s.w[c]), x[c] = s.x[c];
    crossed[c] = rate * weight[c] * of_P[c];
  }
  for (size_t c = 0; c < K; ++c) {
    const double pulled = rate * x[c], outer = of_x * x[c];
    for (size_t j = 0; j < K; ++j) {
      double &m = M_[c * K + j], &p = P_[c * K + j];
      m = weight[c] * m + pulled * of_M[j];
      p = weight[c] * p * weight[j] + crossed[c] * x[j] + x[c] * crossed[j] + outer * x[j];
    }
  }
}

ChunkPassage ChunkPassages::passage() const {
  ChunkPassage y;
  y.begins = begins_;
  if (!(growth_ * growth_ * (1 + pull_) <= kMostGrowth)) return y;
  y.lengthened = growth_ * (1 + 0x1p-30);
  // Before all directions are reached M has the norm one.
  if (K_ > kMostChannels || tokens_ < K_) return y;
  const auto K = static_cast<size_t>(K_);
  const double tokens = static_cast<double>(tokens_), places = static_cast<double>(K_ + 8),
               each = places * 0x1p-52 * (1 + pull_) * growth_ * growth_;
  y.whole = spectral_norm(M_, K) + tokens * each * std::sqrt(static_cast<double>(K_));
  const double written = written_ * growth_ * growth_;
  y.response = std::sqrt(spectral_norm(P_, K) + 4 * tokens * each * (1 + pull_) * written) * (1 + 0x1p-30);
  return y;
}

ChunkPassage ChunkPassages::end_chunk() {
  ++chunks_;
  const ChunkPassage y = passage();
  begins_ = false;
  if (!(y.lengthened < HUGE_VAL) || y.whole <= kLeft || chunks_ == kMostChunks) begin();
  return y;
}

}  // namespace assay
