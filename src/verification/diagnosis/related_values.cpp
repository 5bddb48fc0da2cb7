#include "src/verification/diagnosis/related_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "src/base/numerics/counted_work.h"
#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/slice_derivative.h"
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
/// log2 of what is tried: some hundred operations, as many statements, some values of each, four places, five
/// ways; along what makes an operand four times as many.
constexpr double kChoices = 23, kChoicesAlong = 25;
/// Of what stands right beside an instance there are few, in five ways.
constexpr size_t kBeside = 2;
constexpr double kChoicesBeside = 4;

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
    case How::past:
    case How::lanes:
      return other - value;
  }
  return 0;
}
constexpr std::array kAllHows = {How::plus, How::minus, How::times, How::divided, How::instead};

/// It is made there, or comes from memory: what a copy holds its source holds too.
bool is_made(vm::Flow flow) {
  using vm::Flow;
  return flow == Flow::arithmetic || flow == Flow::matrix || flow == Flow::select || flow == Flow::load ||
         flow == Flow::exchange || flow == Flow::conversion;
}
bool is_made(const vm::SliceInstance& i) {
  return ptx::is_float(i.type) && is_made(i.flow);
}

std::array<uint32_t, 7> thread_of(int32_t launch, const std::array<uint32_t, 3>& block,
                                  const std::array<uint32_t, 3>& thread) {
  return {static_cast<uint32_t>(launch), block[0], block[1], block[2], thread[0], thread[1], thread[2]};
}

}  // namespace

RelatedValues::RelatedValues(const vm::ValueSlice& slice, const ElementSlopes& slopes,
                             const std::vector<double>& lacking, const std::vector<size_t>& statement)
    : slice_(slice),
      slopes_(slopes),
      lacking_(lacking),
      statement_(statement),
      by_operand_(operand_slopes(slice)) {
  for (uint32_t n = 0; n < slice.instances.size(); ++n) {
    const vm::SliceInstance& i = slice.instances[n];
    const auto [at, is_new] =
        threads_.try_emplace(thread_of(i.launch, i.block, i.thread), static_cast<uint32_t>(values_.size()));
    if (is_new) values_.emplace_back();
    thread_.push_back(at->second);
    if (is_made(i) && statement[n] != SIZE_MAX && std::isfinite(number_of(slice_, n)))
      values_[at->second].push_back(
          {i.record, statement[n], number_of(slice_, n), static_cast<int32_t>(n), i.function});
  }
  for (std::vector<Held>& list : values_)
    std::stable_sort(list.begin(), list.end(),
                     [](const Held& a, const Held& b) { return a.record < b.record; });
}

void RelatedValues::look_along() {
  near_.clear();
  first_taker_.assign(slice_.instances.size() + 1, 0);
  for (const vm::SliceOperand& o : slice_.operands)
    if (o.made_by >= 0) ++first_taker_[static_cast<size_t>(o.made_by) + 1];
  for (size_t n = 1; n < first_taker_.size(); ++n) first_taker_[n] += first_taker_[n - 1];
  takers_.resize(first_taker_.back());
  std::vector<uint32_t> next(first_taker_.begin(), first_taker_.end() - 1);
  for (uint32_t n = 0; n < slice_.instances.size(); ++n) {
    const vm::SliceInstance& i = slice_.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (slice_.operands[o].made_by >= 0)
        takers_[next[static_cast<size_t>(slice_.operands[o].made_by)]++] = n;
  }
}

void RelatedValues::add(
    const vm::ValuesNear& near, const std::vector<uint32_t>& instances,
    const std::function<size_t(const vm::ThreadValues&, const vm::HeldValue&)>& statement_of) {
  const auto by_record = [](const Held& a, const Held& b) { return a.record < b.record; };
  for (const vm::ThreadValues& thread : near.threads) {
    const auto known = threads_.find(thread_of(thread.launch, thread.block, thread.thread));
    if (known == threads_.end()) continue;
    std::vector<Held>& list = values_[known->second];
    const size_t own = list.size();
    for (const vm::HeldValue& value : thread.values) {
      const auto first = list.begin(), end = first + static_cast<ptrdiff_t>(own);
      const Held held{value.record, 0, value.number, -1, value.function};
      if (!is_made(value.flow) || !std::isfinite(value.number)) continue;
      if (std::binary_search(first, end, held, by_record)) continue;
      list.push_back(held);
      list.back().statement = statement_of(thread, value);
    }
    std::stable_sort(list.begin(), list.end(), by_record);
  }
  near_.clear();
  for (size_t i = 0; i < instances.size(); ++i)
    if (near.warps[i].mask >> near.lane[i] & 1) warp_[instances[i]] = {near.warps[i], near.lane[i]};
}

