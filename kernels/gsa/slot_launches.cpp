#include "kernels/gsa/slot_launches.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/gated/launch_tables.h"
#include "kernels/gated/product_arithmetic.h"
#include "kernels/module_text.h"

namespace assay::gsa {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

bool is_null(const PointerArgument& pointer) {
  return pointer.buffer.empty();
}

}  // namespace

KernelLimits limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

Plan empty_plan(const std::string& kernel, const Case& c, const Operator& op) {
  const Sizes s = sizes_of(c);
  gated::require_within(limits(), c, s, kernel);
  const gated::Sequences sequences = gated::sequences_of(c, s, chunk_tokens);
  Plan plan;
  plan.kernel = kernel;
  plan.outputs = gated::plan_outputs(c, op);
  plan.constants = {sequences.table};
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  return plan;
}

SlotLaunches::SlotLaunches(Plan& plan, const Case& c, const Operator& op, const TensorMap& inputs,
                           std::string mode)
    : plan_(plan),
      case_(c),
      inputs_(inputs),
      mode_(std::move(mode)),
      s_(sizes_of(c)),
      scale_(static_cast<float>(scale_of(c, op))),
      chunks_(gated::sequences_of(c, s_, chunk_tokens).chunks) {}

SlotPass SlotLaunches::first_pass() {
  return {"hk",
          "k",
          "q",
          "dy",
          s_.K,
          scale_,
          transposed(input("hk0"), "hk0_transposed"),
          transposed(input("dhkt"), "dhkt_transposed")};
}

SlotPass SlotLaunches::second_pass() {
  return {"hv", "v", "do", "p", s_.V, 1.0f, input("hv0"), input("dhvt")};
}

PointerArgument SlotLaunches::input(const std::string& name) const {
  return gated::input_or_null(inputs_, name);
}

PointerArgument SlotLaunches::output(const std::string& name) const {
  return gated::output_or_null(plan_, name);
}

PointerArgument SlotLaunches::workspace(const std::string& name, int64_t bytes) {
  if (bytes == 0) return {};
  const auto same = [&](const Workspace& w) { return w.name == name; };
  if (std::none_of(plan_.workspaces.begin(), plan_.workspaces.end(), same))
    plan_.workspaces.push_back({name, bytes});
  return {name, 0};
}

const std::string& SlotLaunches::module(bool backward) {
  std::string& name = modules_[backward];
  if (!name.empty()) return name;
  plan_.modules.push_back(
      embedded_module(fmt::format("gsa/{}{}.{}.{}", mode_, backward ? "_backward" : "",
                                  format(case_.dtype).name, format(case_.gate_dtype).name)));
  return name = plan_.modules.back().name;
}

void SlotLaunches::add(bool backward, const std::string& function, int64_t blocks,
                       std::vector<Argument> arguments, uint32_t shared_bytes) {
  if (blocks == 0) return;
  Launch launch{.module = module(backward), .function = function};
  launch.grid = gated::grid_of(blocks, plan_.kernel);
  launch.block = {128, 1, 1};
  launch.shared_bytes = shared_bytes;
  launch.arguments = std::move(arguments);
  plan_.launches.push_back(std::move(launch));
}

PointerArgument SlotLaunches::transposed(const PointerArgument& from, const std::string& to) {
  if (is_null(from)) return {};
  const int64_t count = s_.N * s_.H * s_.K * s_.M;
  const PointerArgument result = workspace(to, 4 * count);
  add(false, "gsa_transpose", ceil_div(count, 128),
      {from, result, count, static_cast<int32_t>(s_.K), static_cast<int32_t>(s_.M)});
  return result;
}

void SlotLaunches::transpose_back(const PointerArgument& from, const PointerArgument& to) {
  if (is_null(to)) return;
  const int64_t count = s_.N * s_.H * s_.K * s_.M;
  add(false, "gsa_transpose", ceil_div(count, 128),
      {from, to, count, static_cast<int32_t>(s_.M), static_cast<int32_t>(s_.K)});
}

void SlotLaunches::softmax(const PointerArgument& y, const PointerArgument& p) {
  add(false, "gsa_softmax", ceil_div(rows(), 4), {y, p, rows(), static_cast<int32_t>(s_.M)});
}

void SlotLaunches::softmax_gradient(const PointerArgument& p, const PointerArgument& dp,
                                    const PointerArgument& dy) {
  add(true, "gsa_softmax_gradient", ceil_div(rows(), 4), {p, dp, dy, rows(), static_cast<int32_t>(s_.M)});
}

void SlotLaunches::add_gradients(const SlotPass& first, const SlotPass& second) {
  const int64_t count = rows() * s_.M;
  add(true, "gsa_add_slots", ceil_div(count, 128),
      {slots(first.name + "_ds"), slots(second.name + "_ds"), output("ds"), count});
  if (!is_null(output("dg")))
    add(true, "gsa_add_gates", ceil_div(count, 128),
        {slots(first.name + "_dg"), slots(second.name + "_dg"), output("dg"), count});
}

std::string refuses(const Case& c) {
  return c.without.contains("g") ? "takes no absent g; give g" : "";
}

/// Terms e^x (1 + d), |d| <= 2^-22 (ex2): numerator and, with at most 3 + 5 additions, sum; 1 / sum and the
/// product with it round once each. 1 / (1 - x) - 1 = x / (1 - x).
double softmax_error(double weight_roundoff) {
  using namespace gated;
  const double sum = compounded({ex2_error, gamma(8)});
  return compounded({ex2_error, sum / (1 - sum), gamma(2), weight_roundoff});
}

/// The difference to the largest y rounds once, its product with log2(e) once more; the constant is 0.23 u
/// off.
double softmax_error_per_nat() {
  return 2.24 * gated::u;
}

}  // namespace assay::gsa
