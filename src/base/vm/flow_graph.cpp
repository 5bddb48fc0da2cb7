#include "src/base/vm/flow_graph.h"

#include <span>

namespace assay::vm {
namespace {

bool may_leave(const Op& op) {
  return op.kind == Kind::exit || op.kind == Kind::ret || op.kind == Kind::trap;
}
bool leaves(const Op& op) {
  return !op.guarded && may_leave(op);
}

std::span<const int32_t> targets_of(const Code& code, const Op& op) {
  if (op.kind == Kind::branch) return {&op.target, 1};
  if (op.kind == Kind::branch_table) return code.branch_tables[op.immediate];
  return {};
}

}  // namespace

FlowGraph flow_graph(const Code& code, int32_t begin, int32_t end) {
  const auto size = static_cast<size_t>(end - begin);
  std::vector<char> leader(size + 1, 0);
  leader[0] = 1;
  for (int32_t i = begin; i < end; ++i) {
    const Op& op = code.ops[static_cast<size_t>(i)];
    for (const int32_t target : targets_of(code, op)) leader[static_cast<size_t>(target - begin)] = 1;
    if (op.kind == Kind::branch || op.kind == Kind::branch_table || may_leave(op))
      leader[static_cast<size_t>(i + 1 - begin)] = 1;
  }
  FlowGraph graph;
  std::vector<int32_t> block_of(size);
  for (size_t i = 0; i < size; ++i) {
    if (leader[i]) graph.first.push_back(begin + static_cast<int32_t>(i));
    block_of[i] = static_cast<int32_t>(graph.first.size()) - 1;
  }
  const size_t blocks = graph.first.size();
  graph.successors.resize(blocks);
  graph.predecessors.resize(blocks);
  for (size_t b = 0; b < blocks; ++b) {
    const int32_t last = (b + 1 < blocks ? graph.first[b + 1] : end) - 1;
    const Op& op = code.ops[static_cast<size_t>(last)];
    auto& next = graph.successors[b];
    for (const int32_t target : targets_of(code, op))
      next.push_back(block_of[static_cast<size_t>(target - begin)]);
    const bool falls =
        !leaves(op) && (op.guarded || (op.kind != Kind::branch && op.kind != Kind::branch_table));
    if (falls && last + 1 < end) next.push_back(static_cast<int32_t>(b) + 1);
    if (leaves(op)) graph.leaving.push_back(static_cast<int32_t>(b));
    if (may_leave(op)) graph.may_leave.push_back(static_cast<int32_t>(b));
    for (const int32_t s : next)
      graph.predecessors[static_cast<size_t>(s)].push_back(static_cast<int32_t>(b));
  }
  return graph;
}

}  // namespace assay::vm
