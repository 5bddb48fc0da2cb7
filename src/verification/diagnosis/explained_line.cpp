#include "src/verification/diagnosis/explained_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

constexpr size_t kMostChanges = 24;
/// Of an instance's slope to an element, in nanoseconds (counted_work.h).
constexpr double kOfSlope = 2;

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
void subtract(std::vector<double>& from, double times, const std::vector<double>& what) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= times * what[i];
}

}  // namespace

void WrongElements::note_reached(ExplainedLine& line, uint32_t n) const {
  for (size_t i = slopes.first[n]; i < slopes.first[n + 1]; ++i) line.reached.insert(slopes.element[i]);
}

std::vector<uint32_t> made_by_line(const vm::ValueSlice& slice, std::vector<uint32_t> instances) {
  std::sort(instances.begin(), instances.end());
  std::vector<bool> inner(instances.size());
  for (const uint32_t n : instances) {
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      if (slice.operands[o].made_by < 0) continue;
      const auto maker = static_cast<uint32_t>(slice.operands[o].made_by);
      const auto at = std::lower_bound(instances.begin(), instances.end(), maker);
      if (at != instances.end() && *at == maker) inner[static_cast<size_t>(at - instances.begin())] = true;
    }
  }
  std::vector<uint32_t> made;
  for (size_t i = 0; i < instances.size(); ++i)
    if (!inner[i]) made.push_back(instances[i]);
  return made;
}

bool WrongElements::scaled(ExplainedLine& line, const std::vector<uint32_t>& instances) const {
  std::vector<double> all(lacking.size());
  for (const uint32_t n : instances)
    for (size_t i = slopes.first[n]; i < slopes.first[n + 1]; ++i)
      all[slopes.element[i]] += number_of(slice, n) * slopes.slope[i];
  const double size = product(all, all);
  if (!(size > 0)) return false;
  const double by = product(all, lacking) / size;
  std::vector<double> left = lacking;
  subtract(left, by, all);
  line.left = std::sqrt(product(left, left) / product(lacking, lacking));
  if (!line.explains()) return false;
  line.changes = 1, line.factor = 1 + by;
  for (const uint32_t n : instances) note_reached(line, n);
  return true;
}

/// All that the line makes times one number, or all of its values.
bool WrongElements::scaled(ExplainedLine& line) const {
  const std::vector<uint32_t> made = made_by_line(slice, line.instances);
  if (made.size() < line.instances.size() && scaled(line, made)) return true;
  return scaled(line, line.instances);
}

/// Instances that change together.
struct WrongElements::Groups {
  std::vector<uint32_t> members;
  std::vector<size_t> first{0};  ///< of each, and the end
  size_t size() const { return first.size() - 1; }
  template <class Visit>
  void each(size_t group, Visit visit) const {
    for (size_t i = first[group]; i < first[group + 1]; ++i) visit(members[i]);
  }
};

WrongElements::Groups WrongElements::by_value(const ExplainedLine& line) const {
  Groups groups;
  groups.members = line.instances;
  std::stable_sort(groups.members.begin(), groups.members.end(),
                   [&](uint32_t a, uint32_t b) { return numbers[a] < numbers[b]; });
  for (size_t i = 1; i <= groups.members.size(); ++i)
    if (i == groups.members.size() || numbers[groups.members[i]] != numbers[groups.members[i - 1]])
      groups.first.push_back(i);
  return groups;
}

/// What is left has no part along those that were taken, so that of the others only the size of what is not
/// along those is kept.
void WrongElements::explain_by(const Groups& groups, ExplainedLine& line) const {
  constexpr double kDependent = 1e-12;
  std::vector<double> left = lacking;
  const double whole = product(lacking, lacking);
  std::vector<std::vector<double>> basis;
  std::vector<double> sizes, squares;
  const auto column = [&](size_t group) {
    std::vector<double> all(lacking.size());
    groups.each(group, [&](uint32_t n) {
      for (size_t i = slopes.first[n]; i < slopes.first[n + 1]; ++i)
        all[slopes.element[i]] += slopes.slope[i];
    });
    return all;
  };
  const auto times = [&](size_t group, const std::vector<double>& by_element) {
    double sum = 0;
    groups.each(group, [&](uint32_t n) { sum += slopes.times(n, by_element); });
    return sum;
  };
  for (size_t c = 0; c < groups.size(); ++c) {
    const bool alone = groups.first[c + 1] - groups.first[c] == 1;
    const std::vector<double> all = alone ? std::vector<double>() : column(c);
    squares.push_back(alone ? slopes.square(groups.members[groups.first[c]]) : product(all, all));
  }
  double entries = 0;
  for (const uint32_t n : groups.members) entries += slopes.first[n + 1] - slopes.first[n];
  count_work(entries, 2 * kOfSlope);
  sizes = squares;
  line.left = 1, line.changes = 0, line.values = groups.size();
  line.reached.clear(), line.changed.clear(), line.moves.clear();
  while (line.changes < kMostChanges && !line.explains()) {
    size_t best = SIZE_MAX;
    double most = 0;
    count_work(entries + static_cast<double>(groups.members.size()), 2 * kOfSlope);
    for (size_t c = 0; c < sizes.size(); ++c) {
      if (sizes[c] <= kDependent * squares[c]) continue;
      const double along = times(c, left);
      if (along * along / sizes[c] > most) most = along * along / sizes[c], best = c;
    }
    if (best == SIZE_MAX || most < 1e-12 * whole) return;
    line.moves.push_back(column(best));
    std::vector<double> direction = line.moves.back();
    for (const std::vector<double>& known : basis) subtract(direction, product(direction, known), known);
    const double size = std::sqrt(product(direction, direction));
    for (double& x : direction) x /= size;
    subtract(left, product(left, direction), direction);
    for (size_t c = 0; c < sizes.size(); ++c) {
      const double along = times(c, direction);
      sizes[c] -= along * along;
    }
    sizes[best] = 0;
    basis.push_back(std::move(direction));
    ++line.changes;
    line.changed.push_back(groups.members[groups.first[best]]);
    groups.each(best, [&](uint32_t n) { note_reached(line, n); });
    line.left = std::sqrt(product(left, left) / whole);
  }
}

void WrongElements::explain_by_values(ExplainedLine& line) const {
  Groups apart;
  apart.members = line.instances;
  for (size_t i = 1; i <= line.instances.size(); ++i) apart.first.push_back(i);
  explain_by(apart, line);
  if (line.explains() && bits_of(line) >= thresholds::kBitsNeeded) return;
  const Groups together = by_value(line);
  if (together.size() == line.instances.size()) return;
  ExplainedLine other = line;
  explain_by(together, other);
  if (other.explains()) line = std::move(other);
}

void WrongElements::explain(ExplainedLine& line) const {
  if (!scaled(line)) explain_by_values(line);
}

double bits_of(const ExplainedLine& line) {
  const auto n = static_cast<double>(std::max(line.values, line.changes)),
             k = static_cast<double>(line.changes);
  const double choices =
      line.factor != 0 ? 0
                       : (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
  const double left = std::clamp(line.left, line.enough, 1.0);
  return (static_cast<double>(line.reached.size()) - k) * -std::log2(left) - choices;
}

}  // namespace assay
