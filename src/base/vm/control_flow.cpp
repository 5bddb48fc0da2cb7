// Reconvergence points: the immediate post-dominator of each branch (Cooper, Harvey and Kennedy, "A simple,
// fast dominance algorithm", 2001, on the reversed graph).
#include <algorithm>
#include <vector>

#include "src/base/vm/decoder.h"
#include "src/base/vm/flow_graph.h"

namespace assay::vm {
namespace {

/// Blocks that the first can reach.
std::vector<char> reachable(const FlowGraph& graph) {
  std::vector<char> seen(graph.first.size(), 0);
  std::vector<int32_t> todo{0};
  seen[0] = 1;
  while (!todo.empty()) {
    const int32_t block = todo.back();
    todo.pop_back();
    for (const int32_t next : graph.successors[static_cast<size_t>(block)]) {
      if (seen[static_cast<size_t>(next)]) continue;
      seen[static_cast<size_t>(next)] = 1;
      todo.push_back(next);
    }
  }
  return seen;
}

/// Immediate post-dominators with `exits` as the only ends; -1: none (the end itself), -2: does not reach an
/// end.
std::vector<int32_t> post_dominators(const FlowGraph& graph, const std::vector<int32_t>& exits) {
  const auto blocks = static_cast<int32_t>(graph.first.size());
  const int32_t end = blocks;  // virtual node after all exits
  std::vector<char> is_exit(static_cast<size_t>(blocks), 0);
  for (const int32_t e : exits) is_exit[static_cast<size_t>(e)] = 1;
  // Postorder of the reversed graph from the virtual end.
  std::vector<int32_t> order, number(static_cast<size_t>(blocks) + 1, -1);
  std::vector<char> seen(static_cast<size_t>(blocks) + 1, 0);
  std::vector<std::pair<int32_t, size_t>> path{{end, 0}};
  seen[static_cast<size_t>(end)] = 1;
  while (!path.empty()) {
    auto& [node, at] = path.back();
    const std::vector<int32_t>& next = node == end ? exits : graph.predecessors[static_cast<size_t>(node)];
    if (at == next.size()) {
      number[static_cast<size_t>(node)] = static_cast<int32_t>(order.size());
      order.push_back(node);
      path.pop_back();
      continue;
    }
    const int32_t to = next[at++];
    if (!seen[static_cast<size_t>(to)]) {
      seen[static_cast<size_t>(to)] = 1;
      path.emplace_back(to, 0);
    }
  }
  std::vector<int32_t> parent(static_cast<size_t>(blocks) + 1, -2);
  parent[static_cast<size_t>(end)] = end;
  auto meet = [&](int32_t a, int32_t b) {
    while (a != b) {
      while (number[static_cast<size_t>(a)] < number[static_cast<size_t>(b)])
        a = parent[static_cast<size_t>(a)];
      while (number[static_cast<size_t>(b)] < number[static_cast<size_t>(a)])
        b = parent[static_cast<size_t>(b)];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const int32_t node = *it;
      if (node == end) continue;
      int32_t best = is_exit[static_cast<size_t>(node)] ? end : -2;
      for (const int32_t s : graph.successors[static_cast<size_t>(node)]) {
        if (parent[static_cast<size_t>(s)] == -2) continue;
        best = best == -2 ? s : meet(best, s);
      }
      if (best != parent[static_cast<size_t>(node)]) {
        parent[static_cast<size_t>(node)] = best;
        changed = true;
      }
    }
  }
  parent.pop_back();
  for (int32_t& p : parent)
    if (p == end) p = -1;
  return parent;
}

}  // namespace

void find_reconvergence(Code& code, size_t begin, size_t end) {
  FlowGraph graph = flow_graph(code, static_cast<int32_t>(begin), static_cast<int32_t>(end));
  const std::vector<char> live = reachable(graph);
  const auto dead = [&](int32_t block) { return !live[static_cast<size_t>(block)]; };
  std::erase_if(graph.leaving, dead);
  std::erase_if(graph.may_leave, dead);
  if (graph.may_leave.empty()) return;
  // Early exits never rejoin, so the last way out alone decides where the others wait; code that cannot reach
  // it is judged with every way out, and a loop that only guarded exits end with those.
  std::vector<int32_t> last_way;
  if (!graph.leaving.empty()) last_way.push_back(graph.leaving.back());
  const std::vector<int32_t> main = post_dominators(graph, last_way);
  const std::vector<int32_t> all = post_dominators(graph, graph.leaving);
  const std::vector<int32_t> any = post_dominators(graph, graph.may_leave);
  for (size_t b = 0; b < graph.first.size(); ++b) {
    const size_t last = (b + 1 < graph.first.size() ? static_cast<size_t>(graph.first[b + 1]) : end) - 1;
    Op& op = code.ops[last];
    if (op.kind != Kind::branch && op.kind != Kind::branch_table) continue;
    const int32_t block = main[b] != -2 ? main[b] : all[b] != -2 ? all[b] : any[b];
    op.reconverge = block < 0 ? -1 : graph.first[static_cast<size_t>(block)];
  }
}

}  // namespace assay::vm
