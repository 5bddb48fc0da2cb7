#include "src/base/vm/recurrences.h"

#include <algorithm>
#include <map>

#include "src/base/vm/code.h"

namespace assay::vm {
namespace {

/// Registers by what is made of them, and by their loops: two are in one where each is made of the other
/// (strongly connected components as R. Tarjan finds them, "Depth-first search and linear graph algorithms",
/// SIAM J. Comput. 1, 1972; with a stack of its own).
class Registers {
 public:
  explicit Registers(const Code& code) {
    for (const Op& op : code.ops)
      for (const Use& write : code.signature(op).writes)
        for (const Use& read : code.signature(op).reads)
          if (read.purpose == Purpose::value) made_of_[read.slot].push_back(write.slot);
    for (const auto& [slot, made] : made_of_)
      if (!found_.contains(slot)) search(slot);
  }
  /// That what `from` holds may come of what `to` held; of one register, where it is made of itself.
  bool are_in_one_loop(Slot from, Slot to) const {
    const auto a = found_.find(from), b = found_.find(to);
    return a != found_.end() && b != found_.end() && a->second.loop == b->second.loop;
  }

 private:
  struct Found {
    uint32_t order = 0, lowest = 0, loop = 0;
  };
  void enter(Slot slot) {
    found_[slot] = {next_, next_, 0}, ++next_;
    open_.push_back(slot), path_.push_back({slot, 0});
  }
  void search(Slot first) {
    enter(first);
    while (!path_.empty()) {
      const Slot slot = path_.back().first;
      const auto made = made_of_.find(slot);
      Found& found = found_[slot];
      if (made != made_of_.end() && path_.back().second < made->second.size()) {
        const Slot next = made->second[path_.back().second++];
        const auto known = found_.find(next);
        if (known == found_.end())
          enter(next);
        else if (known->second.loop == 0)
          found.lowest = std::min(found.lowest, known->second.order);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        Found& before = found_[path_.back().first];
        before.lowest = std::min(before.lowest, found.lowest);
      }
      if (found.lowest == found.order) close(slot);
    }
  }
  void close(Slot first) {
    ++loops_;
    for (bool more = true; more; open_.pop_back()) {
      more = open_.back() != first;
      found_[open_.back()].loop = loops_;
    }
  }

  std::map<Slot, std::vector<Slot>> made_of_;
  std::map<Slot, Found> found_;
  std::vector<Slot> open_;
  std::vector<std::pair<Slot, size_t>> path_;
  uint32_t next_ = 1, loops_ = 0;
};

}  // namespace

std::vector<Recurrence> recurrences_of(const Code& code) {
  const Registers registers(code);
  std::vector<Recurrence> result(code.ops.size());
  for (size_t i = 0; i < code.ops.size(); ++i) {
    const Op& op = code.ops[i];
    for (size_t k = 0; k < 3; ++k)
      if (op.d != no_slot && op.s[k] != no_slot && registers.are_in_one_loop(op.s[k], op.d))
        result[i].sources = static_cast<uint8_t>(result[i].sources | 1u << k);
  }
  return result;
}

}  // namespace assay::vm
