#include "src/campaign/mutate/case_choice.h"

#include <algorithm>
#include <set>

namespace assay {
namespace {

/// Cases for the checks, which cost several runs each; of cheap ones more; and so many that show what those
/// do not.
constexpr size_t kCheckedCases = 3, kCheapCheckedCases = 10, kTellingCheckedCases = 3;

}  // namespace

std::vector<size_t> CaseChoice::small() const {
  std::vector<size_t> chosen = reaching;
  const auto rank = [&](size_t at) {
    const bool differs = std::find(differing.begin(), differing.end(), at) != differing.end();
    return std::pair{!differs, cases[at].outcome.lane_instructions};
  };
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return chosen;
}

std::vector<size_t> CaseChoice::varied() const {
  std::vector<size_t> chosen = small();
  std::set<std::string> kinds;
  const auto others = std::stable_partition(
      chosen.begin(), chosen.end(), [&](size_t at) { return kinds.insert(cases[at].case_.values).second; });
  std::stable_partition(others, chosen.end(),
                        [&](size_t at) { return kinds.insert(cases[at].case_.decay).second; });
  return chosen;
}

std::vector<size_t> CaseChoice::to_check() const {
  std::vector<size_t> chosen, others;
  uint64_t work = 0;
  for (const size_t at : small()) {
    const uint64_t cost = cases[at].outcome.lane_instructions;
    if (cost < kLeastChecked || cost > kMostChecked) continue;
    work += cost;
    const bool enough = chosen.size() >= (work > kCheapChecks ? kCheckedCases : kCheapCheckedCases);
    (enough ? others : chosen).push_back(at);
  }
  const auto own_reach = [&](size_t at) -> const std::vector<uint8_t>& {
    return cases[at].reach.executed.at(function);
  };
  std::vector<uint8_t> seen;
  for (const size_t at : chosen) add_reach(own_reach(at), seen);
  for (size_t more = 0; more < kTellingCheckedCases && !others.empty(); ++more) {
    const auto adds_less = [&](size_t a, size_t b) {
      return new_reach(own_reach(a), seen) < new_reach(own_reach(b), seen);
    };
    const auto best = std::max_element(others.begin(), others.end(), adds_less);
    if (add_reach(own_reach(*best), seen) == 0) break;
    chosen.push_back(*best);
    others.erase(best);
  }
  return chosen;
}

}  // namespace assay
