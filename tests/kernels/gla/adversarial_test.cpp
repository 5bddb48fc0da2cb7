// Inputs chosen to make the kernels err as far as they can: the bound must hold for every finite input, not
// for likely ones. Neither seed nor count is tuned; ASSAY_TEST_SCALE multiplies the count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <tuple>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

using Random = std::mt19937_64;

int64_t below(Random& random, int64_t n) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
}
template <size_t n>
double one_of(Random& random, const double (&values)[n]) {
  return values[below(random, n)];
}

/// How one tensor is filled: significands that truncate or round as badly as possible, exponents that align,
/// vanish or reach the format's ends, signs that add up or cancel.
struct Filling {
  double significand;  ///< of every element; 0: drawn anew for each
  int low, high;       ///< exponents, both ends included
  int sign;            ///< 0: plus; 1: alternating along the fastest axis; 2: random
  int zeros;           ///< one element in `zeros` is zero; 0: none

  static Filling draw(Random& random, int least, int most) {
    // Largest significands, just above midpoints of bf16 and tf32, a low half of its own, all bits set.
    static constexpr double kSignificands[] = {
        0,      0, 1, 0x1.fep0, 0x1.ffffffp0, 0x1.01p0, 0x1.010002p0, 0x1.002p0, 0x1.002002p0, 0x1.ffeffep0,
        0x1.8p0};
    Filling f{one_of(random, kSignificands), 0, 0, static_cast<int>(below(random, 3)),
              below(random, 4) == 0 ? 3 : 0};
    const int middle = below(random, 3) ? 0 : least + static_cast<int>(below(random, most - least + 1));
    static constexpr double kSpreads[] = {0, 1, 12, 24, 25, 60, 300};
    const int spread = static_cast<int>(one_of(random, kSpreads));
    f.low = std::max(least, middle - spread),
    f.high = std::min(most, middle + (below(random, 2) ? spread : 0));
    return f;
  }

  double operator()(Random& random, int64_t flat) const {
    if (zeros > 0 && below(random, zeros) == 0) return 0;
    const double m =
        significand != 0 ? significand : 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const int exponent = low + static_cast<int>(below(random, std::max(1, high - low + 1)));
    const bool minus = sign == 1 ? flat % 2 : sign == 2 && random() % 2;
    return (minus ? -1 : 1) * std::ldexp(m, exponent);
  }
};

void fill(Tensor& tensor, const Filling& filling, Random& random) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.set(i, filling(random, i));
    if (!std::isfinite(tensor.value(i))) tensor.set(i, max_finite(tensor.dtype));
  }
}

/// Log decays at the places where exponentials change: their limits, the switch to 1 + (e^g - 1), 0, -1e4.
void fill_gate(Tensor& tensor, Random& random) {
  static constexpr double kGates[] = {0,         -0x1p-149, -0x1p-126, -0x1p-30, -0x1p-25, -0x1p-24, -1e-6,
                                      -0.005415, -0.0217,   -0.3465,   -0.34657, -0.3466,  -0.6932,  -1.3,
                                      -5.458,    -20.79,    -44,       -86.6,    -87.3365, -87.34,   -88.7229,
                                      -89,       -103.97,   -103.98,   -150,     -9984,    -1e4};
  const int64_t kind = below(random, 4), at = below(random, std::size(kGates)),
                other = below(random, std::size(kGates));
  const double size = std::exp2(-static_cast<double>(below(random, 30)) + 7);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double uniform = std::ldexp(static_cast<double>(random() >> 11), -53);
    const double g = kind == 0   ? kGates[at]
                     : kind == 1 ? kGates[below(random, 8) ? at : other]
                     : kind == 2 ? -size * uniform
                                 : one_of(random, kGates);
    tensor.set(i, std::max(g, -1e4));
    if (tensor.value(i) < -1e4) tensor.set(i, -9984);
  }
}

