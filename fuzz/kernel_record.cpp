#include "fuzz/kernel_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "fuzz/coverage.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

constexpr size_t kCorpus = 256;
constexpr size_t kReasonsShown = 3;

}  // namespace

KernelRecord::KernelRecord(const Kernel& kernel)
    : kernel_(kernel), op_(find_operator(kernel.operator_name)), pairs_(kernel, op_) {}

void KernelRecord::keep(const Case& c) {
  feedback_.corpus.push_back(c);
  if (feedback_.corpus.size() > kCorpus) feedback_.corpus.erase(feedback_.corpus.begin());
}

void KernelRecord::resume(const CorpusEntry& entry) {
  const Case c = parse_token(entry.token);
  if (c.kernel != kernel_.name || !c.blocks.empty()) return;
  try {
    assay::accepted(c, kernel_);
  } catch (const BadInput&) {
    return;
  }
  features_.insert(entry.feature);
  if (feedback_.corpus.empty() || !(feedback_.corpus.back() == c)) keep(c);
}

std::vector<std::string> KernelRecord::new_features(const Verification& v) {
  std::vector<std::string> fresh;
  for (const std::string& feature : features_of(v))
    if (features_.insert(feature).second) fresh.push_back(feature);
  for (const BranchSides& branches : v.branches) {
    std::vector<uint8_t>& known = sides_[branches.function];
    known.resize(branches.sides.size());
    int64_t more = 0;
    for (size_t i = 0; i < known.size(); ++i) {
      more += std::popcount(static_cast<unsigned>(branches.sides[i] & ~known[i]));
      known[i] |= branches.sides[i];
    }
    if (more > 0) fresh.push_back(fmt::format("branches {} {}", branches.function, v.token));
  }
  return fresh;
}

std::vector<CorpusEntry> KernelRecord::add(const Verification& v) {
  presences_.insert(presence_of(v.case_, op_));
  std::vector<CorpusEntry> entries;
  if (v.verdict == Verdict::domain || !v.case_.blocks.empty()) return entries;
  pairs_.note_covered(v.case_);
  for (const std::string& feature : new_features(v)) entries.push_back({v.kernel, v.token, feature});
  if (!entries.empty()) keep(v.case_);
  return entries;
}

std::vector<ReachedRow> KernelRecord::reached() const {
  ReachedRow branches{kernel_.name, "branch sides", 0, 0}, inputs{kernel_.name, "inputs present", 0, 0};
  for (const auto& [function, sides] : sides_) {
    branches.of += 2 * static_cast<int64_t>(sides.size());
    for (uint8_t side : sides) branches.reached += std::popcount(side);
  }
  std::set<std::string> possible = presences_;
  for (const Direction direction : directions_of(kernel_))
    for (bool with_gradient : {false, true}) {
      Case c;
      c.direction = direction;
      c.final_state_gradient = with_gradient && runs_backward(c);
      for (const Case& at : presence_lattice(c, kernel_, op_)) possible.insert(presence_of(at, op_));
    }
  inputs.reached = static_cast<int64_t>(presences_.size());
  inputs.of = static_cast<int64_t>(possible.size());
  return {branches, inputs, {kernel_.name, "pairs of features", pairs_.covered(), pairs_.possible()}};
}

std::string KernelRecord::all_refused() const {
  std::vector<std::pair<int64_t, std::string>> reasons;
  for (const auto& [why, cases] : refusals) reasons.push_back({-cases, why});
  std::sort(reasons.begin(), reasons.end());
  std::string text = fmt::format("{}: none of the {} cases drawn for it is taken:", kernel_.name, rejected);
  for (size_t i = 0; i < std::min(reasons.size(), kReasonsShown); ++i)
    text += fmt::format("{} {} of them: {}", i ? ";" : "", -reasons[i].first, reasons[i].second);
  if (reasons.size() > kReasonsShown)
    text += fmt::format("; and {} other reasons", reasons.size() - kReasonsShown);
  return text;
}

}  // namespace assay
