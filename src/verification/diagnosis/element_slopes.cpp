#include "src/verification/diagnosis/element_slopes.h"

#include <algorithm>
#include <utility>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/slice_derivative.h"

namespace assay {
namespace {

/// Of an instance behind an element, in nanoseconds (counted_work.h).
constexpr double kOfInstance = 25;

struct Slope {
  uint32_t instance = 0;
  double slope = 0;
};

}  // namespace

bool ElementSlopes::alike(size_t instance, size_t other) const {
  const size_t a = first[instance], b = first[other], count = first[instance + 1] - a;
  if (first[other + 1] - b != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (element[a + i] != element[b + i] || slope[a + i] != slope[b + i]) return false;
  return true;
}

double ElementSlopes::times(size_t instance, const std::vector<double>& by_element) const {
  double sum = 0;
  for (size_t i = first[instance]; i < first[instance + 1]; ++i) sum += slope[i] * by_element[element[i]];
  return sum;
}

double ElementSlopes::square(size_t instance) const {
  double sum = 0;
  for (size_t i = first[instance]; i < first[instance + 1]; ++i) sum += slope[i] * slope[i];
  return sum;
}

std::vector<double> ElementSlopes::column(size_t instance, size_t elements) const {
  std::vector<double> all(elements);
  for (size_t i = first[instance]; i < first[instance + 1]; ++i) all[element[i]] = slope[i];
  return all;
}

double number_of(const vm::ValueSlice& slice, uint32_t instance) {
  const vm::SliceInstance& i = slice.instances[instance];
  return ptx::is_float(i.type) ? vm::value_of(i.type, i.bits) : 0;
}

ElementSlopes slopes_of(const vm::ValueSlice& slice, const std::vector<double>& weights,
                        const std::function<void(size_t element, size_t instance)>& reached) {
  const size_t count = slice.instances.size();
  const std::vector<double> by_operand = operand_slopes(slice);
  ElementSlopes all;
  all.first.assign(count + 1, 0), all.nearest.assign(count, UINT32_MAX);
  std::vector<std::vector<Slope>> of_element(slice.roots.size());
  std::vector<double> open(count);
  std::vector<uint8_t> behind(count);
  for (size_t e = 0; e < slice.roots.size(); ++e) {
    if (slice.roots[e] < 0) continue;
    size_t last = static_cast<size_t>(slice.roots[e]);
    open[last] = 1, behind[last] = 1;
    uint32_t place = 0;
    for (size_t n = last; n <= last; ++n) {
      if (!std::exchange(behind[n], uint8_t{0})) continue;
      const double slope = std::exchange(open[n], 0.0);
      reached(e, n);
      all.nearest[n] = std::min(all.nearest[n], place++);
      const vm::SliceInstance& i = slice.instances[n];
      for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
        if (slice.operands[o].made_by < 0) continue;
        const auto maker = static_cast<size_t>(slice.operands[o].made_by);
        behind[maker] = 1, last = std::max(last, maker);
        open[maker] += slope * by_operand[o];
      }
      if (slope == 0) continue;
      of_element[e].push_back({static_cast<uint32_t>(n), slope * weights[e]});
      ++all.first[n + 1];
    }
    count_work(place, kOfInstance);
  }
  for (size_t n = 0; n < count; ++n) all.first[n + 1] += all.first[n];
  all.element.resize(all.first[count]), all.slope.resize(all.first[count]);
  std::vector<uint32_t> next(all.first.begin(), all.first.end() - 1);
  for (size_t e = 0; e < of_element.size(); ++e)
    for (const Slope& s : of_element[e]) {
      const uint32_t at = next[s.instance]++;
      all.element[at] = static_cast<uint16_t>(e), all.slope[at] = s.slope;
    }
  return all;
}

}  // namespace assay
