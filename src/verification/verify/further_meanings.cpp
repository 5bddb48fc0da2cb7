#include "src/verification/verify/further_meanings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

using namespace thresholds;

/// Further apart than rounding takes a number that two runs have in common.
constexpr double kSameNumber = 0x1p-8;

const Numbers& numbers_of(const Weighed& weighed, const std::string& cause) {
  static const Numbers none;
  const auto found = weighed.by_numbers.find(cause);
  return found == weighed.by_numbers.end() ? none : found->second;
}
/// Do two runs give the cause the same numbers? A factor that is another one in every run is no explanation.
bool agree(const Numbers& a, const Numbers& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& number) {
    const auto other = b.find(number.first);
    return other == b.end() ||
           std::fabs(number.second - other->second) <= kSameNumber * std::fabs(number.second);
  });
}
/// Of all runs those whose numbers most others give as well count for the cause.
struct Agreement {
  Numbers numbers;
  size_t runs = 0;
};
Agreement agreement_on(const std::string& cause, const Weighed& own, const OnFurther& further) {
  Agreement best{numbers_of(own, cause), 0};
  std::vector<const Numbers*> all{&numbers_of(own, cause)};
  for (const auto& [text, weighed] : further) all.push_back(&numbers_of(weighed, cause));
  for (const Numbers* numbers : all) {
    const auto same = static_cast<size_t>(
        std::count_if(all.begin(), all.end(), [&](const Numbers* other) { return agree(*numbers, *other); }));
    if (same > best.runs) best = {*numbers, same};
  }
  return best;
}

/// A cause's score over all further cases, 0 where it does not fit or only by other numbers.
double mean_score(const OnFurther& further, const std::string& cause, const Numbers& numbers) {
  double sum = 0;
  for (const auto& [text, weighed] : further)
    for (const Diagnosis& d : weighed.fitting)
      if (d.cause == cause && agree(numbers, numbers_of(weighed, cause))) sum += d.score;
  return sum / static_cast<double>(further.size());
}

/// Does a cause fit further cases, and none of them wholly? Of a formula each of these refutes it.
bool fits_parts_only(const OnFurther& further, const std::string& cause) {
  bool fits = false, wholly = false;
  for (const auto& [text, weighed] : further)
    for (const Diagnosis& d : weighed.fitting)
      if (d.cause == cause) fits = true, wholly |= d.score > kRefuted;
  return fits && !wholly;
}

void append_evidence(const OnFurther& further, const Numbers& numbers, Diagnosis& to) {
  for (const auto& [text, weighed] : further) {
    const auto same = std::find_if(weighed.fitting.begin(), weighed.fitting.end(),
                                   [&](const Diagnosis& f) { return f.cause == to.cause; });
    if (same == weighed.fitting.end())
      to.against.push_back(fmt::format("it does not fit {}", text));
    else if (!agree(numbers, numbers_of(weighed, to.cause)))
      to.against.push_back(fmt::format("by another number on {}: {}", text, same->explanation));
    else
      to.evidence.push_back(fmt::format("on {}: {}", text, same->evidence.front()));
  }
}

}  // namespace

void merge_further(const OnFurther& further, bool own_is_silent, Weighed& own) {
  if (further.empty()) return;
  for (Diagnosis& d : own.fitting) {
    const Numbers numbers = agreement_on(d.cause, own, further).numbers;
    append_evidence(further, numbers, d);
    const double here = agree(numbers, numbers_of(own, d.cause)) ? d.score : 0;
    d.score = (1 - kFurther) * here + kFurther * mean_score(further, d.cause, numbers);
    if (fits_parts_only(further, d.cause)) d.score = std::min(d.score, thresholds::kExplained);
  }
  for (const auto& [text, weighed] : further) {
    own.tried += weighed.tried, own.left += weighed.left;
    own.about.insert(weighed.about.begin(), weighed.about.end());
    for (const Diagnosis& f : weighed.fitting)  // surprising there
      if (!weighed.by_nothing.count(f.cause)) own.by_nothing.erase(f.cause);
    for (const Diagnosis& f : weighed.fitting)
      if (!weighed.by_little.count(f.cause)) own.by_little.erase(f.cause);
    for (const Diagnosis& f : weighed.fitting) {
      const bool known = std::any_of(own.fitting.begin(), own.fitting.end(),
                                     [&](const Diagnosis& d) { return d.cause == f.cause; });
      if (known) continue;
      Diagnosis d = f;
      const Numbers numbers = agreement_on(d.cause, own, further).numbers;
      d.score = mean_score(further, d.cause, numbers) * (own_is_silent ? kFurtherAlone : kFurther);
      d.evidence.clear(), d.against.clear();
      append_evidence(further, numbers, d);
      own.fitting.push_back(std::move(d));
    }
  }
  rank(own.fitting);
}

}  // namespace assay
