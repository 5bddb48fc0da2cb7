#include "src/verification/verify/expected_outputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/verify/reference_run.h"
#include "src/verification/verify/verify.h"
#include "tests/verify/float_recurrence.h"

namespace assay {
namespace {

/// K = V and T = H: no shape shows which axis is which.
Case square_case() {
  Case c = float_case();
  c.B = 2, c.T = c.H = 5, c.K = c.V = 6;
  c.initial_state = true;
  return c;
}

ReferenceResult reference_of(const Case& c, const TensorMap& inputs) {
  const Kernel kernel = float_kernel();
  const ResolvedCase resolved = resolve(c, find_operator(kernel.operator_name));
  return evaluate_reference(resolved, declared_problem(claim_of(kernel, resolved), inputs, 1));
}

struct Sample {
  Case c = square_case();
  TensorMap inputs = draw_inputs(c, find_operator(float_kernel().operator_name));
  TensorMap outputs = exact_outputs(inputs);

  /// What the reference gives, each value rounded to the output's format.
  TensorMap exact_outputs(const TensorMap& of) const {
    const ReferenceResult reference = reference_of(c, of);
    TensorMap result;
    for (const ReferenceOutput& output : reference.outputs) {
      Tensor tensor(output.name, Dtype::fp32, output.axes);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, output.mid[static_cast<size_t>(i)]);
      result.emplace(output.name, std::move(tensor));
    }
    return result;
  }

