// Every kernel at the edges of the gates it says it is safe for.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numbers>

#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace {

struct Edge {
  const char* name;
  std::function<double(const KernelLimits&, int64_t)> gate;
};
const Edge edges[] = {
    {"smallest everywhere", [](const KernelLimits& l, int64_t) { return l.gate_min; }},
    {"largest everywhere", [](const KernelLimits& l, int64_t) { return l.gate_max; }},
    {"both in turn", [](const KernelLimits& l, int64_t i) { return i % 2 ? l.gate_min : l.gate_max; }},
    {"one smallest in twenty",
     [](const KernelLimits& l, int64_t i) { return i % 20 ? l.gate_max : l.gate_min; }},
};

/// Name of the operator's log decays; empty where it has none.
std::string gate_of(const Operator& op) {
  for (const ArgumentSpec& spec : op.inputs)
    if (spec.role == Role::log_decay && spec.instead_of.empty()) return std::string(spec.name);
  return "";
}

/// The number nearest to x in the format that is not beyond it.
void set_inside(Tensor& tensor, int64_t i, double x, const KernelLimits& limits) {
  tensor.set(i, x);
  if (tensor.value(i) < limits.gate_min) tensor.set(i, limits.gate_min * (1 - 0x1p-7));
}

TEST(Domain, EveryKernelIsWithinItsBoundAtTheEdgesOfItsGatesAndNoExponentialGrows) {
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    const std::string gate = gate_of(op);
    if (gate.empty()) continue;
    double least = 0;
    int seed = 0;
    for (const Edge& edge : edges)
      for (const Dtype dtype : kernel.limits.dtypes) {
        Case c;
        c.kernel = kernel.name, c.T = 70, c.K = 20, c.V = 9, c.seed = static_cast<uint64_t>(++seed);
        c.M = std::min<int64_t>(12, usual_slots(op));
        c.dtype = dtype,
        c.gate_dtype =
            kernel.limits.gate_dtypes[static_cast<size_t>(seed) % kernel.limits.gate_dtypes.size()];
        c.direction = directions_of(kernel).back();
        c.initial_state = true, c.final_state_gradient = runs_backward(c);
        TensorMap inputs = draw_inputs(c, op);
        Tensor& gates = inputs.at(gate);
        for (int64_t i = 0; i < gates.size(); ++i)
          set_inside(gates, i, edge.gate(kernel.limits, i), kernel.limits);
        const JudgedRun run = judged_run(c, inputs, "sm_90");
        for (const OutputComparison& output : run.outputs)
          EXPECT_TRUE(output.pass()) << kernel.name << ", gates " << edge.name << ": " << output.worst.element
                                     << " got " << output.worst.got << " expected " << output.worst.expected
                                     << " bound " << output.worst.bound;
        for (const ExponentRange& range : run.outcome.exponents) {
          EXPECT_LE(range.max, 0) << kernel.name << ", gates " << edge.name << ": " << range.where.file << ':'
                                  << range.where.line;
          EXPECT_EQ(range.nans, 0) << kernel.name;
          least = std::min(least, static_cast<double>(range.min));
        }
      }
    EXPECT_LE(least, 0.99 * kernel.limits.gate_min * std::numbers::log2e)
        << kernel.name << " has not seen its edge";
  }
}

}  // namespace
}  // namespace assay
