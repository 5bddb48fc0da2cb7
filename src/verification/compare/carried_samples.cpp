#include "src/verification/compare/carried_samples.h"

#include <algorithm>
#include <cmath>

namespace assay {

void CarriedSamples::add(const NoiseBlock& noise, const OutputBlock& block, const ReferenceOutput& reference,
                         const OutputModel& model) {
  const auto states = static_cast<size_t>(noise.states), width = static_cast<size_t>(noise.columns);
  StateReads reads{static_cast<size_t>(&block - model.blocks.blocks().data()), {}, {}};
  reads.x.assign(noise.reads, noise.reads + static_cast<size_t>(noise.rows) * states);
  reads.left.assign(noise.left, noise.left + states);
  std::vector<Lanes> fresh(states * width), old(states * width);
  std::vector<float> common(states * width);
  for (int64_t r = 0; r < noise.rows; ++r)
    for (size_t v = 0; v < width; ++v) {
      const auto flat = static_cast<size_t>(model.blocks.row(block, r)) + v;
      if (model.rest[flat] < 0) continue;
      const size_t i = static_cast<size_t>(r) * width + v;
      Lanes is_new = {}, is_old = {};
      add_error(noise, i, flat, reference, is_new, is_old);
      const float of_all = noise.common ? noise.common[i] : 0;
      const float* const x = reads.x.data() + static_cast<size_t>(r) * states;
      for (size_t c = 0; c < states; ++c) {
        const size_t to = c * width + v;
        fresh[to] += x[c] * is_new, old[to] += x[c] * is_old, common[to] += x[c] * of_all;
      }
    }
  add_kept(noise, block, model);
  if (!before_.empty()) add_products(width, fresh, old, common);
  for (size_t i = 0; i < old.size(); ++i) old[i] += fresh[i];
  before_ = std::move(old), common_before_ = std::move(common);
  errors_.blocks.push_back(std::move(reads));
}

std::optional<CarriedErrors> CarriedSamples::errors() && {
  if (errors_.blocks.size() < 2) return {};
  errors_.mean = old_.mean() + std::fmax(0, -common_);
  old_.make_symmetric();
  errors_.old = 2 * old_.variance(common_);
  if (links_ > 0) errors_.together = std::fmax(1, (errors_.fresh + errors_.old) / links_);
  return std::move(errors_);
}

/// Of one element, what is new in its block and what is not. What is common to all is as far off as it may
/// be, one way or the other.
void CarriedSamples::add_error(const NoiseBlock& noise, size_t i, size_t flat,
                               const ReferenceOutput& reference, Lanes& fresh, Lanes& old) {
  if (noise.near) fresh += reinterpret_cast<const Lanes*>(noise.near)[i];
  if (noise.far) old += reinterpret_cast<const Lanes*>(noise.far)[i];
  const auto half = static_cast<float>(reference.roundoff) * binade(static_cast<float>(reference.mid[flat]));
  const float common = noise.common ? noise.common[i] : 0;
  for (int s = 0; s < kNoiseSamples; ++s) {
    const uint64_t bits = mixed(flat * kNoiseSamples + static_cast<uint64_t>(s));
    fresh[s] += half * (static_cast<float>(bits >> 40) * 0x1p-23f - 1);
    old[s] += s % 2 == 0 ? common : -common;
  }
}

void CarriedSamples::add_kept(const NoiseBlock& noise, const OutputBlock& block, const OutputModel& model) {
  std::vector<float> kept(noise.kept, noise.kept + noise.rows * noise.columns);
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / noise.columns,
               column = static_cast<int64_t>(i) % noise.columns;
    if (model.rest[static_cast<size_t>(model.blocks.row(block, row) + column)] < 0) kept[i] = 0;
    if (noise.common) errors_.kept_common += static_cast<double>(kept[i] * noise.common[i]);
  }
  errors_.kept.push_back(std::move(kept)), errors_.kept_variance += noise.kept_variance;
}

/// What this block and the one before say alike, of every pair of samples.
void CarriedSamples::add_products(size_t width, const std::vector<Lanes>& fresh,
                                  const std::vector<Lanes>& old, const std::vector<float>& common) {
  const std::vector<float>& left = errors_.blocks.back().left;
  Form of_fresh;
  for (size_t v = 0; v < width; ++v) {
    Form is_new, is_old;
    float of_common = 0;
    for (size_t i = v; i < before_.size(); i += width) {
      const Lanes kept = before_[i] * left[i / width];
      is_new.add(kept, fresh[i]), is_old.add(kept, old[i]);
      of_common += left[i / width] * common_before_[i] * common[i];
    }
    old_.add(is_old), of_fresh.add(is_new), common_ += static_cast<double>(of_common);
    is_new.add(is_old);
    const double link = is_new.variance(static_cast<double>(of_common));
    links_ += link, errors_.largest = std::fmax(errors_.largest, link);
  }
  errors_.fresh += of_fresh.variance(0);
}

}  // namespace assay
