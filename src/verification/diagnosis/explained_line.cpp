#include "src/verification/diagnosis/explained_line.h"

#include <cmath>
#include <utility>

#include "src/base/vm/event_log.h"

namespace assay {
namespace {

constexpr size_t kMostChanges = 24;

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

/// All values of the line times one number.
bool WrongElements::scaled(ExplainedLine& line) const {
  std::vector<double> all(lacking.size());
  for (const uint32_t n : line.instances)
    for (size_t i = slopes.first[n]; i < slopes.first[n + 1]; ++i)
      all[slopes.element[i]] += number_of(slice, n) * slopes.slope[i];
  const double size = product(all, all);
  if (!(size > 0)) return false;
  const double by = product(all, lacking) / size;
  std::vector<double> left = lacking;
  subtract(left, by, all);
  line.left = std::sqrt(product(left, left) / product(lacking, lacking));
  if (!(line.left < kLeftWhereExplained)) return false;
  line.changes = 1, line.factor = 1 + by;
  for (const uint32_t n : line.instances) note_reached(line, n);
  return true;
}

/// The instance whose change explains most of what is left, and so on. What is left has no part along those
/// that were taken, so that of the others only the size of what is not along those is kept.
void WrongElements::explain_by_instances(ExplainedLine& line) const {
  constexpr double kDependent = 1e-12;
  std::vector<double> left = lacking;
  const double whole = product(lacking, lacking);
  std::vector<std::vector<double>> basis;
  std::vector<double> sizes, squares;
  for (const uint32_t n : line.instances) squares.push_back(slopes.square(n));
  sizes = squares;
  line.left = 1, line.changes = 0, line.reached.clear(), line.changed.clear();
  while (line.changes < kMostChanges && line.left >= kLeftWhereExplained) {
    size_t best = SIZE_MAX;
    double most = 0;
    for (size_t c = 0; c < sizes.size(); ++c) {
      if (sizes[c] <= kDependent * squares[c]) continue;
      const double along = slopes.times(line.instances[c], left);
      if (along * along / sizes[c] > most) most = along * along / sizes[c], best = c;
    }
    if (best == SIZE_MAX || most < 1e-12 * whole) return;
    std::vector<double> direction = slopes.column(line.instances[best], lacking.size());
    for (const std::vector<double>& known : basis) subtract(direction, product(direction, known), known);
    const double size = std::sqrt(product(direction, direction));
    for (double& x : direction) x /= size;
    subtract(left, product(left, direction), direction);
    for (size_t c = 0; c < sizes.size(); ++c) {
      const double along = slopes.times(line.instances[c], direction);
      sizes[c] -= along * along;
    }
    sizes[best] = 0;
    basis.push_back(std::move(direction));
    ++line.changes;
    line.changed.push_back(line.instances[best]);
    note_reached(line, line.instances[best]);
    line.left = std::sqrt(product(left, left) / whole);
  }
}

void WrongElements::explain(ExplainedLine& line) const {
  if (!scaled(line)) explain_by_instances(line);
}

/// How little it is by chance that the line explains all, as thresholds.h counts: each element that its
/// changes move, beyond as many as they are, agrees to kLeftWhereExplained; and which values were changed
/// was chosen.
double bits_of(const ExplainedLine& line) {
  const auto n = static_cast<double>(line.instances.size()), k = static_cast<double>(line.changes);
  const double choices =
      line.factor != 0 ? 0
                       : (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
  return (static_cast<double>(line.reached.size()) - k) * -std::log2(kLeftWhereExplained) - choices;
}

}  // namespace assay