  Verification verify_with(const TensorMap& in, const TensorMap& expected) const {
    FloatBackend backend;
    VerifyOptions options;
    options.threads = 1;
    options.inputs = &in;
    options.expected = &expected;
    return verify(c, float_kernel(), backend, options);
  }
};

TEST(ExpectedOutputs, ThatAreTheReferencesAgree) {
  const Sample s;
  const Verification v = s.verify_with(s.inputs, s.outputs);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
  ASSERT_EQ(v.expected_outputs.size(), 2u);
  for (const OutputComparison& o : v.expected_outputs) EXPECT_EQ(o.ok, o.elements) << o.name;
  EXPECT_TRUE(v.diagnosis.empty());
}

TEST(ExpectedOutputs, OneValueBeyondTheBoundIsAFindingOfItsOwn) {
  const Sample s;
  TensorMap expected = s.outputs;
  Tensor& o = expected.at("o");
  o.set(7, o.value(7) + 1);
  const Verification v = s.verify_with(s.inputs, expected);
  EXPECT_EQ(v.verdict, Verdict::finding);
  EXPECT_EQ(v.cause, "expected/o");
  EXPECT_EQ(v.expected_outputs.at(0).violation, 1);
  EXPECT_EQ(v.expected_outputs.at(0).worst.flat, 7);
  EXPECT_EQ(v.outputs.at(0).violation, 0) << "nothing of the kernel's";
  EXPECT_TRUE(v.diagnosis.empty()) << "no exchange of axes makes that right, and a factor of one is any";
  EXPECT_FALSE(v.entry) << "no line of the kernel is to blame";
  o.set(7, NAN);
  EXPECT_EQ(s.verify_with(s.inputs, expected).expected_outputs.at(0).nonfinite, 1);
}

TEST(ExpectedOutputs, AreAllowedTheRoundingOfTheFormatThatTheFileHas) {
  const Sample s;
  TensorMap expected;
  for (const auto& [name, exact] : s.outputs) {
    Tensor coarse(name, Dtype::bf16, exact.axes);
    for (int64_t i = 0; i < coarse.size(); ++i) coarse.set(i, exact.value(i));
    expected.emplace(name, std::move(coarse));
  }
  EXPECT_EQ(s.verify_with(s.inputs, expected).verdict, Verdict::pass);
  Tensor& o = expected.at("o");
  const auto largest = [&] {
    int64_t at = 0;
    for (int64_t i = 0; i < o.size(); ++i)
      if (std::fabs(o.value(i)) > std::fabs(o.value(at))) at = i;
    return at;
  }();
  o.set(largest, o.value(largest) + 2 * ulp(Dtype::bf16, o.value(largest)));
  EXPECT_EQ(s.verify_with(s.inputs, expected).cause, "expected/o");
}

/// A model that leaves its scale out: every other output of the file is right.
TEST(ExpectedOutputs, AScaleThatTheModelLacksIsNamedWithItsFactor) {
  const Sample s;
  TensorMap expected = s.outputs;
  Tensor& o = expected.at("o");
  for (int64_t i = 0; i < o.size(); ++i) o.set(i, o.value(i) * std::sqrt(6.0));
  const Verification v = s.verify_with(s.inputs, expected);
  EXPECT_EQ(v.cause, "expected/o");
  ASSERT_EQ(v.diagnosis.size(), 2u);
  EXPECT_EQ(v.diagnosis[0].cause, "scale-missing");
  EXPECT_EQ(v.diagnosis[0].evidence.at(0), "of the outputs in the inputs' file");
  EXPECT_EQ(v.diagnosis[1].cause, "output-scaled");
  EXPECT_TRUE(v.diagnosis[1].explanation.starts_with("o times 2.44949, 1/scale"))
      << v.diagnosis[1].explanation;
  for (int64_t i = 0; i < o.size(); ++i) o.set(i, s.outputs.at("o").value(i) * 1.5);
  const Verification other = s.verify_with(s.inputs, expected);
  ASSERT_FALSE(other.diagnosis.empty());
  EXPECT_EQ(other.diagnosis[0].cause, "output-scaled");
  EXPECT_TRUE(other.diagnosis[0].explanation.starts_with("o times 1.5")) << other.diagnosis[0].explanation;
}

/// Every way in which a file can hold tensors with two equal axes exchanged, and what is said of it.
TEST(ExpectedOutputs, OneExchangeOfEqualAxesThatMakesThemRightIsNamed) {
  struct Row {
    AxisExchange exchange;
    const char* said;
  };
  const Row table[] = {
      {{{"initial_state"}, "K", "V"},
       "initial_state is transposed: axes K and V exchanged; with that final_state, o agree; give --layout "
       "initial_state=transposed"},
      {{{"initial_state", "final_state"}, "K", "V"},
       "initial_state, final_state are transposed: axes K and V exchanged; with that final_state, o agree; "
       "give "
       "--layout initial_state=transposed,final_state=transposed"},
      {{{"final_state"}, "K", "V"}, "final_state is transposed: axes K and V exchanged; "},
      {{{"q"}, "T", "H"},
       "q is transposed: axes T and H exchanged; with that final_state, o agree; give --layout "
       "q=heads-first"},
      {{{"g", "k", "q", "v"}, "T", "H"}, "g, k, q, v are transposed: axes T and H exchanged; "},
      {{{"g", "k", "q", "v", "o"}, "T", "H"}, "g, k, q, v, o are transposed: axes T and H exchanged; "},
      {{{"o"}, "T", "H"}, "o is transposed: axes T and H exchanged; "},
  };
  const Sample s;
  for (const Row& row : table) {
    const Verification v =
        s.verify_with(exchanged(s.inputs, row.exchange), exchanged(s.outputs, row.exchange));
    EXPECT_EQ(v.verdict, Verdict::finding) << row.said;
    ASSERT_EQ(v.diagnosis.size(), 1u) << row.said;
    EXPECT_EQ(v.diagnosis[0].cause, kTransposed);
    EXPECT_TRUE(v.diagnosis[0].explanation.starts_with(row.said)) << v.diagnosis[0].explanation;
    EXPECT_EQ(v.diagnosis[0].score, 1) << row.said;
  }
}

TEST(ExpectedOutputs, WithoutThemNothingIsSaidOfAnExchange) {
  const Sample s;
  const TensorMap swapped = exchanged(s.inputs, {{"initial_state"}, "K", "V"});
  const Verification v = s.verify_with(swapped, {});
  EXPECT_EQ(v.verdict, Verdict::pass);
  EXPECT_TRUE(v.diagnosis.empty());
}

TEST(ExpectedOutputs, ExchangesAreProposedWhereAxesAreEqualAndBitsChange) {
  const Sample s;
  for (const AxisExchange& e : axis_exchanges(s.inputs, s.outputs))
    for (const std::string& name : e.tensors) {
      const TensorMap& of = s.inputs.contains(name) ? s.inputs : s.outputs;
      EXPECT_NE(exchanged(of, e).at(name).data, of.at(name).data) << name << " " << e.a << e.b;
      EXPECT_EQ(exchanged(exchanged(of, e), e).at(name).data, of.at(name).data);
    }
  TensorMap symmetric = s.inputs;
  Tensor& state = symmetric.at("initial_state");
  for (int64_t i = 0; i < state.size(); ++i) state.set(i, 1);
  for (const AxisExchange& e : axis_exchanges(symmetric, {}))
    EXPECT_EQ(std::count(e.tensors.begin(), e.tensors.end(), "initial_state"), 0) << e.a << e.b;
}

/// A state that looks the same from each of its axes in turn, but not with two of them exchanged: three
/// exchanges give the same.
TEST(ExpectedOutputs, WhereSeveralExchangesFitNoneIsCertain) {
  Sample s;
  s.c.T = 3, s.c.H = s.c.K = s.c.V = 4;
  const Operator& op = find_operator(float_kernel().operator_name);
  s.inputs = draw_inputs(s.c, op);
  Tensor& state = s.inputs.at("initial_state");
  for (int64_t flat = 0; flat < state.size(); ++flat) {
    const std::vector<int64_t> at = state.index(flat);
    const auto h = static_cast<double>(at[1]), k = static_cast<double>(at[2]), v = static_cast<double>(at[3]);
    state.set(flat, h * k * k + k * v * v + v * h * h);
  }
  const TensorMap expected = s.exact_outputs(exchanged(s.inputs, {{"initial_state"}, "K", "V"}));
  const auto evaluate = [&](const TensorMap& changed) { return reference_of(s.c, changed); };
  const auto d = transposed_tensors(s.inputs, expected, evaluate(s.inputs), evaluate, 60);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->against.size(), 2u);
  EXPECT_DOUBLE_EQ(d->score, 1.0 / 3);
  EXPECT_FALSE(transposed_tensors(s.inputs, expected, evaluate(s.inputs), evaluate, -1))
      << "no time, no cause";
}

}  // namespace
}  // namespace assay
