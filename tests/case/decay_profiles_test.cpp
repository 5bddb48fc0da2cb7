#include "src/case/decay_profiles.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/case/case.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

Tensor gates(const std::string& decay, Dtype dtype, int64_t T = 130) {
  Case c;
  c.B = 2, c.T = T, c.H = 3, c.K = 17, c.V = 5;
  c.decay = decay;
  c.gate_dtype = dtype;
  return draw_inputs(c, gated_operator()).at("g");
}

TEST(DecayProfiles, EveryProfileAndVariantStaysInItsDomainInEveryFormat) {
  for (const auto& profile : decay_profiles()) {
    std::vector<std::string> texts{std::string(profile.name)};
    for (const auto variant : profile.variants) texts.push_back(texts[0] + ":" + std::string(variant));
    for (const auto& text : texts) {
      for (Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
        const Tensor g = gates(text, dtype);
        int64_t outside = 0;
        for (int64_t i = 0; i < g.size(); ++i) outside += !(g.value(i) >= -1e4 && g.value(i) <= 0);
        EXPECT_EQ(outside > 0, !profile.in_domain) << text << " as " << format(dtype).name;
      }
    }
  }
}

TEST(DecayProfiles, ReachAsFarAsTheySay) {
  for (const auto& profile : decay_profiles()) {
    std::vector<std::string> texts{std::string(profile.name)};
    for (const auto variant : profile.variants) texts.push_back(texts[0] + ":" + std::string(variant));
    for (const auto& text : texts)
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
        const Extremes extremes = parse_decay(text).extremes(dtype);
        const Tensor g = gates(text, dtype, 129);  // 128 and one more: edges of one token
        double least = 0;
        for (int64_t i = 0; i < g.size(); ++i) {
          ASSERT_TRUE(extremes.has(g.value(i))) << text << ' ' << g.element_name(i) << ' ' << g.value(i);
          least = std::fmin(least, g.value(i));
        }
        if (text == profile.name) {
          EXPECT_LE(4 * least, extremes.least) << text << " is drawn far from its end";
        }
      }
  }
}

TEST(DecayProfiles, ProfilesDifferFromEachOther) {
  std::vector<std::vector<std::byte>> seen;
  for (const auto& profile : decay_profiles()) {
    const auto data = gates(std::string(profile.name), Dtype::fp32).data;
    for (const auto& other : seen) EXPECT_NE(data, other) << profile.name;
    seen.push_back(data);
  }
}

TEST(DecayProfiles, ResetHitsAllChannelsOfAHeadInEverySequence) {
  const Tensor g = gates("reset", Dtype::fp32, 7);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 3; ++h) {
      int64_t resets = 0;
      for (int64_t t = 0; t < 7; ++t) {
        int64_t channels = 0;
        for (int64_t c = 0; c < 17; ++c) channels += g.value(((b * 7 + t) * 3 + h) * 17 + c) == -1e4;
        EXPECT_TRUE(channels == 0 || channels == 17);
        resets += channels == 17;
      }
      EXPECT_GE(resets, 1);
    }
  }
}

TEST(DecayProfiles, LateResetHitsAllChannelsOnceInTheLastQuarterOfEverySequence) {
  for (const int64_t T : {1, 5, 400}) {
    const Tensor g = gates("late-reset", Dtype::fp32, T);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h) {
        int64_t resets = 0;
        for (int64_t t = 0; t < T; ++t)
          for (int64_t c = 0; c < 17; ++c) {
            const double value = g.value(((b * T + t) * 3 + h) * 17 + c);
            EXPECT_TRUE(value == -1e4 || value >= -0.001) << value;
            if (value != -1e4) continue;
            ++resets;
            EXPECT_GE(t, T * 3 / 4) << "T = " << T;
          }
        EXPECT_EQ(resets, 17) << "T = " << T;
      }
  }
}

