#include "src/case/unit_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/case/values.h"

namespace assay {
namespace {

Case case_of(const std::string& values, int64_t T, int64_t K) {
  Case c;
  c.kernel = "rwkv7.fused_recurrent", c.values = values, c.decay = "none";
  c.T = T, c.K = K, c.V = 1, c.dtype = Dtype::fp32;
  return c;
}

struct Rows {
  Tensor a, b;
  int64_t K;

  explicit Rows(const Case& c) : K(c.K) {
    const TensorMap inputs = draw_inputs(c, find_operator("rwkv7"));
    a = inputs.at("a"), b = inputs.at("b");
  }
  double length(int64_t t) const {
    double sum = 0;
    for (int64_t i = t * K; i < (t + 1) * K; ++i) sum += a.value(i) * a.value(i);
    return std::sqrt(sum);
  }
};

/// Keys and rates of a delta rule whose rates are what it replaces.
struct Keys {
  Tensor k, beta;
  int64_t K;

  explicit Keys(const Case& c) : K(c.K) {
    const TensorMap inputs = draw_inputs(c, find_operator("gated_delta_rule"));
    k = inputs.at("k");
    if (inputs.count("beta")) beta = inputs.at("beta");
  }
  double dot(int64_t s, int64_t t) const {
    double sum = 0;
    for (int64_t c = 0; c < K; ++c) sum += k.value(s * K + c) * k.value(t * K + c);
    return sum;
  }
};

TEST(UnitRows, HaveLengthOneAndAreNotAllTheSame) {
  for (const char* values : {"normal", "positive", "sparse", "ones"})
    for (const int64_t K : {1, 2, 7, 64, 256}) {
      const Rows rows(case_of(values, 20, K));
      for (int64_t t = 0; t < 20; ++t) EXPECT_NEAR(rows.length(t), 1, 1e-6) << values << " " << K;
      int64_t changed = 0;
      for (int64_t i = 0; i < 19 * K; ++i) changed += rows.a.value(i) != rows.a.value(i + K);
      if (K > 1 && std::string(values) != "ones") {
        EXPECT_GT(changed, 0) << values << " " << K;
      }
    }
}

/// b = -rate a: what is read is taken away, never more than all of it.
TEST(UnitRows, AreOpposedAtARateOfZeroToOne) {
  const int64_t K = 16, T = 400;
  const Rows rows(case_of("normal", T, K));
  int64_t whole = 0, none = 0, apart = 0;
  for (int64_t t = 0; t < T; ++t) {
    const double first = -rows.b.value(t * K) / rows.a.value(t * K);
    bool one_rate = true;
    for (int64_t c = 0; c < K; ++c) {
      const double rate = -rows.b.value(t * K + c) / rows.a.value(t * K + c);
      EXPECT_GE(rate, 0);
      EXPECT_LE(rate, 1 + 1e-6);
      one_rate = one_rate && std::fabs(rate - first) < 1e-6;
    }
    whole += one_rate && first > 1 - 1e-6, none += one_rate && first == 0, apart += !one_rate;
  }
  EXPECT_GT(whole, T / 20);
  EXPECT_GT(none, T / 20);
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, T / 16);
}

TEST(UnitRows, WriteAlongWhatTheyReadWhereStatesShallGrow) {
  const int64_t K = 8, T = 64;
  const Rows rows(case_of("growing", T, K));
  double grown = 1;
  for (int64_t t = 0; t < T; ++t) {
    double dot = 0;
    for (int64_t c = 0; c < K; ++c) {
      dot += rows.a.value(t * K + c) * rows.b.value(t * K + c);
      EXPECT_EQ(rows.a.value(t * K + c), rows.a.value(c)) << "the same direction at every token";
    }
    grown *= 1 + dot;
  }
  EXPECT_NEAR(std::log2(grown), 40, 0.1);
}

TEST(UnitRows, OfKeysGrowWhereTwiceIsTakenOfThem) {
  const Case c = case_of("growing", 64, 8);
  const Keys keys(c);
  double grown = 1;
  for (int64_t t = 0; t < 64; ++t) grown *= std::fabs(1 - keys.beta.value(t) * keys.dot(t, t));
  EXPECT_NEAR(std::log2(grown), 40, 0.1);
}

TEST(UnitRows, OfKeysWithoutRatesGrowOrNotAsThoseWithThem) {
  Case c = case_of("growing", 64, 8);
  c.without = {"beta", "beta_v"};
  double grown = 1;
  const Keys keys(c);
  for (int64_t t = 0; t < 64; ++t) grown *= std::fabs(1 - keys.dot(t, t));
  EXPECT_NEAR(std::log2(grown), 40, 0.1);
  c.values = "long-keys";
  const Keys longer(c);
  for (int64_t t = 0; t < 64; ++t) EXPECT_LE(std::fabs(1 - longer.dot(t, t)), 1);
}

TEST(UnitRows, ThatAreReadAlongKeysTakeNoMoreThanIsThere) {
  for (const char* values : {"normal", "positive", "sparse", "ones", "long-keys", "repeated", "exact"})
    for (const bool rates : {true, false}) {
      Case c = case_of(values, 200, 8);
      c.kernel = "comba.fused_recurrent";
      if (!rates) c.without.insert("beta");
      const TensorMap inputs = draw_inputs(c, find_operator("comba"));
      const Tensor &k = inputs.at("k"), &p = inputs.at("p");
      double most = 0, least = 0;
      for (int64_t t = 0; t < 200; ++t) {
        double along = 0;
        for (int64_t i = t * 8; i < (t + 1) * 8; ++i) along += k.value(i) * p.value(i);
        if (rates) along *= inputs.at("beta").value(t);
        most = std::fmax(most, along), least = std::fmin(least, along);
      }
      EXPECT_LE(most, 1 + 1e-6) << values << rates;
      EXPECT_GE(most, rates ? 0.5 - 1e-6 : 1 - 1e-6) << values << rates;
      EXPECT_GE(least, 0) << values << rates;
    }
}

TEST(UnitRows, AreOneHotAndFewWhereValuesAreExact) {
  const int64_t K = 5, T = 100;
  const Rows rows(case_of("exact", T, K));
  int64_t removing = 0;
  for (int64_t t = 0; t < T; ++t) {
    const double length = rows.length(t);
    EXPECT_TRUE(length == 0 || length == 1) << length;
    removing += length == 1;
    for (int64_t c = 0; c < K; ++c) EXPECT_EQ(rows.b.value(t * K + c), -rows.a.value(t * K + c));
  }
  EXPECT_GT(removing, 0);
  EXPECT_LE(removing, kRemovingTokens);
}

/// Each write of a token has a key of its own, and exact values remove as often as with so many tokens.
TEST(UnitRows, OfATokensWritesAreThoseOfAsManyTokens) {
  const int64_t K = 5, T = 40, M = 3;
  for (const char* values : {"normal", "exact"}) {
    Case c = case_of(values, T, K);
    c.kernel = "gated_delta_product.fused_recurrent", c.M = M, c.H = 2;
    Case rule = c;
    rule.kernel = "gated_delta_rule.fused_recurrent", rule.T = T * M, rule.M = 0;
    const TensorMap of_writes = draw_inputs(c, find_operator("gated_delta_product")),
                    of_tokens = draw_inputs(rule, find_operator("gated_delta_rule"));
    for (const char* name : {"k", "v", "beta"})
      EXPECT_EQ(of_writes.at(name).data, of_tokens.at(name).data) << name;
  }
}

TEST(UnitRows, OfKeysHaveLengthOneAndAreReplacedAtARateOfZeroToTwo) {
  const Keys keys(case_of("normal", 400, 16));
  int64_t beyond = 0, whole = 0, none = 0, twice = 0;
  for (int64_t t = 0; t < 400; ++t) {
    const double beta = keys.beta.value(t);
    EXPECT_NEAR(keys.dot(t, t), 1, 1e-6);
    EXPECT_GE(beta, 0);
    EXPECT_LE(beta, 2);
    beyond += beta > 1, whole += beta == 1, none += beta == 0, twice += beta == 2;
  }
  for (const int64_t count : {beyond, whole, none, twice}) EXPECT_GT(count, 5);
  EXPECT_LT(beyond, 100);
}

TEST(UnitRows, AreNearlyOrExactlyTheSameForManyTokensWhereTheyShall) {
  for (const char* values : {"collinear", "repeated"}) {
    int64_t same = 0, near = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      Case c = case_of(values, 130, 64);
      c.seed = seed;
      const Keys keys(c);
      for (int64_t t = 1; t < 130; ++t) {
        EXPECT_NEAR(keys.dot(t, t), 1, 1e-6);
        const double cosine = keys.dot(t - 1, t);
        same += cosine > 1 - 1e-6, near += cosine > 0.6 && cosine < 1 - 1e-6;
      }
    }
    EXPECT_GT(same, 6 * 129 / 32) << values;
    const bool collinear = std::string(values) == "collinear";
    EXPECT_GT(collinear ? near : same, 6 * 129 / 2) << values;
  }
}

