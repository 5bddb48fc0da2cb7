#include "src/base/vm/polls.h"

#include <algorithm>
#include <set>

#include "src/base/vm/signature.h"

namespace assay::vm {
namespace {

/// From the first op of a loop to the branch back to it.
struct Loop {
  size_t first, last;
  bool holds(size_t op) const { return first <= op && op <= last; }
};

std::vector<Loop> loops_of(const Code& code) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < code.ops.size(); ++i)
    if (const Op& op = code.ops[i]; code.signature(op).control == Control::branch && op.target >= 0 &&
                                    static_cast<size_t>(op.target) <= i)
      loops.push_back({static_cast<size_t>(op.target), i});
  return loops;
}

/// The branches whose guard is made of `made`, without passing memory.
std::vector<size_t> branches_by(const Code& code, std::set<Slot> made) {
  std::set<size_t> branches;
  for (size_t known = 0; known != made.size();) {
    known = made.size();
    for (size_t i = 0; i < code.ops.size(); ++i) {
      const Signature& signature = code.signature(code.ops[i]);
      const bool reads = std::any_of(signature.reads.begin(), signature.reads.end(),
                                     [&](const Use& use) { return made.contains(use.slot); });
      if (!reads) continue;
      if (signature.control == Control::branch) branches.insert(i);
      if (!signature.accesses.empty()) continue;
      for (const Use& use : signature.writes) made.insert(use.slot);
    }
  }
  return {branches.begin(), branches.end()};
}

}  // namespace

std::vector<bool> polls_of(const Code& code) {
  std::vector<bool> polls(code.ops.size());
  std::vector<Loop> loops;
  for (size_t i = 0; i < code.ops.size(); ++i) {
    const Signature& signature = code.signature(code.ops[i]);
    if (signature.form.order != ptx::Order::volatile_ || signature.flow() != Flow::load) continue;
    if (loops.empty()) loops = loops_of(code);
    std::set<Slot> loaded;
    for (const Use& use : signature.writes) loaded.insert(use.slot);
    const std::vector<size_t> branches = branches_by(code, std::move(loaded));
    polls[i] = std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) {
      return loop.holds(i) &&
             std::any_of(branches.begin(), branches.end(), [&](size_t branch) { return loop.holds(branch); });
    });
  }
  return polls;
}

}  // namespace assay::vm