TEST(DecayProfiles, SpikesSitAtMultiplesOfThePeriodOnly) {
  const Tensor g = gates("spike:16,90", Dtype::fp32);
  int64_t spikes = 0;
  for (int64_t i = 0; i < g.size(); ++i) {
    if (g.value(i) > -1) continue;
    ++spikes;
    EXPECT_EQ(g.value(i), -90);
    EXPECT_EQ(g.index(i)[1] % 16, 0);
    EXPECT_GT(g.index(i)[1], 0);
  }
  EXPECT_GT(spikes, 0);
}

TEST(DecayProfiles, LadderAddsUpToALimitOverItsRows) {
  const Tensor g = gates("ladder:15", Dtype::fp32);
  bool around_exp_limit = false;
  for (int64_t i = 0; i < g.size(); ++i) {
    const double sum = -15 * g.value(i);
    EXPECT_GT(sum, 10);
    EXPECT_LT(sum, 170);
    around_exp_limit |= sum > 88.5 && sum < 89;
  }
  EXPECT_TRUE(around_exp_limit);
}

TEST(DecayProfiles, SpikesStandAtTheirOffset) {
  for (int64_t offset : {1, 15}) {
    const Tensor g = gates("spike:16,90," + std::to_string(offset), Dtype::fp32);
    int64_t spikes = 0;
    for (int64_t i = 0; i < g.size(); ++i) {
      if (g.value(i) > -1) continue;
      ++spikes;
      EXPECT_EQ(g.index(i)[1] % 16, offset);
    }
    EXPECT_GT(spikes, 0) << offset;
  }
}

TEST(DecayProfiles, EdgeSpendsAnExponentLimitOnThePartialChunkAlone) {
  for (int64_t T : {130, 65, 64, 40}) {
    const Tensor g = gates("edge", Dtype::fp32, T);
    const int64_t tail = (T - 1) % 64 + 1;
    int64_t strong = 0;
    for (int64_t channel = 0; channel < 17; ++channel) {
      double before = 0, after = 0;
      for (int64_t t = 0; t < T; ++t) (t < T - tail ? before : after) -= g.value((t * 3) * 17 + channel);
      EXPECT_LE(before, 0.02 * static_cast<double>(T));
      if (after <= 0.02 * static_cast<double>(tail)) continue;
      ++strong;
      EXPECT_GT(after, 10) << T;
      EXPECT_LT(after, 170) << T;
    }
    EXPECT_GT(strong, 2) << T;
    EXPECT_LT(strong, 16) << T;
  }
}

TEST(DecayProfiles, RowsContrastInAllChannelsAndMaskedGatesAreHalfZero) {
  const Tensor rows = gates("rows:5,0.2", Dtype::fp32), masked = gates("masked", Dtype::fp32);
  int64_t zeros = 0;
  for (int64_t i = 0; i < masked.size(); ++i) zeros += masked.value(i) == 0;
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(masked.size()), 0.5, 0.1);
  for (int64_t row = 0; row < rows.size(); row += 17) {
    int64_t strong = 0;
    for (int64_t c = 0; c < 17; ++c) strong += rows.value(row + c) < -1;
    EXPECT_TRUE(strong == 0 || strong == 17) << strong;
  }
}

TEST(DecayProfiles, BadTextsAreNamed) {
  const std::pair<const char*, const char*> table[] = {
      {"laddr", "unknown decay profile 'laddr': did you mean 'ladder'?"},
      {"ladder:x", "decay 'ladder:x': 'x' is not a number"},
      {"ladder:", "decay 'ladder:': '' is not a number"},
      {"ladder:8,9", "decay 'ladder:8,9': ladder takes 1 argument (rows)"},
      {"none:1", "decay 'none:1': none takes 0 arguments"},
      {"constant:nan", "decay 'constant:nan': 'nan' is not a number"},
  };
  for (const auto& [text, message] : table) {
    try {
      parse_decay(text);
      ADD_FAILURE() << text;
    } catch (const BadInput& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST(DecayProfiles, ArgumentsNotGivenKeepTheirDefaults) {
  EXPECT_EQ(parse_decay("spike:8").arguments, (std::vector<double>{8, 90, 0}));
  EXPECT_EQ(parse_decay("spike").arguments, (std::vector<double>{16, 90, 0}));
}

}  // namespace
}  // namespace assay
