#include "src/verification/diagnosis/related_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

using How = RelatedValue::How;

/// Derivatives are those at the machine's values, which are rounded.
constexpr double kMended = 0x1p-10;
/// Of one element alone, before all are looked at.
constexpr double kFits = 0x1p-7;
/// Statements that are looked at before and after an instance, among so many values.
constexpr size_t kBefore = 64, kAfter = 24, kValues = 400;
/// Instances behind one element; more are a sum that says nothing about one of them.
constexpr size_t kMostOfElement = 256;
/// One may need a value that is in no slice.
constexpr size_t kElementsFitted = 3;
/// Of a value near an instance, in nanoseconds (counted_work.h).
constexpr double kOfNear = 150;
/// log2 of what is tried: some hundred operations, as many statements, five ways.
constexpr double kChoices = 18;

/// How an instance's value changes.
double change_of(How how, double value, double other) {
  switch (how) {
    case How::plus:
      return other;
    case How::minus:
      return -other;
    case How::times:
      return value * (other - 1);
    case How::divided:
      return other == 0 ? 0 : value * (1 / other - 1);
    case How::instead:
      return other - value;
  }
  return 0;
}
constexpr std::array kAllHows = {How::plus, How::minus, How::times, How::divided, How::instead};

/// It is made there, or comes from memory: what a copy holds its source holds too.
bool is_made(const vm::SliceInstance& i) {
  using vm::Flow;
  return ptx::is_float(i.type) &&
         (i.flow == Flow::arithmetic || i.flow == Flow::matrix || i.flow == Flow::select ||
          i.flow == Flow::load || i.flow == Flow::exchange || i.flow == Flow::conversion);
}

}  // namespace

RelatedValues::RelatedValues(const vm::ValueSlice& slice, const ElementSlopes& slopes,
                             const std::vector<double>& lacking, const std::vector<size_t>& statement)
    : slice_(slice), slopes_(slopes), lacking_(lacking), statement_(statement) {
  std::map<std::array<uint32_t, 7>, uint32_t> threads;
  for (uint32_t n = 0; n < slice.instances.size(); ++n) {
    const vm::SliceInstance& i = slice.instances[n];
    const std::array<uint32_t, 7> place{static_cast<uint32_t>(i.launch),
                                        i.block[0],
                                        i.block[1],
                                        i.block[2],
                                        i.thread[0],
                                        i.thread[1],
                                        i.thread[2]};
    const auto [at, is_new] = threads.try_emplace(place, static_cast<uint32_t>(values_.size()));
    if (is_new) values_.emplace_back();
    thread_.push_back(at->second);
    if (is_made(i) && statement[n] != SIZE_MAX && std::isfinite(number_of(slice_, n)))
      values_[at->second].push_back(n);
  }
  for (std::vector<uint32_t>& list : values_)
    std::stable_sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) {
      return slice.instances[a].record < slice.instances[b].record;
    });
}

std::vector<RelatedValues::Near> RelatedValues::near(uint32_t n) const {
  const std::vector<uint32_t>& all = values_[thread_[n]];
  const auto record = [&](uint32_t at) { return slice_.instances[at].record; };
  const auto own = std::lower_bound(all.begin(), all.end(), n,
                                    [&](uint32_t a, uint32_t b) { return record(a) < record(b); });
  std::vector<Near> found;
  std::set<size_t> seen;
  const auto walk = [&](auto from, auto to, bool after, size_t most) {
    seen.clear();
    for (size_t steps = 0; from != to && steps < kValues && seen.size() < most; ++from, ++steps)
      if (record(*from) != record(n) && seen.insert(statement_[*from]).second)
        found.push_back({statement_[*from], after, *from, steps});
  };
  walk(std::make_reverse_iterator(own), all.rend(), false, kBefore);
  walk(own, all.end(), true, kAfter);
  count_work(static_cast<double>(found.size() + 1), kOfNear);
  return found;
}

