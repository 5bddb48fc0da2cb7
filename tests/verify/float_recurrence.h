// A kernel whose "plan" is run by a plain fp32 recurrence: the pipeline can be tested without PTX.
#pragma once
#include <cmath>
#include <functional>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay {

inline Kernel float_kernel() {
  Kernel kernel;
  kernel.name = "gla.float";
  kernel.operator_name = "gla";
  kernel.arithmetic_text = "fp32 recurrence";
  kernel.limits.dtypes = {Dtype::fp32};
  kernel.limits.gate_dtypes = {Dtype::fp32, Dtype::bf16};
  kernel.limits.max_K = 32;
  kernel.limits.max_V = 16;
  kernel.exponents_nonpositive = true;
  kernel.plan = [](const ResolvedCase& c, const TensorMap&) {
    Program plan;
    plan.name = "gla.float";
    for (const SizedArgument& output : c.outputs)
      plan.outputs.push_back({output.shape.name, output.shape.dtype, output.shape.axes});
    plan.launches.push_back({"", "recurrence", {1, 1, 1}, {1, 1, 1}, 0, {c.scale}});
    return plan;
  };
  kernel.arithmetic = [](const ResolvedCase& c) {
    // u = 2^-24. e^g: expf of this host errs by at most 2 ulp = 2^-22. S = fma(e^g, S, k v): one rounding of
    // the sum and of the product. Readout: K products and sums, and the scale.
    Arithmetic a;
    a.decay = 0x1p-21;
    a.write = 0x1p-23;
    a.step = 0x1p-22;
    a.readout = static_cast<double>(c.sizes.K + 3) * 0x1p-23;
    a.underflow = 0x1p-126;
    a.output_roundoff = 0x1p-24;
    return a;
  };
  return kernel;
}

/// Runs the recurrence, then lets a test change what came of it.
class FloatBackend : public Backend {
 public:
  /// (outcome, number of the run, from 1)
  std::function<void(Outcome&, int)> tamper;
  int runs = 0;
  double scale_seen = 0;
  bool skip_last_token = false;  ///< the write of the last token is dropped

  std::string name() const override { return "fp32 recurrence"; }
  Outcome run(const Program& plan, const TensorMap& inputs) override {
    Outcome outcome;
    scale_seen = *real_of(plan.launches.at(0).arguments.at(0));
    for (const ProgramOutput& o : plan.outputs)
      outcome.outputs.emplace(o.name, Tensor(o.name, o.dtype, o.axes));
    recur(inputs, outcome.outputs.at("o"), outcome.outputs.at("final_state"));
    ++runs;
    if (tamper) tamper(outcome, runs);
    return outcome;
  }

 private:
  void recur(const TensorMap& in, Tensor& o, Tensor& final_state) const {
    const Tensor &q = in.at("q"), &k = in.at("k"), &v = in.at("v");
    const Tensor* g = in.contains("g") ? &in.at("g") : nullptr;
    const Tensor* s0 = in.contains("initial_state") ? &in.at("initial_state") : nullptr;
    const int64_t B = q.axes[0].size, T = q.axes[1].size, H = q.axes[2].size, K = q.axes[3].size,
                  V = v.axes[3].size;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t h = 0; h < H; ++h) {
        std::vector<float> state(K * V);
        const int64_t at = (b * H + h) * K * V;
        for (int64_t i = 0; s0 && i < K * V; ++i) state[i] = static_cast<float>(s0->value(at + i));
        for (int64_t t = 0; t < T; ++t) {
          const int64_t row = (b * T + t) * H + h;
          for (int64_t x = 0; x < V; ++x) {
            float sum = 0;
            for (int64_t c = 0; c < K; ++c) {
              const float decay = g ? std::exp(static_cast<float>(g->value(row * K + c))) : 1.0f;
              float kv = static_cast<float>(k.value(row * K + c)) * static_cast<float>(v.value(row * V + x));
              if (skip_last_token && t + 1 == T) kv = 0;
              float& s = state[c * V + x];
              s = decay * s + kv;
              sum += static_cast<float>(q.value(row * K + c)) * s;
            }
            o.set(row * V + x, static_cast<float>(scale_seen) * sum);
          }
        }
        for (int64_t i = 0; i < K * V; ++i) final_state.set(at + i, state[i]);
      }
    }
  }
};

inline Case float_case() {
  Case c;
  c.kernel = "gla.float";
  c.B = 2, c.T = 20, c.H = 2, c.K = 9, c.V = 5;
  c.dtype = Dtype::fp32;
  c.initial_state = true;
  return c;
}

}  // namespace assay
