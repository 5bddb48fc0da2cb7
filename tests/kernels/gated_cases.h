// Cases of the gated family as the tests of its kernels draw them.
#pragma once
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/case/resolved_case.h"

namespace assay {

struct CaseShape {
  int64_t B, T, H, K, V;
  std::vector<int64_t> cu_seqlens;
};

/// Forward; every other seed has an initial state.
inline Case gated_case(const std::string& kernel, const CaseShape& shape, Dtype dtype, Dtype gate,
                       const char* decay, uint64_t seed) {
  Case c;
  c.kernel = kernel;
  c.B = shape.B, c.T = shape.T, c.H = shape.H, c.K = shape.K, c.V = shape.V;
  c.cu_seqlens = shape.cu_seqlens;
  c.dtype = dtype, c.gate_dtype = gate;
  c.decay = decay;
  c.seed = seed;
  c.initial_state = seed % 2 == 0;
  const Operator& op = find_operator(kernel.substr(0, kernel.find('.')));
  if (!has_slots(op)) c.M = usual_slots(op);
  return c;
}

}  // namespace assay
