// The bounds of the elementwise gates. A kernel makes sigmoid and softplus of an argument z with the relative
// error `readout`; what an error d of the argument, or of the exponent of e^{+-z}, does to them is at most
// e^{|d|}, as |d log f / dz| <= 1 for both. `write` is the relative error of z = x + bias, `decay_per_nat`
// that of the exponent per unit of |z| (and of |A|). Every factor is at most 1 + its inputs' magnitudes, so
// that underflow costs at most kUnderflowEvents times their product. Gradients: the adjoint's readout; sums
// over tokens and sequences (1 + value_readout) (1 + total). Where e^A, its products or a sum of their sizes
// may overflow, gate_softplus has no finite bound.
#include "reference/bounds/storage.h"
#include "reference/operators/gate_logsigmoid.h"
#include "reference/operators/gate_softplus.h"
#include "reference/operators/rwkv7_log_decay.h"

namespace assay {
namespace {

constexpr double kRoundings = 64;

double sigmoid_of(double z) {
  return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
}
double softplus_of(double z) {
  return std::fmax(z, 0) + std::log1p(std::exp(-std::fabs(z)));
}

/// Output gates are stored in the case's gate format, which only the roundoff tells.
Dtype format_of(double roundoff) {
  if (roundoff > 0x1p-9) return Dtype::bf16;
  return roundoff > 0x1p-12 ? Dtype::fp16 : Dtype::fp32;
}

/// Relative error of a gate whose argument is z and whose rate's exponent is A.
double relative(const Arithmetic& a, double z, double A, double readout) {
  const double exponent =
      a.write * std::fabs(z) + a.decay_per_nat * (std::fabs(z) * (1 + a.write) + std::fabs(A));
  return (readout + (1 + readout) * std::expm1(exponent)) * (1 + 0x1p-40);
}

double absolute(const Arithmetic& a, double magnitudes) {
  return kUnderflowEvents * underflow_of(a, claims_exact(a)) * magnitudes;
}

template <typename Value>
std::vector<ElementBound> elementwise(const SliceMatrix& x, const Value& value) {
  std::vector<ElementBound> y;
  for (double z : x.values) y.push_back(value(z));
  return y;
}

/// dx of a gate: `slope` = |dg/dx|.
ElementBound gradient(const AdjointArithmetic& a, const Storage& storage, double slope, double d, double z,
                      double A, double magnitudes) {
  const double value = slope * std::fabs(d), rel = relative(a.adjoint, z, A, a.adjoint.readout);
  return storage.element(value, value, rel * value, absolute(a.adjoint, magnitudes * (1 + std::fabs(d))),
                         kRoundings);
}

}  // namespace

SliceBounds Rwkv7LogDecay::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  return {elementwise(p.inputs[0], [&](double x) {
    const double w = std::exp(-0.5) * sigmoid_of(x);
    return storage.element(w, w, relative(a, x, 0, a.readout) * w, absolute(a, 1), kRoundings);
  })};
}

SliceBounds Rwkv7LogDecay::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  SliceBounds y(1);
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const double x = p.inputs[0].values[i], slope = std::exp(-0.5) * sigmoid_of(x) * sigmoid_of(-x);
    // Two functions of x: each moves with its own exponent.
    AdjointArithmetic twice = a;
    twice.adjoint.decay_per_nat *= 2, twice.adjoint.write *= 2;
    y[0].push_back(gradient(twice, storage, slope, p.cotangents[0].values[i], x, 0, 1));
  }
  return y;
}

SliceBounds GateLogsigmoid::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  const double scale = std::fabs(p.scale);
  return {elementwise(p.inputs[0], [&](double x) {
    const double g = scale * softplus_of(-x);
    return storage.element(g, g, relative(a, x, 0, a.readout) * g,
                           absolute(a, (1 + scale) * (1 + std::fabs(x))), kRoundings);
  })};
}

SliceBounds GateLogsigmoid::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  const double scale = std::fabs(p.scale);
  SliceBounds y(1);
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const double x = p.inputs[0].values[i];
    y[0].push_back(gradient(a, storage, scale * sigmoid_of(-x), p.cotangents[0].values[i], x, 0, 1 + scale));
  }
  return y;
}

SliceBounds GateSoftplus::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  const double A = p.inputs[In::A].values[0], rate = std::exp(A);
  std::vector<ElementBound> gates;
  for (size_t i = 0; i < p.inputs[In::x].values.size(); ++i) {
    const std::vector<double>& bias = p.inputs[In::bias].values;
    const double z = p.inputs[In::x].values[i] + bias[i % bias.size()];
    const double g = rate * softplus_of(z), magnitudes = (1 + rate) * (1 + std::fabs(z));
    gates.push_back(storage.element(g, g, relative(a, z, A, a.readout) * g,
                                    unless_over(magnitudes, absolute(a, magnitudes)), kRoundings));
  }
  return {gates};
}

SliceBounds GateSoftplus::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"})), inside(0, Dtype::fp32);
  const double A = p.inputs[In::A].values[0], rate = std::exp(A),
               n = kRoundings + 2.0 * p.inputs[In::x].values.size();
  const double sums = a.value_readout + (1 + a.value_readout) * a.total;
  ElementBound of_A;
  std::vector<ElementBound> x, bias(p.inputs[In::bias].values.size());
  const auto add = [](ElementBound& sum, const ElementBound& term) {
    sum.companion += term.companion, sum.bound += term.bound, sum.underflow += term.underflow;
  };
  for (size_t i = 0; i < p.inputs[In::x].values.size(); ++i) {
    const size_t c = i % bias.size();
    const double z = p.inputs[In::x].values[i] + p.inputs[In::bias].values[c], d = p.cotangents[0].values[i];
    const double magnitudes = unless_over((1 + rate) * (1 + std::fabs(d)), (1 + rate) * (1 + std::fabs(z)));
    x.push_back(gradient(a, storage, rate * sigmoid_of(z), d, z, A, magnitudes));
    add(bias[c], gradient(a, inside, rate * sigmoid_of(z), d, z, A, magnitudes));
    add(of_A, gradient(a, inside, rate * softplus_of(z), d, z, A, magnitudes));
  }
  const auto total = [&](const ElementBound& e) {
    if (!(e.companion < kOverflow)) return ElementBound{e.companion, HUGE_VAL, e.underflow};
    const double relative_part = e.bound - e.underflow;
    return storage.element(e.companion, e.companion, relative_part + sums * (e.companion + relative_part),
                           e.underflow, n);
  };
  for (ElementBound& e : bias) e = total(e);
  return {x, {total(of_A)}, bias};
}

}  // namespace assay