/// What a state holds along the one key is turned to and fro: beta = 2, and in rwkv7 b = -2 a.
TEST(UnitRows, TurnAStateToAndFroAlongOneKeyWhereTheyReflect) {
  const Keys keys(case_of("reflected", 130, 64));
  for (int64_t t = 0; t < 130; ++t) {
    EXPECT_NEAR(keys.dot(0, t), 1, 1e-6);
    EXPECT_EQ(keys.beta.value(t), 2);
  }
  const TensorMap inputs = draw_inputs(case_of("reflected", 130, 64), find_operator("rwkv7"));
  const Tensor &a = inputs.at("a"), &b = inputs.at("b");
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(b.value(i), -2 * a.value(i));
  // diag(e^w) - 2 a a^T would lengthen a state where w < 0.
  Case decaying = case_of("reflected", 130, 64);
  decaying.decay = "constant:-6";
  const TensorMap beside = draw_inputs(decaying, find_operator("rwkv7"));
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(beside.at("b").value(i), -beside.at("a").value(i));
}

TEST(UnitRows, OfLongKeysLetNoStateGrow) {
  Case c = case_of("long-keys", 300, 16);
  c.H = 1, c.HV = 2;
  const Keys keys(c);
  double longest = 0, shortest = 1, most = 0;
  for (int64_t t = 0; t < 300; ++t)
    for (int64_t h = 0; h < 2; ++h) {
      const double square = keys.dot(t, t), beta = keys.beta.value(2 * t + h);
      longest = std::fmax(longest, square), shortest = std::fmin(shortest, square);
      most = std::fmax(most, beta * square);
    }
  EXPECT_NEAR(longest, 64, 1e-4);
  EXPECT_NEAR(shortest, 0x1p-8, 1e-8);
  EXPECT_NEAR(most, 2, 1e-5);
}

