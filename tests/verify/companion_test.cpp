#include "src/verification/verify/companion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/verification/diagnosis/prediction.h"
#include "src/verification/verify/acceptance.h"
#include "tests/verify/float_recurrence.h"

namespace assay {
namespace {

TEST(Companion, CasesHaveRandomValuesSeveralHeadsAndMoreTokensAmongThemWholeChunks) {
  const Case shrunk = parse_token("gla.chunk/B1/T65/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward");
  const std::vector<Case> cases = companion_cases(shrunk, find_operator("gla"));
  ASSERT_FALSE(cases.empty());
  EXPECT_GT(cases.front().T, shrunk.T);
  EXPECT_GE(cases.front().H, 2);
  for (const Case& c : cases) EXPECT_EQ(c.values, "normal") << token_of(c);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.T % 64 == 0; }));
}

TEST(Companion, OfAShortCaseTheFirstOneIsLongerThanAChunkOf64) {
  const Case one = parse_token("gla.chunk/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  EXPECT_GT(companion_cases(one, find_operator("gla")).front().T, 64)
      << "what a chunk hands on shows in no shorter one";
}

TEST(Companion, OfManyChannelsASmallerOneComesFirst) {
  const Case wide = parse_token("gla.chunk/B1/T20/H1/K80/V80/bf16/g-fp32/none/v-ones/s1");
  const std::vector<Case> cases = companion_cases(wide, find_operator("gla"));
  EXPECT_LE(cases.front().K, 8);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.K == 80 && c.T > 20; }))
      << "a fault of the second tile needs it";
}

/// Sums over channels that are all lost where they do not fill a tile: each one is 0 as if nothing were read.
TEST(Companion, OfAnOperatorWithoutARecurrenceTheFirstOneHasMoreChannelsThanATile) {
  const Case one = parse_token("merge_heads.fused/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  const Case first = companion_cases(one, find_operator("merge_heads")).front();
  EXPECT_GT(first.K, 64);
  EXPECT_GT(first.V, 64);
  const Case state = parse_token("linear_attn.chunk/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  EXPECT_LE(companion_cases(state, find_operator("linear_attn")).front().K, 8) << "a state makes it dear";
}

TEST(Companion, PackedSequencesStayAsManyAndBecomeLongAndDifferent) {
  const Case packed = parse_token("gla.chunk/B1/T68/H1/K1/V1/cu0,1,67,68/bf16/g-fp32/none/v-ones/s1");
  const Case first = companion_cases(packed, find_operator("gla")).front();
  ASSERT_EQ(first.cu_seqlens.size(), packed.cu_seqlens.size());
  EXPECT_EQ(first.cu_seqlens.back(), first.T);
  std::vector<int64_t> lengths;
  for (size_t n = 0; n + 1 < first.cu_seqlens.size(); ++n) {
    lengths.push_back(first.cu_seqlens[n + 1] - first.cu_seqlens[n]);
    EXPECT_GE(lengths.back(), packed.cu_seqlens[n + 1] - packed.cu_seqlens[n]);
    EXPECT_GE(lengths.back(), 16);
  }
  EXPECT_NE(lengths[0], lengths[2]);
}

TEST(Companion, SomeCasesHaveChannelsThatFillNoVector) {
  const Case one = parse_token("gla.chunk/B1/T1/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  const std::vector<Case> cases = companion_cases(one, find_operator("gla"));
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                          [](const Case& c) { return c.H * c.V % 2 == 1 && c.K % 2 == 1 && c.K > 1; }));
}

/// An anchor one row late exponentiates that row's decay; an inverse of a chunk's decay all of the chunk's.
TEST(Companion, ExponentsOfOneRowAreToldFromThoseOfSeveral) {
  const auto backend = make_vm_backend({});
  const auto span_rows = [&](const char* token) {
    const Case c = parse_token(token);
    return exponents_span_rows(c, find_kernel(c.kernel), *backend);
  };
  EXPECT_EQ(span_rows("gla.chunk@S2b/B1/T10/H1/K1/V1/bf16/g-fp32/constant:-128/v-ones/s1"), false);
  EXPECT_EQ(span_rows("gla.chunk@S2c/B1/T33/H1/K1/V1/bf16/g-fp32/constant:-16/v-ones/s1/backward"), true);
}

/// The first case on which the kernel does not end is kept; those whose values are wrong are handed over
/// until one is enough.
TEST(Companion, ATrapIsKeptAndWrongValuesOfFurtherCasesAreHandedOver) {
  const Kernel kernel = float_kernel();
  const Operator& op = find_operator("gla");
  for (const bool traps : {false, true})
    for (const int enough : {0, 1, 2}) {
      FloatBackend backend;
      backend.tamper = [&](Outcome& o, int run) {
        if (traps && run == 1)
          o.trap = Trap{TrapKind::out_of_bounds, "load beyond k", {"kernels/x.cu", 12, 99, "x"}, {}, {}};
        if (run == 2 || run == 3) o.outputs.at("o").set(0, 1e3);
      };
      std::vector<std::string> wrong;
      FurtherCases further(kernel, op, backend, {.seconds = 60}, [&](const Companion& c) {
        EXPECT_FALSE(c.failing(op).wrong().empty());
        EXPECT_FALSE(c.exact) << "no program of its own to run";
        wrong.push_back(c.text);
        return static_cast<int>(wrong.size()) == enough;
      });
      further.run_companions(float_case());
      EXPECT_EQ(further.trapped().has_value(), traps);
      EXPECT_EQ(wrong.size(), enough == 1 ? 1u : 2u);
      EXPECT_EQ(backend.runs == enough + 1, enough > 0) << "no further case is run then";
    }
}

TEST(Companion, LongCasesWithWeakDecaysComeBeforeStrongOnesInTheirOwnFormatAndInFp32) {
  const Case shrunk = parse_token("gla.chunk/B1/T13/H1/K1/V1/bf16/g-fp32/extreme:100/v-ones/s1");
  const std::vector<Case> cases = companion_cases(shrunk, find_operator("gla"));
  ASSERT_GE(cases.size(), 4u);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(cases[i].decay, "mild");
    EXPECT_GT(cases[i].T, 64);
  }
  EXPECT_EQ(cases[0].dtype, Dtype::bf16);
  EXPECT_EQ(cases[1].dtype, Dtype::fp32);
  EXPECT_EQ(cases[2].decay, "logsigmoid");
  EXPECT_EQ(cases[3].decay, shrunk.decay) << "a fault of strong decays alone shows nowhere else";
}

