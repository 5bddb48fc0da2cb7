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
  const size_t rows = static_cast<size_t>(noise.rows);
  std::vector<Lanes> is_new(rows * width), is_old(rows * width);
  std::vector<float> of_all(rows * width);
  for (size_t r = 0; r < rows; ++r) {
    const auto flat = static_cast<size_t>(model.blocks.row(block, static_cast<int64_t>(r)));
    add_errors(noise, r * width, flat, reference, is_new.data() + r * width, is_old.data() + r * width);
    for (size_t v = 0; v < width; ++v) {
      const size_t i = r * width + v;
      if (model.rest[flat + v] < 0)
        is_new[i] = is_old[i] = Lanes{};
      else if (noise.common)
        of_all[i] = noise.common[i];
    }
  }
  std::vector<Lanes> fresh(states * width), old(states * width);
  std::vector<float> common(states * width);
  // Each state takes what the rows that read it are off by.
  const auto gather = [&](const auto& loop, const auto& errors, auto& to) {
    const auto wide = static_cast<int64_t>(width);
    loop({noise.states, noise.rows, wide, reads.x.data(), 1, noise.states, errors.data(), to.data()});
  };
  gather(sampled_loops().numbers_times_samples, is_new, fresh);
  gather(sampled_loops().numbers_times_samples, is_old, old);
  gather(sampled_loops().numbers_times_numbers, of_all, common);
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

/// Of a row of elements from place `at` of the block, what is new in their block and what is not. What is
/// common to all is as far off as it may be, one way or the other.
void CarriedSamples::add_errors(const NoiseBlock& noise, size_t at, size_t flat,
                                const ReferenceOutput& reference, Lanes* fresh, Lanes* old) {
  const auto width = static_cast<size_t>(noise.columns);
  std::vector<float> halves(width);
  for (size_t v = 0; v < width; ++v)
    halves[v] = static_cast<float>(reference.roundoff) * binade(static_cast<float>(reference.mid[flat + v]));
  // Storing the results: a stream of its own.
  sampled_loops().draw(mixed(kNoiseSamples) + flat * kNextPlace, halves.data(), noise.columns, fresh);
  for (size_t v = 0; v < width; ++v) {
    if (noise.near) fresh[v] += reinterpret_cast<const Lanes*>(noise.near)[at + v];
    if (noise.far) old[v] += reinterpret_cast<const Lanes*>(noise.far)[at + v];
    const float common = noise.common ? noise.common[at + v] : 0;
    for (int s = 0; s < kNoiseSamples; ++s) old[v][s] += s % 2 == 0 ? common : -common;
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
  std::vector<Lanes> kept(before_.size());
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = before_[i] * left[i / width];
  Form of_fresh;
  for (size_t v = 0; v < width; ++v) {
    Form is_new, is_old;
    is_new.add_column(kept.data() + v, fresh.data() + v, width, left.size());
    is_old.add_column(kept.data() + v, old.data() + v, width, left.size());
    float of_common = 0;
    for (size_t i = v; i < kept.size(); i += width)
      of_common += left[i / width] * common_before_[i] * common[i];
    old_.add(is_old), of_fresh.add(is_new), common_ += static_cast<double>(of_common);
    is_new.add(is_old);
    const double link = is_new.variance(static_cast<double>(of_common));
    links_ += link, errors_.largest = std::fmax(errors_.largest, link);
  }
  errors_.fresh += of_fresh.variance(0);
}

}  // namespace assay