TEST(UnitRows, AreReplacedNoMoreThanTheCaseSays) {
  for (const char* values : {"normal", "repeated", "collinear", "long-keys", "growing"}) {
    Case c = case_of(values, 200, 16);
    c.rates = 1;
    const Keys keys(c);
    double most = 0;
    for (int64_t t = 0; t < 200; ++t) {
      EXPECT_LE(keys.beta.value(t) * keys.dot(t, t), 1 + 1e-6) << values << " " << t;
      EXPECT_LE(keys.beta.value(t), 1) << values << " " << t;
      most = std::fmax(most, keys.beta.value(t));
    }
    EXPECT_GT(most, 0.9) << values;
  }
}

TEST(UnitRows, AreWhatAnElementOnDemandWouldBe) {
  Case c = case_of("normal", 30, 12);
  c.B = 2, c.H = 3;
  const TensorMap inputs = draw_inputs(c, find_operator("rwkv7"));
  const UnitRows rows(c, RandomStream(c.seed, "a"), c.K, false);
  int64_t flat = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 30; ++t)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t k = 0; k < 12; ++k, ++flat) {
          EXPECT_EQ(inputs.at("a").value(flat), static_cast<float>(rows.unit({b, t, h, k})));
          EXPECT_EQ(inputs.at("b").value(flat), static_cast<float>(rows.opposed({b, t, h, k}, 30)));
        }
}

}  // namespace
}  // namespace assay