const std::vector<RelatedValues::Near>& RelatedValues::near(uint32_t n) const {
  const auto [known, is_new] = near_.try_emplace(n);
  std::vector<Near>& found = known->second;
  if (!is_new) return found;
  const std::vector<Held>& all = values_[thread_[n]];
  const uint32_t now = slice_.instances[n].record;
  const auto own = std::lower_bound(all.begin(), all.end(), now,
                                    [](const Held& a, uint32_t record) { return a.record < record; });
  const auto is_own = [&](const Held& value) {
    return value.record != now && value.statement == statement_[n];
  };
  std::set<size_t> seen;
  const auto walk = [&](auto from, auto to, When when, size_t most) {
    seen.clear();
    for (size_t steps = 0; from != to && steps < kValues && seen.size() < most; ++from, ++steps)
      if (from->record != now && seen.insert(from->statement).second)
        found.push_back({from->statement, when, from->number, from->instance, steps});
  };
  walk(std::make_reverse_iterator(own), all.rend(), When::before, kBefore);
  // Before functions that it has called since: what it has at hand itself.
  const size_t called = found.size();
  for (auto from = std::make_reverse_iterator(own); from != all.rend() && found.size() < called + kBefore;
       ++from)
    if (from->function == slice_.instances[n].function && from->record != now &&
        seen.insert(from->statement).second)
      found.push_back({from->statement, When::before, from->number, from->instance, kBefore});
  walk(own, all.end(), When::after, kAfter);
  // What the own statement would find behind a loop, were it there; and before what it stands in now.
  std::map<size_t, std::pair<const Held*, size_t>> last;  // and how often its statement has run
  size_t steps = 0;
  for (auto at = own; at != all.end() && steps < kValues && !is_own(*at); ++at, ++steps) {
    if (at->record == now || (!last.contains(at->statement) && last.size() == kAfter)) continue;
    auto& [value, count] = last[at->statement];
    value = &*at, ++count;
  }
  for (const auto& [statement, of] : last)
    if (of.second > 1)
      found.push_back({statement, When::last, of.first->number, of.first->instance, kBefore});
  auto before = std::make_reverse_iterator(own);
  for (steps = 0; before != all.rend() && steps < kValues && !is_own(*before); ++steps) ++before;
  if (before != all.rend() && is_own(*before)) walk(before, all.rend(), When::earlier, kAfter);
  add_beside(n, found);
  if (looks_along()) add_along(n, found);
  count_work(static_cast<double>(found.size() + 1), kOfNear);
  return found;
}

/// Sums over the lanes whose numbers differ in some neighbouring bits, as shuffles make them.
void RelatedValues::add_beside(uint32_t n, std::vector<Near>& found) const {
  const auto known = warp_.find(n);
  if (known == warp_.end()) return;
  const OfWarp& warp = known->second;
  for (uint32_t first = 0; first < 5; ++first)
    for (uint32_t end = first + 1; end <= 5; ++end) {
      const uint32_t bits = (1u << end) - (1u << first);
      double sum = 0;
      for (uint32_t lane = 0; lane < 32; ++lane)
        if ((lane & ~bits) == (warp.lane & ~bits) && (warp.values.mask >> lane & 1))
          sum += warp.values.number[lane];
      found.push_back({bits, When::lanes, sum, -1, 0});
    }
}