/// What would give one wrong element what it lacks.
std::vector<RelatedValues::Tried> RelatedValues::fitting(const std::vector<uint32_t>& instances,
                                                         uint16_t element) const {
  struct Sum {
    size_t instances = 0, apart = 0;
    uint32_t maker = 0, user = 0;
    std::array<double, kAllHows.size()> by_how{};
  };
  std::map<std::pair<size_t, bool>, Sum> sums;
  size_t count = 0;
  for (const uint32_t n : instances)
    for (size_t i = slopes_.first[n]; i < slopes_.first[n + 1]; ++i) {
      if (slopes_.element[i] != element) continue;
      if (++count > kMostOfElement) return {};
      for (const Near& other : near(n)) {
        Sum& sum = sums[{other.statement, other.after}];
        ++sum.instances, sum.apart = std::max(sum.apart, other.apart), sum.maker = other.instance,
                         sum.user = n;
        for (size_t how = 0; how < kAllHows.size(); ++how)
          sum.by_how[how] += slopes_.slope[i] * change_of(kAllHows[how], number_of(slice_, n),
                                                          number_of(slice_, other.instance));
      }
    }
  std::vector<Tried> fit;
  for (const auto& [other, sum] : sums)
    for (size_t how = 0; how < kAllHows.size(); ++how)
      if (sum.instances == count &&
          std::fabs(sum.by_how[how] - lacking_[element]) <= kFits * std::fabs(lacking_[element]))
        fit.push_back({other.first, other.second, {kAllHows[how], sum.maker, sum.user, sum.apart, ""}});
  std::stable_sort(fit.begin(), fit.end(),
                   [](const Tried& a, const Tried& b) { return a.related.apart < b.related.apart; });
  return fit;
}

/// Every element, and so many of them that it is no chance. What no output is made of is in no slice: of
/// elements that would need it nothing is said.
bool RelatedValues::mends(const std::vector<uint32_t>& instances, const Tried& tried) const {
  std::vector<double> left = lacking_;
  std::set<uint16_t> moved, unknown;
  for (const uint32_t n : instances) {
    const std::vector<Near> others = near(n);
    const auto other = std::find_if(others.begin(), others.end(), [&](const Near& o) {
      return o.statement == tried.statement && o.after == tried.after;
    });
    const bool known = other != others.end();
    const double change =
        known ? change_of(tried.related.how, number_of(slice_, n), number_of(slice_, other->instance)) : 0;
    for (size_t i = slopes_.first[n]; i < slopes_.first[n + 1]; ++i) {
      left[slopes_.element[i]] -= slopes_.slope[i] * change;
      if (!known || change != 0) (known ? moved : unknown).insert(slopes_.element[i]);
    }
  }
  double before = 0, after = 0;
  for (size_t e = 0; e < left.size(); ++e)
    if (!unknown.contains(static_cast<uint16_t>(e)))
      before += lacking_[e] * lacking_[e], after += left[e] * left[e];
  for (const uint16_t e : unknown) moved.erase(e);
  const double bits = -std::log2(kMended) * static_cast<double>(moved.size()) - kChoices;
  return before > 0 && std::sqrt(after / before) < kMended && bits >= thresholds::kBitsNeeded;
}

std::optional<RelatedValue> RelatedValues::find(const std::vector<uint32_t>& instances) const {
  std::vector<size_t> behind(lacking_.size());
  for (const uint32_t n : instances)
    for (size_t i = slopes_.first[n]; i < slopes_.first[n + 1]; ++i) ++behind[slopes_.element[i]];
  std::vector<uint16_t> wrong;  // behind which the fewest stand first
  for (size_t e = 0; e < lacking_.size(); ++e) {
    if (lacking_[e] == 0) continue;
    if (behind[e] == 0) return std::nullopt;  // it cannot become right
    wrong.push_back(static_cast<uint16_t>(e));
  }
  std::stable_sort(wrong.begin(), wrong.end(), [&](uint16_t a, uint16_t b) { return behind[a] < behind[b]; });
  if (wrong.size() > kElementsFitted) wrong.resize(kElementsFitted);
  for (const uint16_t element : wrong)
    for (const Tried& tried : fitting(instances, element))
      if (mends(instances, tried)) return tried.related;
  return std::nullopt;
}

}  // namespace assay
