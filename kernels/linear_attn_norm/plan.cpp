// The plans of linear_attn_norm and the arithmetic they declare: linear attention of the same mode over
// copies in fp32, and the kernels of normalise.cu around it.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/product_arithmetic.h"
#include "kernels/inner_plan.h"
#include "kernels/launch_tables.h"
#include "kernels/linear_attn_norm/normalise_layout.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

using namespace gated;

using linear_attn_norm::chunk_tokens;

KernelLimits linear_attn_norm_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

/// The kernel that computes n, and S dn, G v and G^T k.
const Kernel& inner_kernel(const std::string& mode) {
  return find_kernel("linear_attn." + mode);
}
/// Its case: the sizes and sequences of the outer one, whose views have become rows.
ResolvedCase inner_case(const ResolvedCase& c, const Kernel& kernel, double scale, bool backward) {
  Case inner = c.case_;
  inner.kernel = kernel.name;
  inner.dtype = inner.gate_dtype = Dtype::fp32;
  inner.decay = "none";
  inner.layout.clear(), inner.overrides.clear();
  inner.scale = scale;
  inner.direction = backward ? Direction::backward : Direction::forward;
  if (!backward) inner.final_state_gradient = false;
  return resolve_unchecked(inner, find_operator(kernel.operator_name));
}
/// With the inputs that are there; plans ask for no values where nothing decays.
Program inner_plan(const ResolvedCase& inner, const Kernel& kernel, const TensorMap& inputs) {
  TensorMap names;
  for (const char* name : {"q", "k", "v", "do", "initial_state", "dfinal_state"})
    if (inputs.contains(name)) names[name];
  return kernel.plan(inner, names);
}

class NormPlan {
 public:
  NormPlan(const std::string& mode, const ResolvedCase& c, const TensorMap& inputs)
      : mode_(mode), case_(c), inputs_(inputs), sizes_(c.sizes), sequences_(sequences_of(c, chunk_tokens)) {
    scale_ = c.scale;
    rows_ = sizes_.B * sizes_.T * sizes_.H;
    plan_.name = "linear_attn_norm." + mode;
    plan_.outputs = plan_outputs(c);
    sequences_.table.name = "chunked_sequences", sequences_.chunk_table.name = "chunks_of_64";
    plan_.constants = {sequences_.table};
    if (sequences_.chunks > 0) plan_.constants.push_back(sequences_.chunk_table);
    plan_.modules = {kernel_module(fmt::format("linear_attn_norm/normalise.{}", format(c.dtype).name))};
  }

  Program made() {
    for (const char* name : {"q", "k", "v"}) widen(name, *name == 'v' ? sizes_.V : sizes_.K);
    numerator();
    normaliser();
    if (case_.forward()) quotient();
    if (case_.backward()) gradients();
    return std::move(plan_);
  }

 private:
  PointerArgument floats(const std::string& name, int64_t count) {
    return workspace_of(plan_, name, 4 * count);
  }
  PointerArgument input(const char* name) const { return input_or_null(inputs_, name); }
  PointerArgument output(const char* name) const { return output_or_null(plan_, name); }
  int32_t heads() const { return static_cast<int32_t>(sizes_.H); }
  int32_t keys() const { return static_cast<int32_t>(sizes_.K); }
  int32_t values() const { return static_cast<int32_t>(sizes_.V); }