/// Past what makes an operand, or what else is made of it: as a statement would take that stands one line too
/// late or too early.
void RelatedValues::add_along(uint32_t n, std::vector<Near>& found) const {
  constexpr uint32_t kOperands = 3, kTakers = 8;
  const vm::SliceInstance& i = slice_.instances[n];
  const auto is_float_arithmetic = [&](uint32_t at) {
    const vm::SliceInstance& made = slice_.instances[at];
    return made.flow == vm::Flow::arithmetic && ptx::is_float(made.type) && statement_[at] != SIZE_MAX;
  };
  for (uint32_t o = 0; o < std::min<uint32_t>(i.operand_count, kOperands); ++o) {
    const int32_t made_by = slice_.operands[i.first_operand + o].made_by;
    if (made_by < 0) continue;
    const auto maker = static_cast<uint32_t>(made_by);
    const vm::SliceInstance& made = slice_.instances[maker];
    if (is_float_arithmetic(maker))
      for (uint32_t r = 0; r < std::min<uint32_t>(made.operand_count, kOperands); ++r) {
        const vm::SliceOperand& taken = slice_.operands[made.first_operand + r];
        const double number = ptx::is_float(taken.type) ? vm::value_of(taken.type, taken.bits) : HUGE_VAL;
        if (!std::isfinite(number)) continue;
        const Near beside{statement_[maker],
                          When::aside,
                          number,
                          made_by,
                          kBefore,
                          -1,
                          static_cast<int>(o * kOperands + r)};
        found.push_back(beside);
        found.push_back(beside);
        found.back().when = When::upstream, found.back().operand = static_cast<int>(o);
        found.back().apart = 1;
      }
    std::set<size_t> seen{statement_[n]};
    for (uint32_t t = first_taker_[maker];
         t < std::min(first_taker_[maker + 1], first_taker_[maker] + kTakers); ++t)
      if (is_float_arithmetic(takers_[t]) && seen.insert(statement_[takers_[t]]).second)
        found.push_back({statement_[takers_[t]], When::downstream, number_of(slice_, takers_[t]),
                         static_cast<int32_t>(takers_[t]), 1, static_cast<int>(o)});
  }
}

/// What is changed of an instance: its value, or one operand, for it alone.
std::optional<RelatedValues::Taken> RelatedValues::taken(uint32_t n, int operand) const {
  if (operand < 0) return Taken{number_of(slice_, n), 1};
  const vm::SliceInstance& i = slice_.instances[n];
  const uint32_t o = i.first_operand + static_cast<uint32_t>(operand);
  const vm::SliceOperand& from = slice_.operands[o];
  const bool known = static_cast<uint32_t>(operand) < i.operand_count && !from.other_half &&
                     i.flow == vm::Flow::arithmetic && i.operand_count > 1 && ptx::is_float(from.type);
  return known ? std::optional(Taken{vm::value_of(from.type, from.bits), by_operand_[o]}) : std::nullopt;
}

/// What would give one wrong element what it lacks.
std::vector<RelatedValues::Tried> RelatedValues::fitting(const std::vector<uint32_t>& instances,
                                                         uint16_t element, int operand) const {
  struct Sum {
    size_t instances = 0, apart = 0;
    int32_t maker = -1;
    uint32_t user = 0;
    double number = 0, most = -1;  ///< of the user, behind whose value most stands
    std::array<double, kAllHows.size()> by_how{};
  };
  std::map<std::tuple<size_t, When, int>, Sum> sums;
  size_t count = 0;
  for (const uint32_t n : instances)
    for (size_t i = slopes_.first[n]; i < slopes_.first[n + 1]; ++i) {
      if (slopes_.element[i] != element) continue;
      if (count >= kMostOfElement) return {};
      const std::optional<Taken> own = taken(n, operand);
      if (!own || (own->slope == 0 && !looks_along())) return {};
      if (own->slope == 0) continue;  // whatever it takes, as of channels that are not there
      ++count;
      for (const Near& other : near(n)) {
        if (operand >= 0 ? other.when == When::lanes : other.operand >= 0) continue;
        if (other.operand >= 0 && other.operand != operand) continue;
        Sum& sum = sums[{other.statement, other.when, other.taken}];
        ++sum.instances, sum.apart = std::max(sum.apart, other.apart);
        if (const double weight = std::fabs(slopes_.slope[i] * own->slope * own->number); weight > sum.most)
          sum.maker = other.instance, sum.user = n, sum.number = other.number, sum.most = weight;
        for (size_t how = 0; how < kAllHows.size(); ++how)
          sum.by_how[how] +=
              slopes_.slope[i] * own->slope * change_of(kAllHows[how], own->number, other.number);
      }
    }
  std::vector<Tried> fit;
  for (const auto& [other, sum] : sums)
    for (size_t how = 0; how < kAllHows.size(); ++how) {
      const auto [by, when, taken_there] = other;
      const bool of_lanes = when == When::lanes, past = when == When::upstream;
      // Behind a loop, or before it, is the same value later; with it added, or as a factor, many fit.
      const bool whole =
          of_lanes || past || when == When::downstream || when == When::last || when == When::earlier;
      const bool fits =
          std::fabs(sum.by_how[how] - lacking_[element]) <= kFits * std::fabs(lacking_[element]);
      // What comes later may be made of the value itself: less that, or with it as a factor, says nothing.
      const bool circular = when == When::after && kAllHows[how] != How::plus;
      if (sum.instances != count || !fits || ((whole || circular) && kAllHows[how] != How::instead)) continue;
      const How as = of_lanes ? How::lanes : past ? How::past : kAllHows[how];
      const size_t statement = of_lanes ? size_t{1} << std::popcount(by) : by;
      fit.push_back(
          {by,
           when,
           taken_there,
           operand,
           {as, sum.maker, statement, sum.user, sum.apart, sum.number, past || when == When::aside, ""}});
    }
  std::stable_sort(fit.begin(), fit.end(),
                   [](const Tried& a, const Tried& b) { return a.related.apart < b.related.apart; });
  return fit;
}

