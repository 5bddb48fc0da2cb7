#include "fuzz/covering_draw.h"

#include <algorithm>
#include <numeric>

#include "fuzz/choice.h"
#include "fuzz/cost.h"

namespace assay {
namespace {

constexpr int kCandidates = 8;
/// What a case costs beside its own work, in lane instructions: properties, the reference, starting.
constexpr double kOverhead = 1e6;
/// No case costs more.
constexpr double kMostWork = 1.2e8;

/// A pair that came up counts an eighth of one that did not, and so on.
int64_t weight(int64_t times_drawn) {
  return int64_t{4096} >> std::min<int64_t>(3 * times_drawn, 12);
}

/// The sizes chosen so far, the smallest where none is, to estimate a cost with.
class Sketch {
 public:
  explicit Sketch(const Kernel& kernel) {
    case_.kernel = kernel.name;
    case_.T = case_.K = case_.V = 16;
  }
  Sketch with(const FeatureClass& chosen) const {
    Sketch sketch = *this;
    Case& c = sketch.case_;
    const char axis = chosen.feature->axis;
    if (axis != 0)
      (axis == 'K' ? c.K : axis == 'V' ? c.V : axis == 'M' ? c.M : axis == 'H' ? c.H : c.T) = chosen.least;
    if (chosen.feature->name == "direction") c.direction = direction_of(chosen.name);
    return sketch;
  }
  double cost() const { return estimated_cost(case_); }

 private:
  Case case_;
};

class Chooser {
 public:
  Chooser(const FeaturePairs& pairs, const Kernel& kernel) : pairs_(pairs), kernel_(kernel) {
    int64_t fewest = INT64_MAX;
    const size_t n = pairs.classes().size();
    for (size_t a = 0; a < n; ++a)
      for (size_t b = a + 1; b < n; ++b) {
        if (!pairs.is_possible(a, b) || pairs.times_drawn(a, b) > fewest) continue;
        if (pairs.times_drawn(a, b) < fewest) least_.clear();
        fewest = pairs.times_drawn(a, b);
        least_.push_back({a, b});
      }
  }

  /// Places of a class of each feature, and the pair that they were chosen around first.
  std::vector<size_t> choose() const {
    const auto [a, b] = least_[static_cast<size_t>(between(0, std::ssize(least_) - 1))];
    std::vector<size_t> chosen{a, b};
    Sketch sketch = Sketch(kernel_).with(pairs_.classes()[a]).with(pairs_.classes()[b]);
    const double budget =
        std::max(2 * sketch.cost(), pick<double>({{60, 3e6}, {30, 1e7}, {9, 3e7}, {1, 6e7}}));
    for (const size_t row : rest_in_any_order(chosen)) {
      const std::optional<size_t> best = best_class(row, chosen, sketch, budget);
      if (!best) continue;
      chosen.push_back(*best);
      sketch = sketch.with(pairs_.classes()[*best]);
    }
    return chosen;
  }

  /// What running the case would add.
  int64_t gain(const Case& c) const {
    const auto places = pairs_.classes_of(c);
    int64_t sum = 0;
    for (size_t i = 0; i < places.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (places[i] && places[j] && pairs_.is_possible(*places[i], *places[j]))
          sum += weight(pairs_.times_drawn(*places[i], *places[j]));
    return sum;
  }

  bool any() const { return !least_.empty(); }

 private:
  std::vector<size_t> rest_in_any_order(const std::vector<size_t>& chosen) const {
    std::vector<size_t> rows;
    for (size_t row = 0; row < pairs_.features(); ++row)
      if (std::none_of(chosen.begin(), chosen.end(),
                       [&](size_t place) { return pairs_.classes()[place].row == row; }))
        rows.push_back(row);
    for (size_t i = rows.size(); i > 1; --i)
      std::swap(rows[i - 1], rows[static_cast<size_t>(between(0, static_cast<int64_t>(i) - 1))]);
    return rows;
  }

  /// Any of those that add most to what is chosen, among those that go with all of it within the budget.
  std::optional<size_t> best_class(size_t row, const std::vector<size_t>& chosen, const Sketch& sketch,
                                   double budget) const {
    std::vector<size_t> best;
    int64_t most = 0;
    for (size_t place = 0; place < pairs_.classes().size(); ++place) {
      if (pairs_.classes()[place].row != row) continue;
      int64_t sum = 0;
      bool goes = true;
      for (const size_t other : chosen) {
        goes = goes && pairs_.is_possible(place, other);
        sum += weight(pairs_.times_drawn(place, other));
      }
      if (!goes || sum < most || sketch.with(pairs_.classes()[place]).cost() > budget) continue;
      if (sum > most) best.clear();
      most = sum;
      best.push_back(place);
    }
    if (best.empty()) return std::nullopt;
    return best[static_cast<size_t>(between(0, std::ssize(best) - 1))];
  }

  const FeaturePairs& pairs_;
  const Kernel& kernel_;
  std::vector<std::pair<size_t, size_t>> least_;
};

/// A kernel that takes few cases takes one more readily that stays near one it takes: at last with the first
/// pair alone.
std::optional<Case> candidate(const Chooser& chooser, const FeaturePairs& pairs, const Target& target) {
  const Case* start = pairs.start(static_cast<size_t>(between(0, 1'000'000)));
  if (start == nullptr) return std::nullopt;
  std::vector<size_t> chosen = chooser.choose();
  for (const int kept : {25, 100, 100}) {
    Case c = with_classes(*start, pairs, chosen, target, kept);
    if (estimated_cost(c) <= kMostWork && is_taken(c, target)) return c;
    if (kept == 100) chosen.resize(2);
  }
  return std::nullopt;
}

}  // namespace

bool covers_pairs(const FeaturePairs& pairs, uint64_t seed, uint64_t index) {
  const bool complete = pairs.drawn() == pairs.possible();
  return ((index + seed) % 4 == 0) == complete;
}

std::optional<Case> draw_covering_case(const FeaturePairs& pairs, const Kernel& kernel, const Operator& op,
                                       uint64_t seed, uint64_t index) {
  const Feedback nothing;
  const Target target{kernel, op, nothing};
  const Chooser chooser(pairs, kernel);
  if (!chooser.any()) return std::nullopt;
  std::optional<Case> best;
  double most = -1;
  for (uint64_t i = 0; i < kCandidates; ++i) {
    const auto draw = [&] { return candidate(chooser, pairs, target); };
    const std::optional<Case> c = drawn_from(rc::Random(mixed(mixed(~seed) + index + (i << 40))), draw);
    if (!c) continue;
    const double score = static_cast<double>(chooser.gain(*c)) / (kOverhead + estimated_cost(*c));
    if (score > most) best = c, most = score;
  }
  return best;
}

}  // namespace assay