  void launch(const std::string& function, int64_t blocks, std::vector<Argument> arguments) {
    if (blocks == 0) return;  // no tokens
    Launch launch{.module = plan_.modules[0].name, .function = "linear_attn_norm_" + function};
    launch.grid = grid_of(blocks, plan_.name);
    launch.block = {linear_attn_norm::threads, 1, 1};
    launch.arguments = std::move(arguments);
    plan_.launches.push_back(std::move(launch));
  }
  void by_chunk(const std::string& function, std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), {PointerArgument{"chunks_of_64", 0}, heads(), keys()});
    launch(function, sequences_.chunks * sizes_.H, std::move(arguments));
  }
  void by_sequence(const std::string& function, std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), {PointerArgument{"chunked_sequences", 0}, heads(), keys()});
    launch(function, sizes_.N * sizes_.H, std::move(arguments));
  }
  void by_element(const std::string& function, int64_t count, std::vector<Argument> arguments) {
    launch(function, device::blocks_of(count, linear_attn_norm::elements_per_block), std::move(arguments));
  }

  /// The input in fp32, under the name that wide() gives.
  void widen(const std::string& name, int64_t channels) {
    if (case_.dtype == Dtype::fp32) return;
    const int64_t count = rows_ * channels;
    const PointerArgument to = floats(wide(name), count);
    by_element("widen", count, {PointerArgument{name, 0}, to, count});
  }
  std::string wide(const std::string& name) const {
    return case_.dtype == Dtype::fp32 ? name : there(name + "_fp32");
  }
  /// The workspace of that name; without tokens there is none, and a null pointer stands for it.
  std::string there(const std::string& name) const { return rows_ > 0 ? name : ""; }
  /// A gradient of the inner kernel on its way to the output of that name.
  std::string plain(const std::string& name) const { return there("plain_" + name); }

  /// n_t = scale S_t^T q_t.
  void numerator() {
    const Kernel& kernel = inner_kernel(mode_);
    const Program inner = inner_plan(inner_case(case_, kernel, scale_, false), kernel, inputs_);
    add_inner_plan(plan_, inner, {{"q", wide("q")}, {"k", wide("k")}, {"v", wide("v")}, {"o", there("n")}},
                   "numerator_");
  }
  /// z before each chunk, and d.
  void normaliser() {
    const PointerArgument sums = floats("key_sums", sequences_.chunks * sizes_.H * sizes_.K),
                          d = floats("d", rows_);
    by_chunk("key_sums", {input("k"), sums});
    by_sequence("key_starts", {sums, input("z0"), output("zt")});
    if (sequences_.chunks == 0) return;
    launch("normalisers", sequences_.chunks * sizes_.H,
           {input("q"), input("k"), sums, d, PointerArgument{"chunks_of_64", 0}, Argument::rounded(scale_),
            heads(), keys()});
  }
  void quotient() {
    const int64_t count = rows_ * sizes_.V;
    by_element("divide", count, {floats("n", count), floats("d", rows_), output("o"), count, values()});
  }
  void gradients() {
    const int64_t of_values = rows_ * sizes_.V, of_keys = rows_ * sizes_.K;
    const PointerArgument n = floats("n", of_values), d = floats("d", rows_), dn = floats("dn", of_values),
                          dd = floats("dd", rows_);
    launch("cotangents", device::blocks_of(rows_, linear_attn_norm::rows_per_block),
           {input("do"), n, d, dn, dd, rows_, Argument::rounded(scale_), values()});
    const Kernel& kernel = inner_kernel(mode_);
    const Program inner = inner_plan(inner_case(case_, kernel, 1, true), kernel, inputs_);
    add_inner_plan(plan_, inner,
                   {{"q", wide("q")},
                    {"k", wide("k")},
                    {"v", wide("v")},
                    {"do", there("dn")},
                    {"dq", plain("dq")},
                    {"dk", plain("dk")},
                    {"dv", plain("dv")}},
                   "gradients_");
    const PointerArgument key_sums = floats("key_sums", sequences_.chunks * sizes_.H * sizes_.K),
                          query_sums = floats("query_sums", sequences_.chunks * sizes_.H * sizes_.K);
    by_chunk("query_sums", {input("q"), dd, query_sums});
    by_sequence("query_starts", {query_sums, input("dzt"), output("dz0")});
    by_chunk("query_gradients", {input("k"), key_sums, dd, floats(plain("dq"), of_keys), output("dq")});
    by_chunk("key_gradients", {input("q"), query_sums, dd, floats(plain("dk"), of_keys), output("dk")});
    by_element("narrow", of_values, {floats(plain("dv"), of_values), output("dv"), of_values});
  }

  const std::string mode_;
  const ResolvedCase& case_;
  const TensorMap& inputs_;
  const Sizes sizes_;
  Sequences sequences_;
  double scale_;
  int64_t rows_;
  Program plan_;
};