/// What a property ran is judged on the inputs that it ran with.
TEST(Companion, ARunThatAPropertyDerivedIsJudgedOnItsInputs) {
  const Kernel kernel = float_kernel();
  const Operator& op = find_operator("gla");
  FloatBackend backend;
  const Case c = float_case();
  DerivedRun run{c, draw_inputs(c, op)};
  for (const bool tampered : {false, true}) {
    backend.tamper = [&](Outcome& o, int) {
      if (tampered) o.outputs.at("o").set(0, 1e3);
    };
    int wrong = 0;
    FurtherCases further(kernel, op, backend, {.seconds = 60}, [&](const Companion& companion) {
      EXPECT_NE(companion.text.find("derived"), std::string::npos);
      return ++wrong > 0;
    });
    run.inputs.at("q") = mapped(run.inputs.at("q"), [](double, int64_t) { return 0.25; });
    further.run({run});
    EXPECT_EQ(wrong, tampered ? 1 : 0);
  }
}

/// Whether the element that an overflow makes NaN stays finite among zero rows.
std::optional<bool> padded(const std::string& token, const std::string& output) {
  const Case c = parse_token(token);
  const Kernel kernel = find_kernel(c.kernel);
  const TensorMap inputs = draw_inputs(accepted(c, kernel));
  return finite_when_padded(c, kernel, inputs, *make_vm_backend({}), output, 0);
}

/// Rows behind the end move the blocks of a gradient that is made from the last row on, and such before the
/// first those of what is made from there.
TEST(Companion, ZeroRowsTellDeadRowsFromBlocksThatTheyMove) {
  const std::string anchor = "/bf16/g-fp32/none/v-ones/s1/backward/w@0,0,0,0=-128";
  EXPECT_EQ(padded("rwkv6.chunk@S2b/B1/T9/H1/K1/V1" + anchor, "dv"), false);
  const std::string dead = "/bf16/g-fp32/constant:-16/v-ones/s1";
  EXPECT_EQ(padded("gla.chunk@S2a/B1/T6/H1/K1/V1" + dead, "final_state"), true);
}

}  // namespace
}  // namespace assay
