// Where a function goes on: stretches of ops without a branch, and which come after which.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

struct FlowGraph {
  std::vector<int32_t> first;  ///< op of each block
  std::vector<std::vector<int32_t>> successors, predecessors;
  std::vector<int32_t> leaving;    ///< blocks that end in exit, ret or trap
  std::vector<int32_t> may_leave;  ///< those where a guard decides that too
};

/// Of ops `begin` to `end`, in which every branch of theirs goes.
FlowGraph flow_graph(const Code&, int32_t begin, int32_t end);

}  // namespace assay::vm
