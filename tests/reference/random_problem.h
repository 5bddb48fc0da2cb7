// Problems drawn from a seed, for tests of the reference.
#pragma once
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "reference/operator.h"

namespace assay {

struct RandomProblem {
  TensorMap inputs;
  Problem problem;

  RandomProblem(const RandomProblem&) = delete;
  RandomProblem() = default;

  Tensor& at(const std::string& name) { return inputs.at(name); }
};

struct RandomShape {
  int64_t B = 1, T = 8, H = 1, K = 4, V = 4;
  std::vector<int64_t> cu_seqlens = {};
  Dtype dtype = Dtype::fp32;
  std::string decay = "logsigmoid";  ///< none, near-one, logsigmoid, strong, reset, ladder, extreme, absent
  bool initial_state = true, cotangents = false;
};

/// A log decay of the named profile.
inline double draw_decay(const std::string& profile, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  if (profile == "none") return 0;
  if (profile == "near-one") return -std::ldexp(uniform(random), -18);
  if (profile == "strong") return -20 * uniform(random);
  if (profile == "reset") return uniform(random) < 0.15 ? -1e4 : -0.7 * uniform(random);
  if (profile == "ladder") return -std::ldexp(1 + uniform(random), static_cast<int>(random() % 24) - 10);
  if (profile == "extreme") return uniform(random) < 0.5 ? -1e4 * uniform(random) : 0;
  return -std::log1p(std::exp(-normal(random)));
}

inline Tensor draw_tensor(const std::string& name, Dtype dtype, std::vector<Axis> axes,
                          std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Tensor tensor(name, dtype, std::move(axes));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, normal(random));
  return tensor;
}

/// `out` must stay where it is: the problem points into it.
inline void draw_problem(const RandomShape& shape, uint64_t seed, RandomProblem& out) {
  std::mt19937_64 random(seed);
  const int64_t N = shape.cu_seqlens.empty() ? shape.B : static_cast<int64_t>(shape.cu_seqlens.size()) - 1;
  const std::vector<Axis> keys = {{"B", shape.B}, {"T", shape.T}, {"H", shape.H}, {"K", shape.K}};
  const std::vector<Axis> values = {{"B", shape.B}, {"T", shape.T}, {"H", shape.H}, {"V", shape.V}};
  const std::vector<Axis> states = {{"N", N}, {"H", shape.H}, {"K", shape.K}, {"V", shape.V}};
  out.inputs.clear();
  out.inputs["q"] = draw_tensor("q", shape.dtype, keys, random);
  out.inputs["k"] = draw_tensor("k", shape.dtype, keys, random);
  out.inputs["v"] = draw_tensor("v", shape.dtype, values, random);
  if (shape.decay != "absent") {
    Tensor g("g", Dtype::fp32, keys);
    for (int64_t i = 0; i < g.size(); ++i) g.set(i, draw_decay(shape.decay, random));
    out.inputs["g"] = g;
  }
  if (shape.initial_state)
    out.inputs["initial_state"] = draw_tensor("initial_state", Dtype::fp32, states, random);
  if (shape.cotangents) {
    out.inputs["do"] = draw_tensor("do", shape.dtype, values, random);
    out.inputs["dfinal_state"] = draw_tensor("dfinal_state", Dtype::fp32, states, random);
  }
  out.problem = {};
  out.problem.sizes = {shape.B, shape.T, shape.H, shape.H, shape.K, shape.V, 1, N};
  out.problem.cu_seqlens = shape.cu_seqlens;
  out.problem.scale = 1 / std::sqrt(static_cast<double>(shape.K));
  out.problem.inputs = &out.inputs;
}

/// fp32 arithmetic of a recurrent kernel with a 2-ulp exponential.
inline GatedArithmetic recurrent_fp32(int64_t K) {
  constexpr double u = 0x1p-24;
  GatedArithmetic a;
  a.decay = 0x1p-23 + u + 0x1p-47;
  a.write = u;
  a.step = u;
  a.readout = (static_cast<double>(K) + 3) * u * 1.001;
  a.underflow = 0x1p-149;
  a.output_roundoff = 0;
  return a;
}

}  // namespace assay
