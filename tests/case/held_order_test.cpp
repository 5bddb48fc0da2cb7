#include "src/case/held_order.h"

#include <gtest/gtest.h>

#include <numeric>

#include "src/base/numerics/bad_input.h"
#include "src/case/given_inputs.h"
#include "src/case/layouts.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

using Shape = std::vector<int64_t>;

/// fp32, the element of flat number i is i.
Tensor counted(const Shape& shape) {
  std::vector<Axis> axes;
  for (const int64_t size : shape) axes.push_back({"", size});
  Tensor tensor("", Dtype::fp32, axes);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

/// q, k, v, g of these shapes, and a state that says H.
TensorMap tensors(const Shape& keys, const Shape& values, const Shape& state = {}) {
  TensorMap raw{{"q", counted(keys)}, {"k", counted(keys)}, {"v", counted(values)}, {"g", counted(keys)}};
  if (!state.empty()) raw["initial_state"] = counted(state);
  return raw;
}

GivenInputs fit(const TensorMap& raw, const std::string& layout = "", int64_t heads = 0) {
  Case c;
  c.kernel = "gated.test";
  c.layout = layout;
  return fit_inputs(c, gated_operator(), raw, "x", heads);
}

std::string refusal_of(const TensorMap& raw, const std::string& layout = "", int64_t heads = 0) {
  try {
    fit(raw, layout, heads);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

/// q[b,t,h,k] of a tensor that was held as [b,h,t,k].
double heads_first(const Case& c, int64_t t, int64_t h, int64_t k) {
  return static_cast<double>((h * c.T + t) * c.K + k);
}

TEST(HeldOrder, HeadsFirstIsSeenWhereNothingElseFits) {
  const GivenInputs given = fit(tensors({1, 2, 30, 16}, {1, 2, 30, 8}, {1, 2, 16, 8}));
  EXPECT_EQ(given.case_.T, 30);
  EXPECT_EQ(given.case_.H, 2);
  const Tensor& q = given.inputs.at("q");
  EXPECT_EQ(q.shape_text(), "[B=1,T=30,H=2,K=16]");
  const Shape at{0, 17, 1, 5};
  EXPECT_EQ(q.value(q.offset(at)), heads_first(given.case_, 17, 1, 5));
  EXPECT_EQ(given.case_.layout, "q=heads-first,k=heads-first,v=heads-first,g=heads-first");
  EXPECT_EQ(given.notes,
            (std::vector<std::string>{"q, k, v, g: heads-first ([B,H,T,K]) in x: run in that layout"}));
}

TEST(HeldOrder, OneInputOfAnotherOrderIsTakenAlone) {
  TensorMap raw = tensors({1, 30, 2, 16}, {1, 30, 2, 8}, {1, 2, 16, 8});
  raw["k"] = counted({1, 2, 30, 16});
  const GivenInputs given = fit(raw);
  EXPECT_EQ(given.case_.layout, "k=heads-first");
  EXPECT_EQ(given.inputs.at("q").data, raw.at("q").data);
  EXPECT_EQ(given.inputs.at("k").value(16), heads_first(given.case_, 0, 1, 0));
}

TEST(HeldOrder, MergedHeadsAreTakenApart) {
  const GivenInputs given = fit(tensors({1, 30, 32}, {1, 30, 16}, {1, 2, 16, 8}));
  EXPECT_EQ(given.inputs.at("v").shape_text(), "[B=1,T=30,H=2,V=8]");
  EXPECT_EQ(given.case_.layout, "");
  EXPECT_EQ(given.inputs.at("v").data, counted({1, 30, 16}).data);
  EXPECT_NE(refusal_of(tensors({1, 30, 32}, {1, 30, 16})).find("give their number with -H"),
            std::string::npos);
  EXPECT_EQ(fit(tensors({1, 30, 32}, {1, 30, 16}), "", 2).case_.K, 16);
  EXPECT_NE(refusal_of(tensors({1, 30, 32}, {1, 30, 16}), "", 3), "accepted");
}

TEST(HeldOrder, EqualTokensAndHeadsAreNotGuessed) {
  const TensorMap raw = tensors({1, 4, 4, 16}, {1, 4, 4, 8});
  EXPECT_EQ(
      refusal_of(raw),
      "x: T and H are both 4: [B,T,H,..] and [B,H,T,..] look alike; give --layout dense or heads-first");
  EXPECT_EQ(fit(raw, "dense").inputs.at("q").data, raw.at("q").data);
  const GivenInputs swapped = fit(raw, "heads-first");
  EXPECT_EQ(swapped.inputs.at("q").value(16), heads_first(swapped.case_, 0, 1, 0));
  EXPECT_EQ(swapped.case_.layout, "heads-first");
  EXPECT_EQ(refusal_of(tensors({1, 1, 1, 16}, {1, 1, 1, 8})), "accepted");
}

TEST(HeldOrder, DifferentSizesThatExplainAFileAreAskedFor) {
  TensorMap raw = tensors({1, 30, 2, 16}, {1, 2, 30, 8});
  EXPECT_EQ(refusal_of(raw),
            "x: its shapes can be T=30, H=2 (v heads-first) or T=2, H=30 (q, k, g heads-first); say which "
            "with -H 2 "
            "or -H 30");
  EXPECT_EQ(fit(raw, "", 2).case_.layout, "v=heads-first");
  EXPECT_EQ(fit(raw, "", 30).case_.T, 2);
}

TEST(HeldOrder, AFileOfFewTokensIsTakenAsWrittenAndSaysSo) {
  const GivenInputs given = fit(tensors({1, 2, 30, 16}, {1, 2, 30, 8}));
  EXPECT_EQ(given.case_.T, 2);
  ASSERT_EQ(given.notes.size(), 1u);
  EXPECT_EQ(given.notes[0], "x: read as T=2, H=30; if it holds [B,H,T,..], give --layout heads-first");
  EXPECT_EQ(fit(tensors({1, 2, 30, 16}, {1, 2, 30, 8}), "heads-first").case_.T, 30);
  EXPECT_TRUE(fit(tensors({1, 30, 2, 16}, {1, 30, 2, 8})).notes.empty());
}

TEST(HeldOrder, TransposedStatesAreTakenWhereTheyAreNamed) {
  const TensorMap raw = tensors({1, 30, 2, 16}, {1, 30, 2, 8}, {1, 2, 8, 16});
  EXPECT_EQ(
      refusal_of(raw),
      "initial_state: expected [N=1,H=2,K=16,V=8], got [1,2,8,16] (transposed: K and V look exchanged; give "
      "--layout initial_state=transposed)");
  const Tensor state = fit(raw, "initial_state=transposed").inputs.at("initial_state");
  EXPECT_EQ(state.shape_text(), "[N=1,H=2,K=16,V=8]");
  EXPECT_EQ(state.value(1), 16);  // [0,0,0,1] lies at [0,0,1,0]
  const TensorMap square = tensors({1, 30, 2, 8}, {1, 30, 2, 8}, {1, 2, 8, 8});
  EXPECT_EQ(fit(square, "initial_state=transposed").inputs.at("initial_state").value(1), 8);
  EXPECT_EQ(fit(square).inputs.at("initial_state").value(1), 1);
}

TEST(HeldOrder, OutputsInTheFileAreBroughtBackTooAndHaveNoLayoutInTheRun) {
  TensorMap raw = tensors({1, 2, 30, 16}, {1, 2, 30, 8}, {1, 2, 16, 8});
  raw["o"] = counted({1, 2, 30, 8});
  const GivenInputs given = fit(raw);
  EXPECT_EQ(given.expected.at("o").shape_text(), "[B=1,T=30,H=2,V=8]");
  EXPECT_EQ(given.expected.at("o").value(8), 30 * 8) << "o[0,0,1,0] lies at [0,1,0,0]";
  EXPECT_EQ(given.case_.layout, "q=heads-first,k=heads-first,v=heads-first,g=heads-first");
  EXPECT_EQ(given.notes.at(1), "o: heads-first ([B,H,T,V]) in x: read so");

  raw = tensors({1, 30, 2, 16}, {1, 30, 2, 8}, {1, 2, 8, 16});
  raw["final_state"] = counted({1, 2, 8, 16});
  const GivenInputs states = fit(raw, "initial_state=transposed,final_state=transposed");
  EXPECT_EQ(states.expected.at("final_state").value(1), 16);
  EXPECT_EQ(states.case_.layout, "initial_state=transposed");
}

TEST(HeldOrder, AnOutputOfAnotherShapeSaysNothingOfTheInputs) {
  TensorMap raw = tensors({1, 2, 30, 16}, {1, 2, 30, 8}, {1, 2, 16, 8});
  raw["o"] = counted({1, 31, 2, 8});
  EXPECT_TRUE(refusal_of(raw).starts_with("o: expected [B=1,T=30,H=2,V=8], got [1,31,2,8]"))
      << refusal_of(raw);
}

TEST(HeldOrder, EqualTokensAndHeadsAreLeftToTheValuesOfOutputs) {
  TensorMap raw = tensors({1, 4, 4, 16}, {1, 4, 4, 8});
  raw["o"] = counted({1, 4, 4, 8});
  const GivenInputs given = fit(raw);
  EXPECT_EQ(given.inputs.at("q").data, raw.at("q").data);
  EXPECT_EQ(given.notes,
            (std::vector<std::string>{"x: T and H are both 4: [B,T,H,..] and [B,H,T,..] look alike; "
                                      "read as [B,T,H,..], held against its outputs"}));
  EXPECT_EQ(fit(raw, "heads-first").expected.at("o").value(8), 4 * 8);
}

TEST(HeldOrder, AnExchangeOfAxesHasTheLayoutThatUndoesIt) {
  const std::vector<Axis> keys{{"B", 1}, {"T", 4}, {"H", 4}, {"K", 4}},
      state{{"N", 1}, {"H", 4}, {"K", 4}, {"V", 4}};
  EXPECT_EQ(layout_of_exchange(keys, 1, 2), "heads-first");
  EXPECT_EQ(layout_of_exchange(keys, 2, 3), "transposed");
  EXPECT_EQ(layout_of_exchange(keys, 1, 3), "");
  EXPECT_EQ(layout_of_exchange(state, 2, 3), "transposed");
  EXPECT_EQ(layout_of_exchange(state, 1, 2), "");
}

/// Another layout says what lies between the elements of a file that has the operator's order.
TEST(HeldOrder, OtherLayoutsLeaveTheValuesAlone) {
  const TensorMap raw = tensors({1, 30, 2, 16}, {1, 30, 2, 8}, {1, 2, 16, 8});
  for (const char* layout : {"padded", "heads-first", "q=joined"})
    EXPECT_EQ(fit(raw, layout).inputs.at("q").data, raw.at("q").data) << layout;
}

}  // namespace
}  // namespace assay
