#include "fuzz/feature_pairs.h"

#include <algorithm>

#include "fuzz/choice.h"
#include "fuzz/cost.h"
#include "fuzz/kept_pairs.h"
#include "fuzz/settle.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

/// Cases of the plain draw that the search for pairs starts from, and how many of them it tries for one pair.
constexpr uint64_t kStarts = 48;
constexpr size_t kTries = 12;
/// Which pairs there are does not depend on a run's seed.
constexpr uint64_t kSeed = 16;

std::vector<Case> cheapest_starts(const Kernel& kernel, const Operator& op) {
  std::vector<Case> starts;
  for (uint64_t i = 0; i < kStarts; ++i)
    if (Case c = draw_case(kernel, op, {}, kSeed, i); is_taken(c, {kernel, op, {}}))
      starts.push_back(std::move(c));
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Case& a, const Case& b) { return estimated_cost(a) < estimated_cost(b); });
  starts.resize(std::min(starts.size(), kTries));
  return starts;
}

}  // namespace

bool is_taken(const Case& c, const Target& target) {
  try {
    accepted(c, target.kernel);
  } catch (const BadInput&) {
    return false;
  }
  return within_gate_range(c, target);
}

Case with_classes(Case c, const FeaturePairs& pairs, std::vector<size_t> places, const Target& target,
                  int kept) {
  std::sort(places.begin(), places.end());  // the order of the features
  c.kernel = target.kernel.name, c.rates = largest_rate(target.kernel);
  c.layout.clear();  // strides are those of the sizes before
  for (const size_t place : places) {
    const FeatureClass& wanted = pairs.classes()[place];
    if (wanted.feature->class_of(c, target.op) != wanted.name || !chance(kept))
      wanted.feature->draw(c, target, wanted.name);
  }
  draw_scale(c, target);
  draw_parameters(c, target);
  draw_seed(c, target);
  agree(c, target.op);
  return c;
}

FeaturePairs::FeaturePairs(const Kernel& kernel, const Operator& op) : op_(op) {
  for (const Feature& feature : assay::features()) {
    const std::vector<std::string> names = feature.classes(kernel, op);
    if (names.size() < 2) continue;
    for (const std::string& name : names) {
      classes_.push_back({&feature, features_, name});
      for (const SizeClass& row : size_classes())
        if (row.axes.find(feature.axis) != row.axes.npos && row.name == name)
          classes_.back().least = row.least;
    }
    ++features_;
  }
  for (auto* table : {&possible_, &covered_, &drawn_}) table->resize(classes_.size() * classes_.size());
  starts_ = cheapest_starts(kernel, op);
  if (read_kept_pairs(kernel, possible_)) return;
  find_possible(kernel);
  keep_pairs(kernel, possible_);
}

std::vector<std::optional<size_t>> FeaturePairs::classes_of(const Case& c) const {
  std::vector<std::optional<size_t>> places(features_);
  std::string name;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (i == 0 || classes_[i].row != classes_[i - 1].row) name = classes_[i].feature->class_of(c, op_);
    if (classes_[i].name == name) places[classes_[i].row] = i;
  }
  return places;
}

template <typename Change>
void FeaturePairs::for_each_pair(const Case& c, Change&& change) {
  const auto places = classes_of(c);
  for (const auto& a : places)
    for (const auto& b : places)
      if (a && b && a != b) change(*a * classes_.size() + *b);
}

void FeaturePairs::note_drawn(const Case& c) {
  for_each_pair(c, [&](size_t at) { drawn_[at] += drawn_[at] < UINT8_MAX; });
}

void FeaturePairs::note_covered(const Case& c) {
  for_each_pair(c, [&](size_t at) { possible_[at] = covered_[at] = 1; });
}

int64_t FeaturePairs::possible() const {
  return std::count(possible_.begin(), possible_.end(), 1) / 2;
}

int64_t FeaturePairs::covered() const {
  return std::count(covered_.begin(), covered_.end(), 1) / 2;
}

int64_t FeaturePairs::drawn() const {
  int64_t pairs = 0;
  for (size_t i = 0; i < possible_.size(); ++i) pairs += possible_[i] != 0 && drawn_[i] > 0;
  return pairs / 2;
}

std::vector<std::string> FeaturePairs::missing() const {
  std::vector<std::string> texts;
  const auto text = [&](size_t i) { return std::string(classes_[i].feature->name) + " " + classes_[i].name; };
  for (size_t a = 0; a < classes_.size(); ++a)
    for (size_t b = a + 1; b < classes_.size(); ++b)
      if (is_possible(a, b) && !covered_[a * classes_.size() + b])
        texts.push_back(text(a) + " with " + text(b));
  return texts;
}

/// A case that is found for one pair shows all of its pairs.
void FeaturePairs::find_possible(const Kernel& kernel) {
  const Feedback nothing;
  const Target target{kernel, op_, nothing};
  for (size_t a = 0; a < classes_.size(); ++a)
    for (size_t b = a + 1; b < classes_.size(); ++b) {
      if (classes_[a].row == classes_[b].row) continue;
      for (size_t i = 0; i < starts_.size() && !is_possible(a, b); ++i) {
        const auto draw = [&] { return with_classes(starts_[i], *this, {a, b}, target, 75); };
        const Case c = drawn_from(rc::Random(mixed(mixed(a * classes_.size() + b) + i)), draw);
        if (!is_taken(c, target)) continue;
        for_each_pair(c, [&](size_t at) { possible_[at] = 1; });
      }
    }
}

}  // namespace assay