/// Every element, and so many of them that it is no chance. What no output is made of is in no slice: of
/// elements that would need it nothing is said.
bool RelatedValues::mends(const std::vector<uint32_t>& instances, const Tried& tried) const {
  std::vector<double> left = lacking_;
  std::set<uint16_t> moved, unknown;
  std::set<std::pair<double, double>> changed;  // of one number everything would be by chance
  for (const uint32_t n : instances) {
    const std::vector<Near>& others = near(n);
    const auto other = std::find_if(others.begin(), others.end(), [&](const Near& o) {
      return o.statement == tried.statement && o.when == tried.when && o.taken == tried.taken &&
             (o.operand < 0 || o.operand == tried.operand);
    });
    const bool known = other != others.end();
    const std::optional<Taken> own = taken(n, tried.operand);
    if (own && own->slope == 0 && looks_along()) continue;
    const double change =
        known && own ? own->slope * change_of(tried.related.how, own->number, other->number) : 0;
    if (change != 0) changed.emplace(own->number, other->number);
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
  const bool beside = tried.when != When::lanes && tried.related.apart <= kBeside;
  if (changed.size() < 2 && !beside) return false;
  const bool along =
      tried.when == When::upstream || tried.when == When::aside || tried.when == When::downstream;
  const double choices = along ? kChoicesAlong : kChoices;
  const double bits = -std::log2(kMended) * static_cast<double>(moved.size()) - choices;
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
  for (const int operand : {-1, 0, 1, 2})
    for (const uint16_t element : wrong)
      for (const Tried& tried : fitting(instances, element, operand))
        if (mends(instances, tried)) return tried.related;
  return std::nullopt;
}

std::optional<RelatedValue> RelatedValues::find(const std::vector<uint32_t>& instances,
                                                const std::vector<double>& changes, double bits) const {
  const auto count = static_cast<double>(instances.size());
  // That these values explain what is wrong is said of other lines' too; what they lack has to be no chance.
  const auto is_told = [&](size_t apart) {
    const double own = -std::log2(kMended) * count;
    return own - (apart <= kBeside ? kChoicesBeside : kChoices) >= thresholds::kBitsNeeded &&
           own + bits - kChoices >= thresholds::kBitsNeeded;
  };
  if (instances.empty()) return std::nullopt;
  std::optional<RelatedValue> found;
  for (const Near& first : near(instances.front())) {
    if (first.operand >= 0 || first.when == When::lanes || first.when == When::aside) continue;
    for (const How how : kAllHows) {
      const bool circular = first.when == When::after && how != How::plus;
      if (circular || (found && found->apart <= first.apart) || !is_told(first.apart)) continue;
      const auto fits = [&](size_t i) {
        const std::vector<Near>& others = near(instances[i]);
        const auto other = std::find_if(others.begin(), others.end(), [&](const Near& o) {
          return o.statement == first.statement && o.when == first.when && o.taken == first.taken;
        });
        return other != others.end() &&
               std::fabs(change_of(how, number_of(slice_, instances[i]), other->number) - changes[i]) <=
                   kMended * std::fabs(changes[i]);
      };
      size_t i = 0;
      while (i < instances.size() && fits(i)) ++i;
      if (i == instances.size())
        found = RelatedValue{how,         first.instance, first.statement, instances.front(),
                             first.apart, first.number,   false,           ""};
    }
  }
  return found;
}

}  // namespace assay
