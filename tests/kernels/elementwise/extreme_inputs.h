// Inputs at both ends of their formats, for kernels without keys and queries: judged, they may be undecided
// where something may overflow, and nothing else.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/kernels/gla/judged_run.h"

namespace assay {

/// Magnitudes of one tensor between 2^low and 2^high, ends drawn; log decays where exponentials change and at
/// their limits.
inline void fill_extreme(Tensor& tensor, bool log_decays, std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  static constexpr double kGates[] = {0,     -0x1p-149, -0x1p-25, -1e-6, -0.3465, -0.3466, -1.3, -20,
                                      -87.3, -87.4,     -103.9,   -104,  -150,    -9984,   -1e4};
  const int top = static_cast<int>(std::log2(max_finite(tensor.dtype))),
            bottom = tensor.dtype == Dtype::fp16 ? -24 : -149;
  const int middle = below(3) ? 0 : bottom + below(top - bottom + 1), spread = below(2) ? 2 : 60;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (log_decays) {
      tensor.set(i, kGates[below(3) ? below(4) : below(static_cast<int>(std::size(kGates)))]);
      if (tensor.value(i) < -1e4) tensor.set(i, -9984);
      continue;
    }
    const int exponent = std::clamp(middle - spread + below(2 * spread + 1), bottom, top);
    const double significand = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    tensor.set(i, (below(2) ? -1 : 1) * std::ldexp(below(9) ? significand : 0, exponent));
    if (!std::isfinite(tensor.value(i))) tensor.set(i, max_finite(tensor.dtype));
  }
}

/// Runs the case on such inputs, drawn from its seed.
inline void expect_judged_at_extremes(const Case& c) {
  std::mt19937_64 random(c.seed);
  const Operator& op = find_operator(find_kernel(c.kernel).operator_name);
  TensorMap inputs = draw_inputs(c, op);
  for (const ArgumentSpec& spec : inputs_of(c, op))
    if (inputs.count(std::string(spec.name)))
      fill_extreme(inputs.at(std::string(spec.name)), spec.role == Role::log_decay, random);
  for (const OutputComparison& output : judged_run(c, inputs, "sm_90").outputs) {
    EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
        << token_of(c) << ": " << output.worst.element << " got " << output.worst.got << " expected "
        << output.worst.expected << " bound " << output.worst.bound;
    EXPECT_TRUE(output.undecided == 0 ||
                output.undecided_reason.find(", 0 whose radius") != std::string::npos)
        << token_of(c) << ": " << output.undecided_reason;
  }
}

}  // namespace assay
