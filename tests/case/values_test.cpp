#include "src/case/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/case/gated_operator.h"

namespace assay {
namespace {

TensorMap draw(const std::string& values, int64_t T, uint64_t seed, std::vector<int64_t> cu = {}) {
  Case c;
  c.T = T, c.H = 1, c.K = 6, c.V = 3, c.decay = "none", c.values = values, c.seed = seed,
  c.initial_state = true;
  c.cu_seqlens = std::move(cu);
  return draw_inputs(c, gated_operator());
}

TEST(Values, LoneValuesAreWrittenAtOneTokenOfSixteenByOneHotKeys) {
  const TensorMap inputs = draw("lone", 320, 4);
  int64_t writing = 0;
  for (int64_t t = 0; t < 320; ++t) {
    int64_t keys = 0, values = 0;
    for (int64_t k = 0; k < 6; ++k) keys += inputs.at("k").value(t * 6 + k) != 0;
    for (int64_t v = 0; v < 3; ++v) values += inputs.at("v").value(t * 3 + v) != 0;
    EXPECT_EQ(keys, 1) << t;
    EXPECT_TRUE(values == 0 || values == 3) << t;
    writing += values == 3;
    EXPECT_TRUE(t % 16 != 15 || writing == t / 16 + 1) << t;
  }
}

TEST(Values, ExactCasesStayIntegersBelow256AtEveryIntermediate) {
  for (int64_t T : {1, 56, 57, 200, 3000}) {
    for (uint64_t seed : {1, 2, 3}) {
      const TensorMap inputs = draw("exact", T, seed);
      double heaviest = 0, written = 0;
      for (int64_t v = 0; v < 3; ++v) {
        std::vector<double> companion(6);  // sum |k||v| + |S_0| per key channel
        for (int64_t k = 0; k < 6; ++k) companion[k] = std::fabs(inputs.at("initial_state").value(k * 3 + v));
        for (int64_t t = 0; t < T; ++t) {
          double readout = 0;
          for (int64_t k = 0; k < 6; ++k) {
            companion[k] += std::fabs(inputs.at("k").value(t * 6 + k) * inputs.at("v").value(t * 3 + v));
            readout += std::fabs(inputs.at("q").value(t * 6 + k)) * companion[k];
          }
          heaviest = std::max(heaviest, readout);
          written += std::fabs(inputs.at("v").value(t * 3 + v));
        }
      }
      EXPECT_LT(heaviest, 256) << T;
      // The guarantee behind it, whatever is drawn: at most 4 channels of +-1 a row, at most 56 tokens that
      // write.
      int64_t writing = 0, channels = 0;
      for (int64_t t = 0; t < T; ++t) {
        bool writes = false;
        int64_t row = 0;
        for (int64_t v = 0; v < 3; ++v) writes |= inputs.at("v").value(t * 3 + v) != 0;
        for (int64_t k = 0; k < 6; ++k) row += inputs.at("q").value(t * 6 + k) != 0;
        writing += writes;
        channels = std::max(channels, row);
      }
      EXPECT_LE(writing, 56) << T;
      EXPECT_LE(channels, 4) << T;
      EXPECT_GT(written, 0) << T;
      for (const auto& [name, tensor] : inputs) {
        for (int64_t i = 0; i < tensor.size(); ++i)
          EXPECT_EQ(tensor.value(i), std::round(tensor.value(i))) << name;
      }
    }
  }
}

TEST(Values, SparseRowsHaveOneNonzeroQueryAndKey) {
  const TensorMap inputs = draw("sparse", 50, 1);
  for (const char* name : {"q", "k"}) {
    for (int64_t t = 0; t < 50; ++t) {
      int64_t nonzero = 0;
      for (int64_t k = 0; k < 6; ++k) nonzero += inputs.at(name).value(t * 6 + k) != 0;
      EXPECT_EQ(nonzero, 1) << name << t;
    }
  }
}

TEST(Values, CancellingPairsOfChannelsCancelTermByTerm) {
  const TensorMap inputs = draw("cancelling", 50, 1);
  const auto at = [&](const char* name, int64_t i) { return inputs.at(name).value(i); };
  for (int64_t i = 0; i < 50 * 6; i += 2) {
    EXPECT_EQ(at("q", i), -at("q", i + 1));
    EXPECT_EQ(at("k", i), at("k", i + 1));
    EXPECT_NE(at("q", i), 0);
  }
  for (int64_t i = 0; i < 6 * 3; ++i)
    if (i / 3 % 2 == 0) {
      EXPECT_EQ(at("initial_state", i), at("initial_state", i + 3));
    }
  EXPECT_NE(at("k", 0), at("k", 2));
  EXPECT_NE(at("v", 0), at("v", 1));
}

TEST(Values, MirroredTokensOrChannelsAreAlikeButForTheSignOfWhatArrivesBackwards) {
  Case c;
  c.T = 11, c.H = 2, c.K = 4, c.V = 6, c.values = "mirrored", c.direction = Direction::backward;
  const TensorMap inputs = draw_inputs(c, gated_operator());
  const auto at = [&](const char* name, int64_t t, int64_t h, int64_t v) {
    return inputs.at(name).value((t * 2 + h) * 6 + v);
  };
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t v = 0; v < 6; v += 2) {
      EXPECT_EQ(at("v", t, 0, v), at("v", t + 5, 0, v));
      EXPECT_EQ(at("do", t, 0, v), -at("do", t + 5, 0, v));
      EXPECT_EQ(at("v", t, 1, v), at("v", t, 1, v + 1));
      EXPECT_EQ(at("do", t, 1, v), -at("do", t, 1, v + 1));
      EXPECT_NE(at("do", t, 0, v), at("do", t, 0, v + 1));
      EXPECT_NE(at("do", t, 1, v), at("do", t + 5, 1, v));
    }
}

TEST(Values, LogitsReachFarAndStayFiniteWhereTheyAreNarrow) {
  for (const auto& [gate, least, most] :
       {std::tuple{Dtype::fp32, 0x1p20, 0x1p30}, std::tuple{Dtype::fp16, 0x1p7, 0x1p9}}) {
    Case c;
    c.T = 300, c.H = 1, c.K = 4, c.V = 6, c.decay = "none", c.values = "logits", c.gate_dtype = gate;
    const TensorMap inputs = draw_inputs(c, gated_operator());
    double largest = 0;
    for (int64_t i = 0; i < inputs.at("v").size(); ++i)
      largest = std::max(largest, std::fabs(inputs.at("v").value(i)));
    EXPECT_GE(largest, least);
    EXPECT_LE(largest, most);
  }
}

TEST(Values, PositiveValuesArePositive) {
  for (const auto& [name, tensor] : draw("positive", 50, 1)) {
    if (name == "g") continue;
    for (int64_t i = 0; i < tensor.size(); ++i) EXPECT_GT(tensor.value(i), 0) << name;
  }
}

}  // namespace
}  // namespace assay