/// The inner kernel stores its results in fp32, which they are already. z: its sum inside a chunk rounds at
/// every token, which a recurrent kernel's `step` covers and a chunked one's `write` has to; then once when
/// the chunk is added (boundary), or at the token itself. d: a product, up to 7 additions of a lane and 5
/// over the lanes, the scale's own rounding and fma(sum, scale, eps).
Arithmetic with_normaliser(Arithmetic a, const ResolvedCase& c) {
  const bool chunked = a.chunk > 0;
  const double inside = chunked ? static_cast<double>(chunk_tokens) : 0;
  if (chunked) a.write = std::max(a.write, gamma(inside)), a.boundary = std::max(a.boundary, gamma(1));
  a.readout = std::max(a.readout, gamma(inside + 1 + 1 + 7 + 5 + 2));
  a.divide = gamma(1);
  a.stored = chunk_tokens;  // z; inside a chunk its sum is not z yet
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

Arithmetic linear_attn_norm_arithmetic(const std::string& mode, const ResolvedCase& c) {
  const Kernel& kernel = inner_kernel(mode);
  return with_normaliser(kernel.arithmetic(inner_case(c, kernel, 1, false)), c);
}

/// n and d as in the forward pass, dq's two parts with one addition: `state.readout` covers both. dk likewise
/// with `adjoint.readout`. dn = do / d times the scale, itself rounded: three roundings. dd: two more
/// products, after a sum of do o over value channels, up to 8 fused additions of a lane and 5 over the lanes.
AdjointArithmetic linear_attn_norm_adjoint_arithmetic(const std::string& mode, const ResolvedCase& c) {
  const Arithmetic forward = linear_attn_norm_arithmetic(mode, c);
  const Kernel& kernel = inner_kernel(mode);
  AdjointArithmetic a = kernel.adjoint_arithmetic(inner_case(c, kernel, 1, true));
  const double inside = a.state.chunk > 0 ? static_cast<double>(chunk_tokens) : 0;
  const double rest = gamma(inside + 2);
  for (Arithmetic* side : {&a.state, &a.adjoint}) {
    side->readout = compounded({std::max(side->readout, rest), gamma(1)});
    *side = with_normaliser(*side, c);
    side->write = std::max(side->write, forward.write);
    side->boundary = std::max(side->boundary, forward.boundary);
    side->step = std::max(side->step, forward.step);
  }
  a.state.readout = std::max(a.state.readout, forward.readout);
  a.inner = gamma(8 + 5);
  return a;
}

Kernel norm_kernel(const std::string& mode, const char* summary, const char* arithmetic_text) {
  Kernel kernel;
  kernel.name = "linear_attn_norm." + mode;
  kernel.operator_name = "linear_attn_norm";
  kernel.summary = summary;
  kernel.arithmetic_text = arithmetic_text;
  kernel.limits = linear_attn_norm_limits();
  kernel.resume_granularity = chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = [mode, name = kernel.name](const ResolvedCase& c, const TensorMap& inputs) {
    require_within(linear_attn_norm_limits(), c, name);
    return NormPlan(mode, c, inputs).made();
  };
  kernel.arithmetic = [mode](const ResolvedCase& c) { return linear_attn_norm_arithmetic(mode, c); };
  kernel.adjoint_arithmetic = [mode](const ResolvedCase& c) {
    return linear_attn_norm_adjoint_arithmetic(mode, c);
  };
  return kernel;
}

}  // namespace

Kernel linear_attn_norm_fused_recurrent() {
  return norm_kernel("fused_recurrent",
                     "one token after the other, the state in registers; the normaliser by chunks",
                     "fp32 throughout; z in fp32 by chunks of 64 tokens");
}
Kernel linear_attn_norm_chunk() {
  return norm_kernel(
      "chunk", "chunks of 64 tokens on tensor cores over copies in fp32; the normaliser beside them",
      "3xTF32 operands (high + low, three products), fp32 accumulators and state; z in fp32 by chunks "
      "of 64 tokens");
}

}  // namespace assay
