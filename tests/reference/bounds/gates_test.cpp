// Bounds of the elementwise gates where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_gates_test {

constexpr double kError = 0x1p-20;
constexpr double kA = 0.5, kBias[] = {1, -4};

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}
double softplus(double z) {
  return std::log1p(std::exp(z));
}

struct Gate {
  const char* name;
  const char* output;
  double (*value)(double x, size_t channel);     ///< magnitude of the gate
  double (*slope)(double x, size_t channel);     ///< magnitude of its derivative
  double (*argument)(double x, size_t channel);  ///< |z|
  double rate;                                   ///< |A|
  int exponentials;  ///< functions of x that the derivative is a product of: each errs with its own exponent
};
const Gate kGates[] = {
    {"rwkv7_log_decay", "w", [](double x, size_t) { return std::exp(-0.5) * sigmoid(x); },
     [](double x, size_t) { return std::exp(-0.5) * sigmoid(x) * sigmoid(-x); },
     [](double x, size_t) { return std::fabs(x); }, 0, 2},
    {"gate_logsigmoid", "g", [](double x, size_t) { return 0.25 * softplus(-x); },
     [](double x, size_t) { return 0.25 * sigmoid(-x); }, [](double x, size_t) { return std::fabs(x); }, 0,
     1},
    {"gate_softplus", "g", [](double x, size_t c) { return std::exp(kA) * softplus(x + kBias[c]); },
     [](double x, size_t c) { return std::exp(kA) * sigmoid(x + kBias[c]); },
     [](double x, size_t c) { return std::fabs(x + kBias[c]); }, kA, 1},
};
constexpr double kX[] = {-3, 2, 0.5, -1}, kD[] = {2, -1, 0.5, 4};  // two tokens of two channels

struct GateProblem : HandProblem {
  explicit GateProblem(const Gate& gate) : HandProblem(sizes()), op(find_operator(gate.name)) {
    set(op, "x", {kX[0], kX[1], kX[2], kX[3]});
    set(op, "A", {kA}), set(op, "bias", {kBias[0], kBias[1]});
    set(op, std::string("d") + gate.output, {kD[0], kD[1], kD[2], kD[3]});
    problem.scale = 0.25;
  }
  static Sizes sizes() {
    Sizes s;
    s.T = 2, s.K = 2;
    return s;
  }
  const Operator& op;
};

TEST(GatesBound, is_the_readouts_error_of_every_gate) {
  for (const Gate& gate : kGates) {
    GateProblem p(gate);
    p.problem.arithmetic.readout = kError;
    const ReferenceResult y = p.op.evaluate(p.problem);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(near(output_of(y, gate.output).bound[i], kError * gate.value(kX[i], i % 2)))
          << gate.name << ' ' << i << ' ' << output_of(y, gate.output).bound[i];
  }
}

TEST(GatesBound, an_argument_that_is_off_moves_a_gate_by_no_more_than_the_exponential_of_what_it_is_off_by) {
  for (const Gate& gate : kGates) {
    GateProblem p(gate), q(gate);
    p.problem.arithmetic.write = 0x1p-6;
    q.problem.arithmetic.decay_per_nat = 0x1p-6;
    const ReferenceResult of_write = p.op.evaluate(p.problem), of_decay = q.op.evaluate(q.problem);
    for (size_t i = 0; i < 4; ++i) {
      const double value = gate.value(kX[i], i % 2), z = gate.argument(kX[i], i % 2);
      EXPECT_TRUE(near(output_of(of_write, gate.output).bound[i], value * std::expm1(0x1p-6 * z)))
          << gate.name << ' ' << i;
      EXPECT_TRUE(
          near(output_of(of_decay, gate.output).bound[i], value * std::expm1(0x1p-6 * (z + gate.rate))))
          << gate.name << ' ' << i << ": of the rate's exponent too";
    }
  }
}

TEST(GatesBound, storing_adds_its_roundoff_of_the_gate_and_half_a_subnormal_of_its_format) {
  for (const Gate& gate : kGates) {
    GateProblem p(gate);
    p.problem.arithmetic.output_roundoff = 0x1p-11;  // fp16's, whose least subnormal is 2^-24
    p.problem.arithmetic.readout = kError;
    const ReferenceResult y = p.op.evaluate(p.problem);
    const double value = gate.value(kX[0], 0), expected = value * (kError + 0x1p-11 * (1 + kError)) + 0x1p-25;
    EXPECT_TRUE(near(output_of(y, gate.output).bound[0], expected))
        << gate.name << ' ' << output_of(y, gate.output).bound[0] << " for " << expected;
  }
}

TEST(GatesBound, of_a_gradient_has_the_adjoints_errors_with_every_exponential_of_the_derivative) {
  for (const Gate& gate : kGates) {
    GateProblem p(gate), q(gate);
    p.problem.adjoint.adjoint.readout = kError;
    q.problem.adjoint.adjoint.decay_per_nat = 0x1p-6;
    const ReferenceResult of_readout = p.op.evaluate_adjoint(p.problem),
                          of_decay = q.op.evaluate_adjoint(q.problem);
    for (size_t i = 0; i < 4; ++i) {
      const double dx = gate.slope(kX[i], i % 2) * std::fabs(kD[i]);
      const double exponent = 0x1p-6 * (gate.argument(kX[i], i % 2) + gate.rate);
      EXPECT_TRUE(near(output_of(of_readout, "dx").bound[i], kError * dx)) << gate.name << ' ' << i;
      EXPECT_TRUE(near(output_of(of_decay, "dx").bound[i], dx * std::expm1(gate.exponentials * exponent)))
          << gate.name << ' ' << i;
    }
  }
}

TEST(GatesBound, sums_over_tokens_have_the_sums_errors_of_all_magnitudes) {
  const Gate& gate = kGates[2];
  const auto magnitudes = [&](size_t from, size_t step, double (*value)(double, size_t)) {
    double sum = 0;
    for (size_t i = from; i < 4; i += step) sum += value(kX[i], i % 2) * std::fabs(kD[i]);
    return sum;
  };
  GateProblem p(gate), q(gate);
  p.problem.adjoint.total = kError;
  q.problem.adjoint.value_readout = kError;
  for (const GateProblem* problem : {&p, &q}) {
    const ReferenceResult y = problem->op.evaluate_adjoint(problem->problem);
    EXPECT_TRUE(near(output_of(y, "dA").bound[0], kError * magnitudes(0, 1, gate.value)));
    for (size_t c = 0; c < 2; ++c)
      EXPECT_TRUE(near(output_of(y, "dbias").bound[c], kError * magnitudes(c, 2, gate.slope))) << c;
    EXPECT_LE(output_of(y, "dx").bound[0], 1e-200) << "an element is in no sum";
  }
}

TEST(GatesBound, is_infinite_where_a_rate_may_overflow) {
  for (const double A : {85.0, 88.0}) {
    GateProblem p(kGates[2]);
    p.set(p.op, "A", {A});
    p.problem.arithmetic.readout = p.problem.adjoint.adjoint.readout = kError;
    p.problem.arithmetic.underflow = p.problem.adjoint.adjoint.underflow = 0x1p-149;
    const bool overflows = A > 86;  // e^88 times 1 + |x + bias| passes 2^127
    EXPECT_EQ(std::isinf(output_of(p.op.evaluate(p.problem), "g").bound[0]), overflows) << A;
    EXPECT_EQ(std::isinf(output_of(p.op.evaluate_adjoint(p.problem), "dx").bound[0]), overflows) << A;
  }
}

}  // namespace bounds_gates_test
}  // namespace assay
