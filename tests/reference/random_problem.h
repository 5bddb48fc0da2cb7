// Problems drawn from a seed, for tests of the reference.
#pragma once
#include <algorithm>
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
  int64_t M = 3, HV = 0;  ///< HV = 0: as H
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

/// Rows of the last axis of length one, before they are rounded.
inline void make_unit_rows(Tensor& x) {
  const int64_t width = x.axes.back().size;
  for (int64_t first = 0; first < x.size(); first += width) {
    double square = 0;
    for (int64_t i = first; i < first + width; ++i) square += x.value(i) * x.value(i);
    for (int64_t i = first; i < first + width; ++i) x.set(i, x.value(i) / std::sqrt(square));
  }
}

/// Rows along those of a unit argument, at most half as long.
inline void make_rows_along(const Tensor& unit, Tensor& x) {
  const int64_t width = x.axes.back().size;
  for (int64_t first = 0; first < x.size(); first += width) {
    const double length = 0.5 / (1 + std::exp(-x.value(first)));
    for (int64_t i = first; i < first + width; ++i) x.set(i, unit.value(i) * length);
  }
}

/// Inputs of any operator from its specifications, all optional ones present that do not stand in for
/// another; decay "absent" leaves optional gates out. `out` must stay where it is: the problem points into
/// it.
inline void draw_problem_of(const Operator& op, const std::string& decay, const RandomShape& shape,
                            uint64_t seed, RandomProblem& out) {
  std::mt19937_64 random(seed);
  const int64_t N = shape.cu_seqlens.empty() ? shape.B : static_cast<int64_t>(shape.cu_seqlens.size()) - 1;
  const int64_t HV = shape.HV ? shape.HV : shape.H;
  out.inputs.clear();
  out.problem = {};
  out.problem.sizes = {shape.B, shape.T, shape.H, HV, shape.K, shape.V, shape.M, N};
  out.problem.cu_seqlens = shape.cu_seqlens;
  out.problem.scale = 1 / std::sqrt(static_cast<double>(shape.K));
  out.problem.inputs = &out.inputs;
  const auto axes_of = [&](const ArgumentSpec& a) {
    std::vector<Axis> axes;
    for (std::string_view axis : a.axes) axes.push_back({std::string(axis), out.problem.sizes.of(axis)});
    return axes;
  };
  const bool replaces = std::any_of(op.inputs.begin(), op.inputs.end(),
                                    [](const ArgumentSpec& a) { return a.role == Role::rate; });
  std::string unit;  // comes before what is along it
  const auto state = [&](const ArgumentSpec& a) { return a.role == Role::state; };
  for (const ArgumentSpec& a : op.inputs) {
    const std::string name(a.name);
    if (!a.instead_of.empty() || (state(a) && a.optional && !shape.initial_state)) continue;
    if (a.role == Role::log_decay) {
      if (a.optional && decay == "absent") continue;
      Tensor g(name, shape.dtype == Dtype::fp64 ? Dtype::fp64 : Dtype::fp32, axes_of(a));
      for (int64_t i = 0; i < g.size(); ++i) g.set(i, draw_decay(decay, random));
      out.inputs[name] = g;
    } else {
      const Dtype dtype = state(a) && shape.dtype != Dtype::fp64 ? Dtype::fp32 : shape.dtype;
      Tensor& x = out.inputs[name] = draw_tensor(name, dtype, axes_of(a), random);
      const bool positive = a.role == Role::positive || a.not_negative;
      for (int64_t i = 0; positive && i < x.size(); ++i) x.set(i, std::fabs(x.value(i)));
      for (int64_t i = 0; a.role == Role::rate && i < x.size(); ++i)
        x.set(i, 2 / (1 + std::exp(-x.value(i))));
      if (a.role == Role::unit && replaces) make_unit_rows(x), unit = name;
      if (a.role == Role::along) make_rows_along(out.inputs.at(unit), x);
    }
  }
  for (const ArgumentSpec& a : op.outputs) {
    const std::string name = "d" + std::string(a.name);
    const Dtype dtype = state(a) && shape.dtype != Dtype::fp64 ? Dtype::fp32 : shape.dtype;
    if (shape.cotangents) out.inputs[name] = draw_tensor(name, dtype, axes_of(a), random);
  }
}

/// As above for gla.
inline void draw_problem(const RandomShape& shape, uint64_t seed, RandomProblem& out) {
  draw_problem_of(find_operator("gla"), shape.decay, shape, seed, out);
}

/// fp32 arithmetic of a recurrent kernel with a 2-ulp exponential.
inline Arithmetic recurrent_fp32(int64_t K) {
  constexpr double u = 0x1p-24;
  Arithmetic a;
  a.decay = 0x1p-23 + u + 0x1p-47;
  a.write = u;
  a.step = u;
  a.readout = (static_cast<double>(K) + 3) * u * 1.001;
  a.underflow = 0x1p-149;
  a.output_roundoff = 0;
  return a;
}

}  // namespace assay
