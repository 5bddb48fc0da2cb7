// What every path to an op has written, as a set for each stretch of ops without a branch: a lane runs along
// one path, whatever its warp does. What is written under a guard, or by what is not of each lane alone, does
// not count.
#include "src/base/vm/unsure_registers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "src/base/vm/flow_graph.h"

namespace assay::vm {
namespace {

/// Nearer ranges are one.
constexpr Slot kGap = 512;

using Words = std::vector<uint64_t>;
/// Of one stretch, among those of all.
using Set = std::span<uint64_t>;

/// Lane by lane: results of its own operands, of all of the cell.
bool is_of_lanes(const Signature& s) {
  return s.control == Control::none &&
         is_one_of(s.flow(), Flow::copy, Flow::pack, Flow::unpack, Flow::select, Flow::logic, Flow::shift,
                   Flow::permute, Flow::integer, Flow::arithmetic, Flow::conversion, Flow::comparison,
                   Flow::address, Flow::load);
}
/// Where it goes on elsewhere, or ends.
bool leaves(const Signature& s) {
  return is_one_of(s.control, Control::branch, Control::branch_table, Control::exit, Control::ret,
                   Control::trap);
}
/// What it reads it reads for the lane itself.
bool reads_own(const Signature& s) {
  return is_of_lanes(s) || leaves(s) || s.flow() == Flow::store;
}

class Paths {
 public:
  explicit Paths(const Code& code)
      : code_(code),
        graph_(flow_graph(code, 0, static_cast<int32_t>(code.ops.size()))),
        numbers_(numbered(code)),
        words_((static_cast<size_t>(cells_) + 63) / 64),
        entered_(graph_.first.size() * words_, ~uint64_t{0}),
        writes_(graph_.first.size() * words_) {
    std::ranges::fill(of(entered_, 0), 0);
    for (size_t at = 0; at < graph_.first.size(); ++at)
      each_op(at, [&](const Op& op) { write(op, of(writes_, at)); });
  }

  Words unsure() {
    std::vector<char> seen(graph_.first.size()), open(graph_.first.size());
    open[0] = 1;
    // In the order of the text, which most paths go along: once, and once more for what loops bring back.
    for (bool again = true; std::exchange(again, false);)
      for (size_t at = 0; at < open.size(); ++at) {
        if (!std::exchange(open[at], 0)) continue;
        seen[at] = 1;
        for (const int32_t successor : graph_.successors[at]) {
          const auto next = static_cast<size_t>(successor);
          if (!reach(at, next) && seen[next]) continue;
          open[next] = 1, again |= next <= at;
        }
      }
    Words found(words_), written(words_);
    for (size_t at = 0; at < seen.size(); ++at) {
      if (!seen[at]) continue;
      std::ranges::copy(of(entered_, at), written.begin());
      each_op(at, [&](const Op& op) {
        for (const Use& read : code_.signature(op).reads)
          if (read.slot < code_.register_bytes &&
              !(reads_own(code_.signature(op)) && has(written, read.slot)))
            add(found, read.slot);
        write(op, written);
      });
    }
    return found;
  }

  static constexpr Slot kUnit = 64;  ///< bytes of the smallest cell
  /// Among what unsure() gives; false of a unit that begins no cell.
  bool has(const Words& set, Slot slot) const {
    const int32_t number = numbers_[slot / kUnit];
    return number >= 0 && (set[static_cast<size_t>(number) / 64] >> (number % 64) & 1);
  }

 private:
  /// Cells that ops read or write, by their first unit; -1: none. Most take several units of the file.
  std::vector<int32_t> numbered(const Code& code) {
    std::vector<int32_t> numbers(code.register_bytes / kUnit + 1, -1);
    const auto note = [&](const Use& use) {
      if (use.slot < code.register_bytes && numbers[use.slot / kUnit] < 0)
        numbers[use.slot / kUnit] = cells_++;
    };
    for (const Signature& signature : code.signatures) {
      std::ranges::for_each(signature.reads, note);
      std::ranges::for_each(signature.writes, note);
    }
    return numbers;
  }
  /// What is written behind `at` is written before `next` where it is on all other ways too. True: less is.
  bool reach(size_t at, size_t next) {
    const Set entered = of(entered_, at), writes = of(writes_, at), known = of(entered_, next);
    uint64_t less = 0;
    for (size_t w = 0; w < words_; ++w) {
      const uint64_t both = known[w] & (entered[w] | writes[w]);
      less |= both ^ known[w], known[w] = both;
    }
    return less != 0;
  }
  Set of(Words& all, size_t stretch) const { return Set(all).subspan(stretch * words_, words_); }
  void add(Set set, Slot slot) const {
    const auto number = static_cast<size_t>(numbers_[slot / kUnit]);
    set[number / 64] |= uint64_t{1} << (number % 64);
  }

  void write(const Op& op, Set written) const {
    if (op.guarded || !is_of_lanes(code_.signature(op))) return;
    for (const Use& use : code_.signature(op).writes)
      if (use.slot < code_.register_bytes) add(written, use.slot);
  }

  template <class Visit>
  void each_op(size_t stretch, const Visit& visit) const {
    const auto begin = static_cast<size_t>(graph_.first[stretch]),
               end = stretch + 1 < graph_.first.size() ? static_cast<size_t>(graph_.first[stretch + 1])
                                                       : code_.ops.size();
    for (size_t i = begin; i < end; ++i) visit(code_.ops[i]);
  }

  const Code& code_;
  const FlowGraph graph_;
  int32_t cells_ = 0;
  const std::vector<int32_t> numbers_;
  const size_t words_;
  Words entered_, writes_;  ///< by stretch: before it; in it
};

}  // namespace

std::vector<SlotRange> unsure_registers(const Code& code) {
  const Slot end = code.register_bytes;
  if (end == 0) return {};
  const bool calls =
      std::ranges::any_of(code.signatures, [](const Signature& s) { return s.control == Control::call; });
  if (calls || code.ops.empty()) return {{0, end}};
  Paths paths(code);
  const Words unsure = paths.unsure();
  std::vector<SlotRange> ranges;
  constexpr Slot kLargestCell = 256;  // which its first unit stands for
  for (Slot at = 0; at < end; at += Paths::kUnit) {
    if (!paths.has(unsure, at)) continue;
    const Slot behind = std::min(at + kLargestCell, end);
    if (!ranges.empty() && at <= ranges.back().end + kGap)
      ranges.back().end = behind;
    else
      ranges.push_back({at, behind});
  }
  return ranges;
}

}  // namespace assay::vm
