// What the tests of the gated family's gradients share: cases around the kernels' edges, and one run of a
// case.
#pragma once
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/gated_cases.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {

inline const Dtype gradient_dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
inline const char* const gradient_profiles[] = {"none",  "logsigmoid", "near-one", "strong", "spike",
                                                "reset", "contrast",   "ladder",   "extreme"};
/// Around the edges of tokens read at once, tiles, chunks and blocks of channels; aligned and not. K = 16
/// with V = 64 and the reverse are where sizes of the state are easily exchanged.
inline const CaseShape gradient_shapes[] = {
    {1, 1, 1, 1, 1, {}},
    {2, 17, 3, 16, 24, {}},
    {1, 64, 2, 8, 40, {}},
    {1, 80, 1, 33, 7, {}},
    {1, 130, 1, 72, 16, {}},
    {1, 63, 1, 100, 130, {}},
    {1, 66, 1, 16, 64, {}},
    {1, 71, 1, 64, 16, {}},
    {1, 71, 1, 20, 256, {}},
    {1, 70, 1, 256, 12, {}},
    {1, 150, 2, 40, 16, {0, 0, 15, 16, 100, 100, 150}},
};

inline Case gradient_case(const std::string& kernel, const CaseShape& shape, Dtype dtype, Dtype gate,
                          const char* decay, uint64_t seed) {
  Case c = gated_case(kernel, shape, dtype, gate, decay, seed);
  c.direction = Direction::backward;
  c.final_state_gradient = seed % 3 != 0;
  return c;
}
/// The `seed`-th of cases in which every format meets every profile, and every shape comes up.
inline Case gradient_case(const std::string& kernel, uint64_t seed) {
  const size_t profiles = std::size(gradient_profiles);
  const CaseShape& shape = gradient_shapes[(seed + seed / profiles) % std::size(gradient_shapes)];
  return gradient_case(kernel, shape, gradient_dtypes[seed / profiles % 3], gradient_dtypes[seed % 3],
                       gradient_profiles[seed % profiles], seed);
}
inline constexpr uint64_t gradient_cases = std::size(gradient_dtypes) * std::size(gradient_profiles);

inline const Operator& operator_of(const Case& c) {
  return find_operator(find_kernel(c.kernel).operator_name);
}
inline Outcome outcome_of(const Case& c, const TensorMap& inputs) {
  const Outcome outcome =
      vm::run(find_kernel(c.kernel).plan(resolve_unchecked(c, operator_of(c)), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap) << token_of(c) << ": " << outcome.trap->message;
  return outcome;
}

inline std::vector<std::string> kernels_with_gradients(const std::set<std::string>& operators) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels())
    if (operators.contains(kernel.operator_name) && kernel.adjoint_arithmetic) names.push_back(kernel.name);
  return names;
}
inline std::string kernel_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace assay