Case adversarial_case(Random& random, const char* kernel, Direction direction, Dtype dtype) {
  static constexpr double kTokens[] = {1, 2, 16, 17, 33, 64, 65, 100, 130}, kWidths[] = {1, 3, 8, 16, 20, 40};
  static constexpr Dtype kGates[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  Case c;
  c.kernel = kernel, c.dtype = dtype, c.gate_dtype = kGates[below(random, 3)];
  c.T = static_cast<int64_t>(one_of(random, kTokens));
  c.K = static_cast<int64_t>(one_of(random, kWidths)), c.V = 1 + below(random, 9);
  c.initial_state = below(random, 2) == 0;
  c.direction = direction;
  c.final_state_gradient = runs_backward(c) && below(random, 2) == 0;
  static constexpr double kScales[] = {1, 1, 0x1.fffffep-1, 0.1, 0x1p-140, 0x1p60, 3e-39};
  c.scale = one_of(random, kScales);
  return c;
}

/// Every second token takes back what the one before it wrote: states, stored ones too, are far less than
/// their terms.
void cancel(Tensor& tensor, int64_t T, double sign) {
  const int64_t width = tensor.size() / T;
  for (int64_t i = width; i < tensor.size(); ++i)
    if (i / width % 2) tensor.set(i, sign * tensor.value(i - width));
}

TensorMap adversarial_inputs(Random& random, const Case& c) {
  TensorMap inputs = draw_inputs(c, find_operator(find_kernel(c.kernel).operator_name));
  const bool cancelling = below(random, 4) == 0;
  for (auto& [name, tensor] : inputs) {
    const bool half = tensor.dtype == Dtype::fp16;
    if (name == "g" || name == "w")
      fill_gate(tensor, random);
    else
      fill(tensor, Filling::draw(random, half ? -24 : -149, half ? 15 : 127), random);
    if (cancelling && (name == "k" || name == "q" || name == "r")) cancel(tensor, c.T, 1);
    if (cancelling && (name == "v" || name == "do")) cancel(tensor, c.T, -1);
  }
  return inputs;
}

int64_t runs(int64_t count) {
  const char* text = std::getenv("ASSAY_TEST_SCALE");
  return std::max<int64_t>(20,
                           static_cast<int64_t>(static_cast<double>(count) * (text ? std::atof(text) : 1)));
}

struct Run {
  const char* kernel;
  Direction direction;
  int64_t count = 150;
};
class AdversarialInputs : public testing::TestWithParam<std::tuple<Run, Dtype>> {};

/// Undecided is no verdict: only where the bound is infinite (something may overflow) may it be one.
TEST_P(AdversarialInputs, StayWithinTheBoundOrMayOverflow) {
  const auto& [which, dtype] = GetParam();
  for (const char* arch : {"sm_80", "sm_90"}) {
    double worst = 0;
    int64_t judged = 0, elements = 0;
    for (int64_t seed = 0; seed < runs(which.count); ++seed) {
      Random random(static_cast<uint64_t>(seed) * 1000 + static_cast<uint64_t>(dtype) * 10 +
                    (arch[3] == '8'));
      const Case c = adversarial_case(random, which.kernel, which.direction, dtype);
      const JudgedRun run = judged_run(c, adversarial_inputs(random, c), arch);
      for (const OutputComparison& output : run.outputs) {
        EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
            << token_of(c) << " " << arch << " seed " << seed << ": " << output.worst.element << " got "
            << output.worst.got << " expected " << output.worst.expected << " bound " << output.worst.bound;
        EXPECT_TRUE(output.undecided == 0 || output.undecided_reason.find("radius") == std::string::npos)
            << token_of(c) << " " << arch << " seed " << seed << ": " << output.undecided_reason;
        judged += output.ok, elements += output.elements;
        worst = std::max(worst, output.max_tightness);
      }
    }
    std::printf("%s %s %s %s: largest error / bound %.3f, %.0f %% of the elements judged\n", which.kernel,
                std::string(name_of(which.direction)).c_str(), std::string(format(dtype).name).c_str(), arch,
                worst, 100.0 * double(judged) / double(elements));
    EXPECT_GE(judged, elements / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, AdversarialInputs,
                         testing::Combine(testing::Values(Run{"gla.chunk", Direction::forward},
                                                          Run{"gla.fused_recurrent", Direction::forward},
                                                          Run{"gla.chunk", Direction::backward},
                                                          Run{"gla.fused_recurrent", Direction::backward},
                                                          Run{"simple_gla.chunk", Direction::both, 60},
                                                          Run{"simple_gla.fused_recurrent", Direction::both,
                                                              40},
                                                          Run{"simple_gla.parallel", Direction::both, 40},
                                                          Run{"rwkv6.chunk", Direction::forward},
                                                          Run{"rwkv6.fused_recurrent", Direction::forward},
                                                          Run{"rwkv6.chunk", Direction::backward},
                                                          Run{"rwkv6.fused_recurrent", Direction::backward}),
                                          testing::Values(Dtype::bf16, Dtype::fp16, Dtype::fp32)));

/// An fp32 value next to 2^128 rounds to an infinite tf32 operand, and zero times it is NaN, in its own row
/// and in every row of its chunk: no verdict can be given there, and none may be "nonfinite".
TEST(HugeValues, GiveNoVerdictWhereAnOperandMayOverflow) {
  for (const char* name : {"k", "v", "initial_state"}) {
    Case c;
    c.kernel = "gla.chunk", c.T = 20, c.K = 8, c.V = 4, c.dtype = Dtype::fp32, c.initial_state = true;
    TensorMap inputs = draw_inputs(c, find_operator("gla"));
    for (auto& [other, tensor] : inputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.set(i, other == "g" ? -0.01 : std::ldexp(tensor.value(i), -30));
    inputs[name].set(inputs[name].size() - 1, std::numeric_limits<float>::max());
    const JudgedRun run = judged_run(c, inputs, "sm_90");
    int64_t undecided = 0;
    for (const OutputComparison& output : run.outputs) {
      EXPECT_EQ(output.violation + output.nonfinite + output.wrong_class, 0)
          << name << " " << output.worst.element;
      undecided += output.undecided;
    }
    EXPECT_GT(undecided, 0) << name;
  }
}

}  // namespace
}  // namespace assay
