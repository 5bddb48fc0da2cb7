#include "src/base/tensor/shape_contract.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

const ShapeContract kQuery{"q", {{"B", 2}, {"T", 100}, {"H", 4}, {"K", 64}}};
const ShapeContract kGate{"g", {{"B", 2}, {"T", 100}, {"H", 4}, {"K", 64}}, true};
const ShapeContract kState{"initial_state", {{"N", 3}, {"H", 4}, {"K", 64}, {"V", 16}}};

TEST(ShapeContract, TheLikeliestExplanationIsNamed) {
  struct Row {
    ShapeContract contract;
    std::vector<int64_t> got;
    const char* why;
  };
  const Row table[] = {
      {kState, {3, 4, 16, 64}, "transposed: K and V look exchanged; give --layout initial_state=transposed"},
      {kQuery, {2, 4, 100, 64}, "heads first: T and H look exchanged; transpose them"},
      {kQuery, {100, 2, 4, 64}, "B and T look exchanged"},
      {kQuery, {64, 2, 100, 4}, "axes look permuted; the order is [B=2,T=100,H=4,K=64]"},
      {kQuery, {2, 100, 256}, "heads merged: H and K look merged; reshape to [B=2,T=100,H=4,K=64]"},
      {kQuery, {200, 4, 64}, "B and T look merged; reshape to [B=2,T=100,H=4,K=64]"},
      {kQuery, {100, 4, 64}, "axis B is missing"},
      {kGate, {2, 100, 4}, "a per-head gate where a per-channel one is expected; expand it over K"},
      {kQuery, {2, 100, 4}, "axis K is missing"},
      {kGate, {2, 100, 4, 1}, "K has size 1: nothing is broadcast, expand it"},
      {kQuery, {1, 100, 1, 64}, "B and H have size 1: nothing is broadcast, expand it"},
      {kState, {4, 4, 64, 16}, "one too many states: cu_seqlens has N + 1 offsets for N sequences"},
      {kState,
       {1, 4, 64, 16},
       "one state given, but cu_seqlens or the batch has N sequences, each with its own"},
      {kState, {7, 4, 64, 16}, "N is the batch, or the number of sequences in cu_seqlens"},
      {kQuery, {1, 2, 100, 4, 64}, "one axis too many, of size 1 at position 0"},
      {kQuery, {2, 100, 4, 32}, "only K differs from the other arguments"},
      {kQuery, {2, 99, 5, 64}, ""},
      {kQuery, {}, ""},
      {kQuery, {2, 100, 4, 64}, ""},
  };
  for (const Row& row : table) EXPECT_EQ(explain_shape(row.contract, row.got), row.why);
}

TEST(ShapeContract, TheMessageNamesBothSidesAndAFittingShapePasses) {
  const std::vector<int64_t> exchanged{3, 4, 16, 64}, unlike{5, 5}, right{3, 4, 64, 16};
  const auto message = [](const ShapeContract& contract, const std::vector<int64_t>& got) -> std::string {
    try {
      require_shape(contract, got);
    } catch (const BadInput& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(
      message(kState, exchanged),
      "initial_state: expected [N=3,H=4,K=64,V=16], got [3,4,16,64] (transposed: K and V look exchanged; "
      "give --layout initial_state=transposed)");
  EXPECT_EQ(message(kState, unlike), "initial_state: expected [N=3,H=4,K=64,V=16], got [5,5]");
  EXPECT_EQ(message(kState, right), "");
}

}  // namespace
}  // namespace assay
