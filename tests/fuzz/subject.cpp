#include "tests/fuzz/subject.h"

#include <algorithm>
#include <cmath>

namespace assay::test {
namespace {

/// The inputs decoded once.
struct Values {
  std::vector<float> q, k, v, decay, initial_state;  ///< decay and states empty where absent
  std::vector<float> d_o, dfinal_state;
};

std::vector<float> decoded(const TensorMap& inputs, const char* name) {
  std::vector<float> values;
  const auto found = inputs.find(name);
  if (found == inputs.end()) return values;
  values.resize(static_cast<size_t>(found->second.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(found->second.value(static_cast<int64_t>(i)));
  return values;
}

Values decoded(const TensorMap& inputs) {
  Values x{decoded(inputs, "q"),
           decoded(inputs, "k"),
           decoded(inputs, "v"),
           decoded(inputs, "g"),
           decoded(inputs, "initial_state"),
           decoded(inputs, "do"),
           decoded(inputs, "dfinal_state")};
  for (float& g : x.decay) g = static_cast<float>(std::exp(static_cast<double>(g)));
  return x;
}

/// The sizes and switches of one run, read back from the plan.
struct Shape {
  int64_t B, T, H, K, V, N;
  float scale;
  std::vector<int64_t> offsets;  ///< into the B*T tokens of the whole batch
};

Shape shape_of(const Program& plan, const TensorMap& inputs) {
  const Tensor& q = inputs.at("q");
  const Tensor& v = inputs.at("v");
  Shape s{q.axes[0].size, q.axes[1].size, q.axes[2].size, q.axes[3].size, v.axes[3].size, 0, 0, {}};
  s.scale = static_cast<float>(*real_of(plan.launches.back().arguments.at(0)));
  const Tensor& offsets = plan.constants.at(0);
  for (int64_t i = 0; i < offsets.size(); ++i) s.offsets.push_back(static_cast<int64_t>(offsets.value(i)));
  s.N = offsets.size() - 1;
  return s;
}

/// One ulp more: inside every bound, but other bits.
void nudge(Tensor& tensor, int64_t at) {
  if (at < tensor.size()) tensor.set_bits(at, tensor.bits(at) ^ 1);
}

/// Faults that leave every value within its bound.
void nudge_bits(const std::string& fault, const Shape& s, const TensorMap& in, int64_t run, TensorMap& out) {
  if (out.contains("dq")) {
    if (fault == "gradient of the past sees the future" && in.at("v").value(in.at("v").size() - 1) > 0)
      nudge(out.at("dq"), 0);
    if (fault == "absent cotangent differs" && in.count("dfinal_state") == 0) nudge(out.at("dq"), 0);
    if (fault == "gradients out of nothing") out.at("dk").set(out.at("dk").size() - 1, 0x1p-120);
    if (fault == "length matters to gradients" && s.T > 40) nudge(out.at("dv"), 0);
  }
  if (!out.contains("o")) return;
  if (fault == "a neighbour's NaN shows" && in.at("v").size() > 0 &&
      std::isnan(in.at("v").value(in.at("v").size() - 1)))
    nudge(out.at("o"), 0);
  Tensor &o = out.at("o"), &state = out.at("final_state");
  if (fault == "other bits each run" && run % 2 == 1) nudge(o, 0);
  if (fault == "sees the future" && in.at("v").size() > 0 && in.at("v").value(in.at("v").size() - 1) > 0)
    nudge(o, 0);
  if (fault == "length matters" && s.T > 40) nudge(state, 0);
  if (fault == "packing matters" && s.N > s.B) nudge(state, state.size() - 1);
  if (fault == "absent gate differs" && in.count("g") == 0) nudge(o, 0);
  if (fault == "absent state differs" && in.count("initial_state") == 0) nudge(o, 0);
  if (fault == "first head differs" && s.T > 0) nudge(o, 0);
  if (fault == "scale matters" && s.scale > 0.5F) nudge(o, 0);
}

/// Token 17 of a sequence loses a term, or its decay comes one step late, or its key is off by 2^-6.
struct Planted {
  float key = 1, decay_of_next = 0, nan = 0;
};
Planted planted(const std::string& fault, int64_t t, int64_t length) {
  Planted p;
  if (t == 17 && fault == "term dropped") p.key = 0;
  if (t == 17 && fault == "key scaled") p.key = 1 + 0x1p-6F;
  if (t == 17 && fault == "decay one step late") p.decay_of_next = 1;
  if (fault == "overflow in a partial chunk" && length % 64 != 0 && t == length - 1) p.nan = 1;
  return p;
}

void run_head(const Shape& s, const std::string& fault, int64_t n, int64_t h, const Values& in,
              TensorMap& out) {
  const int64_t size = s.K * s.V, state_at = (n * s.H + h) * size;
  std::vector<float> S(static_cast<size_t>(size), 0.0F), o(static_cast<size_t>(s.V));
  if (!in.initial_state.empty()) std::copy_n(in.initial_state.begin() + state_at, size, S.begin());
  const int64_t begin = s.offsets[n], length = s.offsets[n + 1] - begin;
  const bool head_lost = fault == "heads above 16 lost" && h >= 16;
  const int64_t keys = head_lost ? 0 : fault == "channels above 192 lost" ? 192 : s.K;
  for (int64_t t = 0; t < length; ++t) {
    const int64_t row = (begin + t) * s.H + h;
    const Planted p = planted(fault, t, length);
    const int64_t gate_row = p.decay_of_next != 0 && t > 0 ? row - s.H : row;
    float least = 1;
    std::fill(o.begin(), o.end(), 0.0F);
    for (int64_t k = 0; k < s.K; ++k) {
      const float decay = in.decay.empty() ? 1.0F : in.decay[gate_row * s.K + k];
      const float key = k < keys ? in.k[row * s.K + k] * p.key : 0, q = in.q[row * s.K + k];
      least = std::min(least, decay);
      for (int64_t v = 0; v < s.V; ++v) {
        float& element = S[k * s.V + v];
        element = decay * element + key * in.v[row * s.V + v];
        o[v] += q * element;
      }
    }
    for (int64_t v = 0; v < s.V; ++v)
      out.at("o").set(row * s.V + v, p.nan != 0 && least < 0x1p-80F ? std::nanf("") : o[v] * s.scale);
  }
  for (int64_t i = 0; i < size; ++i) out.at("final_state").set(state_at + i, S[i]);
}

/// G = dL/dS, last token first: decayed by itself after the readout, so that runs resume with the same bits.
void run_head_backward(const Shape& s, int64_t n, int64_t h, const Values& in, TensorMap& out) {
  const int64_t size = s.K * s.V, state_at = (n * s.H + h) * size;
  const int64_t begin = s.offsets[n], length = s.offsets[n + 1] - begin;
  std::vector<std::vector<float>> S(static_cast<size_t>(length + 1),
                                    std::vector<float>(static_cast<size_t>(size)));
  const auto decay = [&](int64_t at) { return in.decay.empty() ? 1.0F : in.decay[at]; };
  if (!in.initial_state.empty()) std::copy_n(in.initial_state.begin() + state_at, size, S[0].begin());
  for (int64_t t = 0; t < length; ++t) {
    const int64_t row = (begin + t) * s.H + h;
    for (int64_t i = 0; i < size; ++i)
      S[t + 1][i] =
          decay(row * s.K + i / s.V) * S[t][i] + in.k[row * s.K + i / s.V] * in.v[row * s.V + i % s.V];
  }
  std::vector<float> G(static_cast<size_t>(size), 0.0F), dv(static_cast<size_t>(s.V));
  if (!in.dfinal_state.empty()) std::copy_n(in.dfinal_state.begin() + state_at, size, G.begin());
  for (int64_t t = length - 1; t >= 0; --t) {
    const int64_t row = (begin + t) * s.H + h;
    std::fill(dv.begin(), dv.end(), 0.0F);
    for (int64_t k = 0; k < s.K; ++k) {
      float dq = 0, dk = 0, dg = 0;
      for (int64_t v = 0; v < s.V; ++v) {
        float& g = G[k * s.V + v];
        const float d_o = in.d_o[row * s.V + v];
        g += s.scale * in.q[row * s.K + k] * d_o;
        dq += S[t + 1][k * s.V + v] * d_o;
        dk += g * in.v[row * s.V + v];
        dv[v] += g * in.k[row * s.K + k];
        dg += S[t][k * s.V + v] * g;
        g *= decay(row * s.K + k);
      }
      out.at("dq").set(row * s.K + k, dq * s.scale);
      out.at("dk").set(row * s.K + k, dk);
      if (out.contains("dg")) out.at("dg").set(row * s.K + k, decay(row * s.K + k) * dg);
    }
    for (int64_t v = 0; v < s.V; ++v) out.at("dv").set(row * s.V + v, dv[v]);
  }
  if (!out.contains("dinitial_state")) return;
  for (int64_t i = 0; i < size; ++i) out.at("dinitial_state").set(state_at + i, G[i]);
}

Program plan_of(const ResolvedCase& c, const TensorMap&) {
  const Sizes& sizes = c.sizes;
  const std::vector<int64_t>& packed = c.case_.cu_seqlens;
  Program plan;
  plan.name = c.case_.kernel;
  for (const SizedArgument& output : c.outputs)
    plan.outputs.push_back({output.shape.name, output.shape.dtype, output.shape.axes});
  Tensor offsets("offsets", Dtype::i64, {{"N", sizes.N + 1}});
  for (int64_t n = 0; n <= sizes.N; ++n)
    offsets.set(n, static_cast<double>(packed.empty() ? n * sizes.T : packed[static_cast<size_t>(n)]));
  plan.constants.push_back(offsets);
  Launch launch;
  launch.arguments.push_back(static_cast<float>(c.scale));
  plan.launches.push_back(launch);
  return plan;
}

/// fp32 recurrence: exp within 1 ulp after rounding to fp32, one rounding per product and sum, K-term
/// readout.
Arithmetic arithmetic_of(const ResolvedCase& c) {
  const double u = 0x1p-24;
  Arithmetic a;
  a.decay = 4 * u;
  a.write = 4 * u;
  a.step = 4 * u;
  a.readout = 1.1 * static_cast<double>(c.sizes.K + 4) * u;
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

AdjointArithmetic adjoint_arithmetic_of(const ResolvedCase& c) {
  const double u = 0x1p-24;
  AdjointArithmetic a;
  a.state = a.adjoint = arithmetic_of(c);
  a.state.readout = a.adjoint.readout = 1.1 * static_cast<double>(c.sizes.V + 4) * u;
  a.value_readout = 1.1 * static_cast<double>(c.sizes.K + 4) * u;
  a.gate_readout = 1.1 * static_cast<double>(c.sizes.V + 4) * u;
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}

}  // namespace

Operator gla_arguments() {
  Operator op;
  op.name = "gla";
  op.inputs = {{"q", {"B", "T", "H", "K"}, Role::value},
               {"k", {"B", "T", "H", "K"}, Role::value},
               {"v", {"B", "T", "H", "V"}, Role::value},
               {"g", {"B", "T", "H", "K"}, Role::log_decay, true},
               {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  op.outputs = {{"o", {"B", "T", "H", "V"}, Role::output},
                {"final_state", {"N", "H", "K", "V"}, Role::state}};
  op.default_scale = [](const Sizes& s) { return 1 / std::sqrt(static_cast<double>(s.K)); };
  return op;
}

Outcome SubjectBackend::run(const Program& plan, const TensorMap& inputs) {
  const int64_t run = runs_++;
  const Shape s = shape_of(plan, inputs);
  Outcome outcome;
  for (const ProgramOutput& output : plan.outputs)
    outcome.outputs.emplace(output.name, Tensor(output.name, output.dtype, output.axes));
  const Values values = decoded(inputs);
  for (int64_t n = 0; n < s.N; ++n)
    for (int64_t h = 0; h < s.H; ++h) {
      if (outcome.outputs.contains("o")) run_head(s, fault_, n, h, values, outcome.outputs);
      if (outcome.outputs.contains("dq")) run_head_backward(s, n, h, values, outcome.outputs);
    }
  nudge_bits(fault_, s, inputs, run, outcome.outputs);
  if (fault_ == "views differ" && !plan.layouts.empty()) nudge(outcome.outputs.at("o"), 0);
  if (fault_ == "leftovers show" && plan.poison != 0xff && outcome.outputs.contains("o"))
    nudge(outcome.outputs.at("o"), 0);
  const auto state = inputs.find("initial_state");
  if (fault_ == "state updated in place" && state != inputs.end()) {
    outcome.changed_inputs.emplace(state->first, state->second);
    nudge(outcome.changed_inputs.at(state->first), 1);
  }
  return outcome;
}

Kernel subject_kernel() {
  Kernel kernel;
  kernel.name = "gla.subject";
  kernel.operator_name = "gla";
  kernel.limits.dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  kernel.limits.gate_dtypes = {Dtype::fp32, Dtype::bf16, Dtype::fp16};
  kernel.plan = plan_of;
  kernel.arithmetic = arithmetic_of;
  kernel.adjoint_arithmetic = adjoint_arithmetic_of;
  return kernel;
}

}  // namespace assay::test
