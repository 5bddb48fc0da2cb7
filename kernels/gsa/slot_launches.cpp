#include "kernels/gsa/slot_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/device/product_arithmetic.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay::gsa {

using device::blocks_of;

namespace {

bool is_null(const PointerArgument& pointer) {
  return pointer.buffer.empty();
}

}  // namespace

KernelLimits limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  limits.max_M = most_slots;
  return limits;
}

Program empty_plan(const std::string& kernel, const ResolvedCase& c) {
  gated::require_within(limits(), c, kernel);
  const gated::Sequences sequences = gated::sequences_of(c, chunk_tokens);
  Program plan;
  plan.name = kernel;
  plan.outputs = gated::plan_outputs(c);
  plan.constants = {sequences.table};
  if (sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  return plan;
}

SlotLaunches::SlotLaunches(Program& plan, const ResolvedCase& c, const TensorMap& inputs, std::string mode)
    : plan_(plan),
      inputs_(inputs),
      own_(!c.has("g")),
      dtype_(c.dtype),
      case_(of_passes(c)),
      mode_(std::move(mode)),
      s_(c.sizes),
      scale_(Argument::rounded(c.scale)),
      chunks_(gated::sequences_of(c, chunk_tokens).chunks) {
  if (!own_ || rows() == 0) return;
  const int64_t count = s_.N * s_.H * s_.M;
  add_own("gsa_own_decays", count,
          {PointerArgument{"s", 0}, slots("own_w"), slots("own_g"), PointerArgument{"sequences", 0}, count,
           static_cast<int32_t>(s_.H), static_cast<int32_t>(s_.M)});
}

SlotPass SlotLaunches::first_pass(bool turned) {
  const PointerArgument initial = input("hk0"), dfinal = input("dhkt");
  return {"hk",
          "k",
          "q",
          "dy",
          s_.K,
          scale_,
          turned ? initial : transposed(initial, "hk0_transposed"),
          turned ? dfinal : transposed(dfinal, "dhkt_transposed"),
          turned};
}

SlotPass SlotLaunches::second_pass() {
  return {"hv", "v", "do", "p", s_.V, 1.0f, input("hv0"), input("dhvt")};
}

bool SlotLaunches::is_copied(const std::string& name) const {
  static const std::set<std::string> of_passes = {"q", "k", "v", "do", "o", "dq", "dk", "dv"};
  return own_ && dtype_ != Dtype::fp32 && of_passes.contains(name);
}

int64_t SlotLaunches::elements(const std::string& name) const {
  const bool keys = name == "q" || name == "k" || name == "dq" || name == "dk";
  return rows() * (keys ? s_.K : s_.V);
}

PointerArgument SlotLaunches::input(const std::string& name) {
  if (own_ && name == "s") return slots("own_w");
  if (own_ && name == "g") return slots("own_g");
  if (!is_copied(name)) return gated::input_or_null(inputs_, name);
  const int64_t count = elements(name);
  const size_t before = plan_.workspaces.size();
  const PointerArgument copy = workspace(name + "_fp32", 4 * count);
  if (plan_.workspaces.size() > before) add_own("gsa_widen", count, {PointerArgument{name, 0}, copy, count});
  return copy;
}

PointerArgument SlotLaunches::output(const std::string& name) {
  if (!is_copied(name)) return gated::output_or_null(plan_, name);
  const size_t before = plan_.workspaces.size();
  const PointerArgument copy = workspace(name + "_fp32", 4 * elements(name));
  if (plan_.workspaces.size() > before) narrowed_.push_back(name);
  return copy;
}

void SlotLaunches::finish() {
  for (const std::string& name : narrowed_)
    add_own("gsa_narrow", elements(name),
            {PointerArgument{name + "_fp32", 0}, PointerArgument{name, 0}, elements(name)});
}

void SlotLaunches::launch(const std::string& module_name, const std::string& function, int64_t blocks,
                          std::vector<Argument> arguments, uint32_t shared_bytes, uint32_t times,
                          uint32_t block_threads) {
  if (blocks == 0) return;
  Launch launch{.module = gated::module_of(plan_, module_name), .function = function};
  launch.grid = gated::grid_of(blocks, plan_.name);
  launch.grid[1] = times;
  launch.block = {block_threads, 1, 1};
  launch.shared_bytes = shared_bytes;
  launch.arguments = std::move(arguments);
  plan_.launches.push_back(std::move(launch));
}

void SlotLaunches::add(bool backward, const std::string& function, int64_t blocks,
                       std::vector<Argument> arguments, uint32_t shared_bytes, uint32_t times,
                       uint32_t block_threads) {
  launch(fmt::format("gsa/{}{}.{}.{}", mode_, backward ? "_backward" : "", format(case_.dtype).name,
                     format(case_.gate_dtype).name),
         function, blocks, std::move(arguments), shared_bytes, times, block_threads);
}

void SlotLaunches::add_own(const std::string& function, int64_t count, std::vector<Argument> arguments) {
  launch(fmt::format("gsa/own_decays.{}", format(dtype_).name), function, blocks_of(count, threads),
         std::move(arguments), 0);
}

PointerArgument SlotLaunches::transposed(const PointerArgument& from, const std::string& to) {
  if (is_null(from)) return {};
  const int64_t count = s_.N * s_.H * s_.K * s_.M;
  const PointerArgument result = workspace(to, 4 * count);
  add(false, "gsa_transpose", blocks_of(count, threads),
      {from, result, count, static_cast<int32_t>(s_.K), static_cast<int32_t>(s_.M)});
  return result;
}

void SlotLaunches::transpose_back(const PointerArgument& from, const PointerArgument& to) {
  if (is_null(to)) return;
  const int64_t count = s_.N * s_.H * s_.K * s_.M;
  add(false, "gsa_transpose", blocks_of(count, threads),
      {from, to, count, static_cast<int32_t>(s_.M), static_cast<int32_t>(s_.K)});
}

void SlotLaunches::softmax(const PointerArgument& y, const PointerArgument& p) {
  add(false, "gsa_softmax", blocks_of(rows(), gsa::rows), {y, p, rows(), static_cast<int32_t>(s_.M)});
}

void SlotLaunches::softmax_gradient(const PointerArgument& p, const PointerArgument& dp,
                                    const PointerArgument& dy) {
  add(true, "gsa_softmax_gradient", blocks_of(rows(), gsa::rows),
      {p, dp, dy, rows(), static_cast<int32_t>(s_.M)});
}

void SlotLaunches::add_gradients(const SlotPass& first, const SlotPass& second) {
  const int64_t count = rows() * s_.M;
  add(true, "gsa_add_slots", blocks_of(count, threads * sums_per_thread),
      {slots(first.name + "_ds"), slots(second.name + "_ds"), ds(), count});
  add(true, "gsa_add_gates", blocks_of(count, threads * sums_per_thread),
      {slots(first.name + "_dg"), slots(second.name + "_dg"), dg(), count});
  own_gradients();
}

void SlotLaunches::own_gradients() {
  if (!own_ || rows() == 0) return;
  const int64_t scans = s_.N * s_.H * s_.M;
  add_own("gsa_own_gradients", scans,
          {slots("own_w"), slots("own_g"), ds(), dg(), output("ds"), PointerArgument{"sequences", 0}, scans,
           static_cast<int32_t>(s_.H), static_cast<int32_t>(s_.M)});
}

ResolvedCase of_passes(ResolvedCase c) {
  if (!c.has("g")) c.dtype = c.gate_dtype = Dtype::fp32;
  return c;
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

/// own_decays.cu, z = z.high + z.low with |z.low| <= u |z.high|. x rounds twice, 2.1 u |x|, and as
/// |s - z.high| <= |x| + |z.low| by u^2 |z| more; log2(e) and the product with it add 1.23 u |x|: e^{-|x|} is
/// within 4 u (ex2) and 3.4 u |x|. Its log(1 + .) moves by no more and has 6 u of its own, its sum with x or
/// z.low one rounding, which z.low makes u^2 |z| too: 11 u. w's three operations stay below. Each u^2 counts
/// twice here.
Arithmetic with_own_decays(Arithmetic a, const ResolvedCase& c) {
  if (c.has("g")) return a;
  using gated::u;
  a.own_sum = 4 * u * u;
  a.own_weights = 11.1 * u;
  a.own_weights_per_nat = 3.41 * u;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace assay::gsa
