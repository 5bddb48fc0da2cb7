// The bounds of the elementwise gates. A kernel makes sigmoid and softplus of an argument z with the relative
// error `readout`; what an error d of the argument, or of the exponent of e^{+-z}, does to them is at most
// e^{|d|}, as |d log f / dz| <= 1 for both. `write` is the relative error of z = x + bias, `decay_per_nat`
// that of the exponent per unit of |z| (and of |A|). Every factor is at most 1 + its inputs' magnitudes, so
// that underflow costs at most kUnderflowEvents times their product. Gradients: the adjoint's readout; sums
// over tokens and sequences (1 + value_readout) (1 + total). Where e^A, its products or a sum of their sizes
// may overflow, gate_softplus has no finite bound.
#include "reference/models/stored.h"
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
double relative(const GatedArithmetic& a, double z, double A, double readout) {
  const double exponent =
      a.write * std::fabs(z) + a.decay_per_nat * (std::fabs(z) * (1 + a.write) + std::fabs(A));
  return (readout + (1 + readout) * std::expm1(exponent)) * (1 + 0x1p-40);
}

double absolute(const GatedArithmetic& a, double magnitudes) {
  return kUnderflowEvents * underflow_of(a, claims_exact(a)) * magnitudes;
}

template <typename Value>
std::vector<ModelledElement> elementwise(const SliceMatrix& x, const Value& value) {
  std::vector<ModelledElement> y;
  for (double z : x.values) y.push_back(value(z));
  return y;
}

/// dx of a gate: `slope` = |dg/dx|.
ModelledElement gradient(const GatedAdjointArithmetic& a, const Storage& storage, double slope, double d,
                         double z, double A, double magnitudes) {
  const double value = slope * std::fabs(d), rel = relative(a.adjoint, z, A, a.adjoint.readout);
  return storage.element(value, value, rel * value, absolute(a.adjoint, magnitudes * (1 + std::fabs(d))),
                         kRoundings);
}

}  // namespace

ModelledValues Rwkv7LogDecay::forward_bound(const SliceProblem& p) {
  const GatedArithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  return {{elementwise(p.inputs[0],
                       [&](double x) {
                         const double w = std::exp(-0.5) * sigmoid_of(x);
                         return storage.element(w, w, relative(a, x, 0, a.readout) * w, absolute(a, 1),
                                                kRoundings);
                       })},
          true};
}

ModelledValues Rwkv7LogDecay::adjoint_bound(const SliceProblem& p) {
  const GatedAdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  ModelledValues y{{{}}, true};
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const double x = p.inputs[0].values[i], slope = std::exp(-0.5) * sigmoid_of(x) * sigmoid_of(-x);
    // Two functions of x: each moves with its own exponent.
    GatedAdjointArithmetic twice = a;
    twice.adjoint.decay_per_nat *= 2, twice.adjoint.write *= 2;
    y.values[0].push_back(gradient(twice, storage, slope, p.cotangents[0].values[i], x, 0, 1));
  }
  return y;
}

ModelledValues GateLogsigmoid::forward_bound(const SliceProblem& p) {
  const GatedArithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  const double scale = std::fabs(p.scale);
  return {{elementwise(p.inputs[0],
                       [&](double x) {
                         const double g = scale * softplus_of(-x);
                         return storage.element(g, g, relative(a, x, 0, a.readout) * g,
                                                absolute(a, (1 + scale) * (1 + std::fabs(x))), kRoundings);
                       })},
          true};
}

ModelledValues GateLogsigmoid::adjoint_bound(const SliceProblem& p) {
  const GatedAdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  const double scale = std::fabs(p.scale);
  ModelledValues y{{{}}, true};
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const double x = p.inputs[0].values[i];
    y.values[0].push_back(
        gradient(a, storage, scale * sigmoid_of(-x), p.cotangents[0].values[i], x, 0, 1 + scale));
  }
  return y;
}

ModelledValues GateSoftplus::forward_bound(const SliceProblem& p) {
  const GatedArithmetic& a = p.problem->arithmetic;
  const Storage storage(a.output_roundoff, format_of(a.output_roundoff));
  const double A = p.inputs[1].values[0], rate = std::exp(A);
  ModelledValues y{{{}}, true};
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const double z = p.inputs[0].values[i] + p.inputs[2].values[i % p.inputs[2].values.size()];
    const double g = rate * softplus_of(z), magnitudes = (1 + rate) * (1 + std::fabs(z));
    const bool fits = magnitudes < kModelOverflow;
    y.values[0].push_back(storage.element(g, g, relative(a, z, A, a.readout) * g,
                                          fits ? absolute(a, magnitudes) : HUGE_VAL, kRoundings));
  }
  return y;
}

ModelledValues GateSoftplus::adjoint_bound(const SliceProblem& p) {
  const GatedAdjointArithmetic& a = p.problem->adjoint;
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"})), inside(0, Dtype::fp32);
  const double A = p.inputs[1].values[0], rate = std::exp(A),
               n = kRoundings + 2.0 * p.inputs[0].values.size();
  const double sums = a.value_readout + (1 + a.value_readout) * a.total;
  ModelledElement of_A;
  std::vector<ModelledElement> x, bias(p.inputs[2].values.size());
  const auto add = [](ModelledElement& sum, const ModelledElement& term) {
    sum.companion += term.companion, sum.bound += term.bound, sum.underflow += term.underflow;
  };
  for (size_t i = 0; i < p.inputs[0].values.size(); ++i) {
    const size_t c = i % bias.size();
    const double z = p.inputs[0].values[i] + p.inputs[2].values[c], d = p.cotangents[0].values[i];
    const bool fits = (1 + rate) * (1 + std::fabs(d)) < kModelOverflow;
    const double magnitudes = fits ? (1 + rate) * (1 + std::fabs(z)) : HUGE_VAL;
    x.push_back(gradient(a, storage, rate * sigmoid_of(z), d, z, A, magnitudes));
    add(bias[c], gradient(a, inside, rate * sigmoid_of(z), d, z, A, magnitudes));
    add(of_A, gradient(a, inside, rate * softplus_of(z), d, z, A, magnitudes));
  }
  const auto total = [&](const ModelledElement& e) {
    if (!(e.companion < kModelOverflow)) return ModelledElement{e.companion, HUGE_VAL, e.underflow};
    const double relative_part = e.bound - e.underflow;
    return storage.element(e.companion, e.companion, relative_part + sums * (e.companion + relative_part),
                           e.underflow, n);
  };
  for (ModelledElement& e : bias) e = total(e);
  return {{x, {total(of_A)}, bias}, true};
}

}  // namespace assay
