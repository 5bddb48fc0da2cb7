#include "src/base/vm/provenance.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace assay::vm {

Dependence Provenance::add(Dependence a, Dependence b) {
  if (next_ == kLeaf) return kForgotten;  // 2^31 unions: no ids are left
  const uint32_t index = (next_ - kFirstNode) & (capacity_ - 1);
  if (index == nodes_.size())
    nodes_.push_back({a, b});
  else
    nodes_[index] = {a, b};
  last_a_ = a, last_b_ = b, last_ = next_;
  return next_++;
}

Provenance::Elements Provenance::collect(Dependence root, size_t limit) const {
  constexpr size_t kVisits = 1u << 20;  // a graph wider than this within its newest part is cut
  Elements result;
  std::priority_queue<Dependence> open;  // nodes only: the newest has the largest id
  std::unordered_set<Dependence> seen, leaves;
  auto visit = [&](Dependence d) {
    if (d & kLeaf)
      leaves.insert(d & ~kLeaf);
    else if (d == kForgotten)
      result.truncated = true;
    else if (d == kUnwritten)
      result.unwritten = true;
    else if (d != kNothing && seen.insert(d).second)
      open.push(d);
  };
  visit(root);
  while (!open.empty() && leaves.size() < limit && seen.size() < kVisits) {
    const Dependence d = open.top();
    open.pop();
    if (next_ - d > capacity_) {
      result.truncated = true;
      continue;
    }
    const Node& node = nodes_[(d - kFirstNode) & (capacity_ - 1)];
    visit(node.a);
    visit(node.b);
  }
  result.truncated |= !open.empty();
  result.leaves.assign(leaves.begin(), leaves.end());
  std::sort(result.leaves.begin(), result.leaves.end());
  return result;
}

}  // namespace assay::vm
