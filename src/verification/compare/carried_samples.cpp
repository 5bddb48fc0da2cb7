#include "src/verification/compare/carried_samples.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"

namespace assay {

void CarriedSamples::add(const NoiseBlock& noise, const OutputBlock& block, const ReferenceOutput& reference,
                         const OutputModel& model) {
  Gathered here = gathered(noise, block, reference, model);
  const std::lock_guard lock(mutex_);
  waiting_.emplace(block.first, std::move(here));
  for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
       first = waiting_.begin()) {
    next_ += first->second.rows;
    take(std::move(first->second));
    waiting_.erase(first);
  }
}

CarriedSamples::Gathered CarriedSamples::gathered(const NoiseBlock& noise, const OutputBlock& block,
                                                  const ReferenceOutput& reference,
                                                  const OutputModel& model) {
  const auto states = static_cast<size_t>(noise.states), width = static_cast<size_t>(noise.columns),
             rows = static_cast<size_t>(noise.rows);
  Gathered y{StateReads{static_cast<size_t>(&block - model.blocks.blocks().data()), {}, {}}, noise.rows};
  y.reads.x.assign(noise.reads, noise.reads + rows * states);
  y.reads.left.assign(noise.left, noise.left + states);
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
  y.fresh.resize(states * width), y.old.resize(states * width), y.common.resize(states * width);
  // Each state takes what the rows that read it are off by.
  const auto gather = [&](const auto& loop, const auto& errors, auto& to) {
    const auto wide = static_cast<int64_t>(width);
    loop({noise.states, noise.rows, wide, y.reads.x.data(), 1, noise.states, errors.data(), to.data()});
  };
  gather(sampled_loops().numbers_times_samples, is_new, y.fresh);
  gather(sampled_loops().numbers_times_samples, is_old, y.old);
  gather(sampled_loops().numbers_times_numbers, of_all, y.common);
  take_kept(noise, block, model, y);
  return y;
}

std::optional<CarriedErrors> CarriedSamples::errors() && {
  for (auto& [first, block] : waiting_) take(std::move(block));
  waiting_.clear();
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
  Lanes turns = {};
  for (int s = 0; s < kNoiseSamples; ++s) turns[s] = s % 2 == 0 ? 1 : -1;
  for (size_t v = 0; v < width; ++v) {
    if (noise.near) fresh[v] += reinterpret_cast<const Lanes*>(noise.near)[at + v];
    if (noise.far) old[v] += reinterpret_cast<const Lanes*>(noise.far)[at + v];
    if (noise.common) old[v] += turns * noise.common[at + v];
  }
}

void CarriedSamples::take_kept(const NoiseBlock& noise, const OutputBlock& block, const OutputModel& model,
                               Gathered& to) {
  to.kept.assign(noise.kept, noise.kept + noise.rows * noise.columns);
  for (int64_t r = 0, i = 0; r < noise.rows; ++r) {
    const auto flat = static_cast<size_t>(model.blocks.row(block, r));
    for (int64_t column = 0; column < noise.columns; ++column, ++i) {
      float& kept = to.kept[static_cast<size_t>(i)];
      if (model.rest[flat + static_cast<size_t>(column)] < 0) kept = 0;
      if (noise.common) to.kept_common += static_cast<double>(kept * noise.common[i]);
    }
  }
  to.kept_variance = noise.kept_variance;
}

/// The block that follows those that were taken.
void CarriedSamples::take(Gathered here) {
  if (!before_.empty()) add_products(here);
  before_ = std::move(here.old);
  for (size_t i = 0; i < before_.size(); ++i) before_[i] += here.fresh[i];
  common_before_ = std::move(here.common);
  errors_.kept_variance += here.kept_variance, errors_.kept_common += here.kept_common;
  errors_.kept.push_back(std::move(here.kept)), errors_.blocks.push_back(std::move(here.reads));
}

/// What this block and the one before say alike, of every pair of samples.
void CarriedSamples::add_products(const Gathered& here) {
  const std::vector<float>& left = errors_.blocks.back().left;  // behind the block before
  const size_t width = here.common.size() / std::max<size_t>(left.size(), 1);
  std::vector<Lanes> kept(before_.size());
  for_each_element(kept.size(), width,
                   [&](size_t i, size_t row, size_t) { kept[i] = before_[i] * left[row]; });
  Form of_fresh;
  for (size_t v = 0; v < width; ++v) {
    Form is_new, is_old;
    is_new.add_column(kept.data() + v, here.fresh.data() + v, width, left.size());
    is_old.add_column(kept.data() + v, here.old.data() + v, width, left.size());
    float of_common = 0;
    for (size_t row = 0, i = v; i < kept.size(); ++row, i += width)
      of_common += left[row] * common_before_[i] * here.common[i];
    old_.add(is_old), of_fresh.add(is_new), common_ += static_cast<double>(of_common);
    is_new.add(is_old);
    const double link = is_new.variance(static_cast<double>(of_common));
    links_ += link, errors_.largest = std::fmax(errors_.largest, link);
  }
  errors_.fresh += of_fresh.variance(0);
}

}  // namespace assay
