#include "src/campaign/mutate/plan_survey.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <set>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/mutate/case_set.h"
#include "src/case/draw_on_demand.h"

namespace assay {
namespace {

/// Kernels that take more are surveyed at some widths alone.
constexpr int64_t kWidestSurveyed = 512;

bool takes_too_many(const KernelLimits& limits) {
  return std::max(limits.max_K, limits.max_V) > kWidestSurveyed;
}

/// Pairs of widths: each of either beside each of these of the other, cut to the limits; 1 for an axis that
/// is none.
std::vector<std::pair<int64_t, int64_t>> widths(const KernelLimits& limits, const Operator& op) {
  constexpr int64_t kBeside[] = {1, 8, 17, 64, 130, 256};
  const int64_t max_K = uses_axis(op, "K") ? limits.max_K : 1, max_V = uses_axis(op, "V") ? limits.max_V : 1;
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const int64_t beside : kBeside) {
    const auto add = [&](int64_t K, int64_t V) { pairs.emplace(std::min(K, max_K), std::min(V, max_V)); };
    for (int64_t width = 1; width <= kWidestSurveyed && !takes_too_many(limits); ++width)
      add(width, beside), add(beside, width);
    for (const int64_t other : kBeside) add(beside, other);
  }
  return {pairs.begin(), pairs.end()};
}

/// Every set of optional inputs may be absent; of many, each alone, each pair, all.
std::vector<std::set<std::string>> absences_of(const Operator& op) {
  constexpr size_t kFew = 5;
  std::vector<std::string> optional;
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional && input.role != Role::state) optional.emplace_back(input.name);
  std::vector<std::set<std::string>> sets;
  for (uint64_t bits = 0; bits < uint64_t{1} << optional.size(); ++bits) {
    const auto count = static_cast<size_t>(std::popcount(bits));
    if (optional.size() > kFew && count > 2 && count < optional.size()) continue;
    std::set<std::string>& set = sets.emplace_back();
    for (size_t i = 0; i < optional.size(); ++i)
      if (bits >> i & 1) set.insert(optional[i]);
  }
  return sets;
}

/// What takes turns, decided by a number.
void vary(Case& c, const KernelLimits& limits, const Operator& op, uint64_t turn) {
  constexpr int64_t kTokens[] = {1, 3, 70, 130, 0};
  c.T = kTokens[turn % 5];
  const uint64_t by_two = turn / 5;
  if (by_two % 2)
    c.cu_seqlens = {0, c.T / 2, c.T};
  else
    c.B = by_two / 2 % 4 == 3 ? 2 : 1;
  c.H = uses_axis(op, "H") && by_two / 2 % 2 ? 2 : 1;
  c.HV = uses_axis(op, "HV") ? c.H * (limits.value_heads && by_two / 4 % 2 ? 2 : 1) : 0;
  c.initial_state = by_two / 8 % 2;
  c.final_state_gradient = by_two / 16 % 2 && runs_backward(c);
}
constexpr uint64_t kTurns = 5 * 32;

/// More heads than a GPU has multiprocessors: plans that choose by the number of blocks choose the other way.
constexpr int64_t kManyHeads = 160;
void with_many_heads(Case& c, const Operator& op, uint64_t turn) {
  c.T = 1 + static_cast<int64_t>(turn % 2) * 2;
  c.H = kManyHeads, c.HV = uses_axis(op, "HV") ? c.H : 0;
  c.initial_state = turn / 2 % 2;
  c.final_state_gradient = turn / 4 % 2 && runs_backward(c);
}

/// The plan's launches; nothing where the kernel takes no such case.
Program planned(const Kernel& kernel, const Operator& op, const Case& c) {
  try {
    const ResolvedCase resolved = resolve(c, op);
    if (kernel.refuses && !kernel.refuses(resolved).empty()) return {};
    return program_of(kernel, resolved, inputs_without_values(resolved));
  } catch (const BadInput&) {
    return {};
  }
}

/// Do the launches of some widths depend on the number of heads?
bool depends_on_heads(const Kernel& kernel, const Operator& op, const std::vector<Direction>& directions) {
  constexpr int64_t kWidths[] = {17, 64, 256};
  const auto names = [&](const Case& c) {
    std::vector<std::string> launched;
    for (const Launch& launch : planned(kernel, op, c).launches) launched.push_back(launch.function);
    return launched;
  };
  if (!uses_axis(op, "H")) return false;
  for (const Direction direction : directions)
    for (const auto& [dtype, gate] : format_pairs(kernel))
      for (const int64_t K : kWidths)
        for (const int64_t V : kWidths) {
          Case few;
          few.kernel = kernel.name, few.direction = direction, few.dtype = dtype, few.gate_dtype = gate;
          few.T = 1, few.H = 1, few.HV = uses_axis(op, "HV") ? 1 : 0, few.decay = "none";
          few.K = uses_axis(op, "K") ? std::min(K, kernel.limits.max_K) : 1;
          few.V = uses_axis(op, "V") ? std::min(V, kernel.limits.max_V) : 1;
          few.M = uses_axis(op, "M") ? std::min<int64_t>(16, kernel.limits.max_M) : 0;
          Case many = few;
          with_many_heads(many, op, 0);
          if (names(few) != names(many)) return true;
        }
  return false;
}

}  // namespace

PlanSurvey::PlanSurvey(const Kernel& kernel, const std::vector<Direction>& directions, int threads) {
  const Operator& op = find_operator(kernel.operator_name);
  const std::vector<std::set<std::string>> absences = absences_of(op);
  std::vector<Case> bases;
  for (const Direction direction : directions)
    for (const auto& [dtype, gate] : format_pairs(kernel))
      for (const std::set<std::string>& without : absences) {
        Case c;
        c.kernel = kernel.name, c.direction = direction, c.dtype = dtype, c.gate_dtype = gate;
        c.without = without, c.decay = "none";
        bases.push_back(c);
      }
  const auto pairs = widths(kernel.limits, op);
  const int64_t slots = uses_axis(op, "M") ? kernel.limits.max_M : 0;
  has_every_width_ = !takes_too_many(kernel.limits) && slots <= static_cast<int64_t>(pairs.size());
  const bool by_heads = depends_on_heads(kernel, op, directions);
  std::mutex mutex;
  const auto see = [&](const Case& c) {
    const Program program = planned(kernel, op, c);
    const std::scoped_lock lock(mutex);
    plans_ += !program.launches.empty();
    for (const Launch& launch : program.launches)
      see_launch(seen_[{launch.module, launch.function}], launch, program, c, kernel.limits);
  };
  parallel_for(static_cast<int64_t>(pairs.size()), threads, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    for (size_t b = 0; b < bases.size(); ++b) {
      Case c = bases[b];
      c.K = pairs[at].first, c.V = pairs[at].second;
      c.M = slots > 0 ? 1 + i % slots : 0;  // each beside several pairs of widths
      // Turns run through the choices in another order for each pair of widths.
      const uint64_t turn = static_cast<uint64_t>(i) * 37 + b * 11;
      vary(c, kernel.limits, op, turn % kTurns);
      see(c);
      if (!by_heads || (at + b) % absences.size() != 0) continue;
      with_many_heads(c, op, turn / absences.size());
      c.B = 1, c.cu_seqlens.clear();
      see(c);
    }
  });
}

const SeenArguments* PlanSurvey::arguments(const std::string& module, const std::string& function) const {
  const auto found = seen_.find({module, function});
  return found == seen_.end() ? nullptr : &found->second;
}

}  // namespace assay
