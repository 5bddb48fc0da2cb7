#include "src/base/vm/checks/one_per_barrier.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/vm/checks/check_log.h"
#include "src/base/vm/code.h"

namespace assay::vm {
namespace {

/// Two accesses by the lines of their function's PTX.
struct Pair {
  const CheckFinding* finding = nullptr;
  bool across_blocks = false, one_function = false;
  int32_t low = 0, high = 0;
  bool parted = false;                        ///< a barrier stands between them
  std::pair<std::string, std::string> lines;  ///< of the source, in the order of the alphabet
};

Pair pair_of(const CheckFinding& finding, const BarrierLines& barriers) {
  const SourceLocation &at = finding.at.where, &other = finding.other->where;
  Pair pair{&finding};
  pair.across_blocks = finding.at.block != finding.other->block;
  pair.one_function = at.function == other.function && at.ptx_line > 0 && other.ptx_line > 0;
  std::tie(pair.low, pair.high) = std::minmax(at.ptx_line, other.ptx_line);
  if (const auto known = barriers.find(at.function); known != barriers.end()) {
    const auto next = known->second.upper_bound(pair.low);
    pair.parted = next != known->second.end() && *next < pair.high;
  }
  pair.lines = {source_place(at), source_place(other)};
  if (pair.lines.second < pair.lines.first) std::swap(pair.lines.first, pair.lines.second);
  return pair;
}

std::string buffer_of(const CheckFinding& finding) {
  return finding.element.substr(0, finding.element.find_first_of("[ "));
}

/// Pairs of one missing barrier, which knows its pairs by their number.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t of(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void unite(size_t a, size_t b) {
    a = of(a), b = of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

/// The fewest places at which a barrier would part all pairs that none parts: at the end of the pair that
/// ends first, and so on.
void unite_by_places(const std::vector<Pair>& pairs, Groups& groups) {
  std::map<std::string, std::vector<size_t>> by_function;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (const Pair& p = pairs[i]; p.one_function && !p.across_blocks && !p.parted && p.low < p.high)
      by_function[p.finding->at.where.function].push_back(i);
  for (auto& [function, members] : by_function) {
    std::stable_sort(members.begin(), members.end(),
                     [&](size_t a, size_t b) { return pairs[a].high < pairs[b].high; });
    size_t first = members.front();
    for (const size_t i : members)
      if (pairs[i].low < pairs[first].high)
        groups.unite(first, i);
      else
        first = i;
  }
}

bool are_one(const Pair& a, const Pair& b) {
  if (a.across_blocks != b.across_blocks) return false;
  if (a.lines == b.lines) return true;
  if (a.across_blocks)
    return buffer_of(*a.finding) == buffer_of(*b.finding) &&
           (a.lines.first == b.lines.first || a.lines.first == b.lines.second ||
            a.lines.second == b.lines.first || a.lines.second == b.lines.second);
  const auto in_loop = [](const Pair& p) { return p.one_function && (p.parted || p.low == p.high); };
  return in_loop(a) && in_loop(b) && a.finding->at.where.function == b.finding->at.where.function &&
         a.low <= b.high && b.low <= a.high;
}

/// "shared s + 4: written at f.cu:4 by thread (1,0,0) of ..; read at f.cu:5 by .."
std::string text_of(const CheckFinding& f) {
  const auto did = [](const CheckedPlace& p) { return p.access.substr(0, p.access.find(' ')); };
  return fmt::format("{}: {} at {} by {}; {} at {} by {}", f.element, did(*f.other),
                     source_place(f.other->where), thread_text(*f.other), did(f.at), source_place(f.at.where),
                     thread_text(f.at));
}

}  // namespace

void note_barriers(const Code& code, BarrierLines& lines) {
  for (const Op& op : code.ops) {
    if (code.signature(op).control != Control::barrier) continue;
    const SourceLocation at = where(code, op);
    lines[at.function].insert(at.ptx_line);
  }
}

bool is_of_one_store(const CheckFinding& f) {
  return f.kind == CheckKind::warp_race && f.other && f.at.access.starts_with("written") &&
         f.at.access == f.other->access && f.at.where.ptx_line == f.other->where.ptx_line;
}

std::vector<CheckFinding> one_per_barrier(std::vector<CheckFinding> findings, const BarrierLines& barriers) {
  const auto is_race = [](const CheckFinding& f) {
    return (f.kind == CheckKind::race || f.kind == CheckKind::warp_race) && f.other && !is_of_one_store(f);
  };
  std::vector<Pair> pairs;
  std::vector<size_t> places;
  for (size_t i = 0; i < findings.size(); ++i)
    if (is_race(findings[i])) pairs.push_back(pair_of(findings[i], barriers)), places.push_back(i);
  Groups groups(pairs.size());
  unite_by_places(pairs, groups);
  for (size_t i = 0; i < pairs.size(); ++i)
    for (size_t j = i + 1; j < pairs.size(); ++j)
      if (are_one(pairs[i], pairs[j])) groups.unite(i, j);
  // Of several warps rather than of one; as the text goes rather than against it.
  const auto rank = [&](size_t place) {
    const CheckFinding& f = findings[place];
    return (f.kind == CheckKind::warp_race ? 2 : 0) + (f.at.where.ptx_line < f.other->where.ptx_line ? 1 : 0);
  };
  std::map<size_t, size_t> told;  // group -> the pair that is told
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [known, is_new] = told.try_emplace(groups.of(i), places[i]);
    if (!is_new && rank(places[i]) < rank(known->second)) known->second = places[i];
  }
  std::vector<char> taken(findings.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    CheckFinding& to = findings[told[groups.of(i)]];
    const CheckFinding& from = findings[places[i]];
    if (&to == &from) continue;
    to.also.push_back({from.kind, text_of(from), from.at, *from.other, from.element, from.count});
    to.reads_global &= from.reads_global;
    taken[places[i]] = 1;
  }
  std::vector<CheckFinding> left;
  for (size_t i = 0; i < findings.size(); ++i)
    if (!taken[i]) left.push_back(std::move(findings[i]));
  return left;
}

}  // namespace assay::vm
