#include "fuzz/generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "fuzz/cost.h"
#include "fuzz/coverage.h"
#include "src/case/decay_profiles.h"
#include "tests/fuzz/subject.h"

namespace assay {
namespace {

constexpr uint64_t kSeed = 20260;

/// `count` cases as a run draws them: blocks of 32, each knowing what the blocks before the last one drew,
/// and every eighth case kept in the corpus.
std::vector<Case> drawn_in_blocks(int64_t count, uint64_t seed) {
  const Kernel kernel = test::subject_kernel();
  const Operator op = test::gla_arguments();
  std::vector<Case> cases;
  Feedback settled, last, now;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 32 == 0) settled = last, last = now;
    cases.push_back(draw_case(kernel, op, settled, seed, static_cast<uint64_t>(i)));
    count_case(now, cases.back(), op);
    if (i % 8 == 0) now.corpus.push_back(cases.back());
  }
  return cases;
}

struct Share {
  std::string what;
  double least;  ///< fraction of the cases
  std::function<bool(const Case&)> holds;
};

std::vector<Share> promised_shares() {
  std::vector<Share> shares = {
      {"a sequence of one token among others", 0.02,
       [](const Case& c) {
         bool one = false;
         for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n)
           one |= c.cu_seqlens[n + 1] == c.cu_seqlens[n] + 1;
         return one && c.cu_seqlens.size() > 2;
       }},
      {"an empty sequence among others", 0.02,
       [](const Case& c) {
         bool none = false;
         for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n) none |= c.cu_seqlens[n + 1] == c.cu_seqlens[n];
         return none && c.cu_seqlens.size() > 2;
       }},
      {"K and V above one tile, both partial", 0.02,
       [](const Case& c) { return c.K > 64 && c.V > 64 && c.K % 16 != 0 && c.V % 16 != 0; }},
      {"two chunks and a partial one", 0.20, [](const Case& c) { return c.T > 128 && c.T % 64 != 0; }},
      {"K, V or M above 128", 0.04,
       [](const Case& c) {
         return std::max({c.K, c.V, c.M}) > 128;
       }},
      {"more than 8 heads", 0.02, [](const Case& c) { return c.H > 8; }},
      {"single terms or one-hot data, and a reset, late in a long sequence", 0.03,
       [](const Case& c) {
         const std::string p = profile_name(c);
         return c.T > 512 && (p == "reset" || p == "late-reset") &&
                (c.values == "sparse" || c.values == "lone");
       }},
      {"T > 512", 0.05, [](const Case& c) { return c.T > 512; }},
      {"K != V", 0.30, [](const Case& c) { return c.K != c.V; }},
      {"packed", 0.20, [](const Case& c) { return !c.cu_seqlens.empty(); }},
      {"T = 0", 0.005, [](const Case& c) { return c.T == 0; }},
      {"an absent gate", 0.01, [](const Case& c) { return c.without.count("g") > 0; }},
      {"an initial state", 0.3, [](const Case& c) { return c.initial_state; }},
      {"more than one head", 0.2, [](const Case& c) { return c.H > 1; }},
      {"exact values", 0.05, [](const Case& c) { return c.values == "exact"; }},
      {"sparse values", 0.15, [](const Case& c) { return c.values == "sparse"; }},
      {"views", 0.15, [](const Case& c) { return !c.layout.empty(); }},
      {"views of any strides", 0.04, [](const Case& c) { return c.layout.find(':') != c.layout.npos; }},
      {"partial chunk and a strong decay", 0.10,
       [](const Case& c) {
         const std::string p = profile_name(c);
         return c.T % 64 != 0 && c.T > 16 &&
                (p == "strong" || p == "ladder" || p == "spike" || p == "edge" || p == "extreme");
       }},
  };
  for (const DecayProfile& profile : decay_profiles())
    shares.push_back({"decay " + std::string(profile.name), profile.in_domain ? 0.035 : 0.025,
                      [&](const Case& c) { return profile_name(c) == profile.name; }});
  for (Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    shares.push_back(
        {"dtype " + std::string(format(dtype).name), 0.2, [=](const Case& c) { return c.dtype == dtype; }});
    shares.push_back({"gate " + std::string(format(dtype).name), 0.2,
                      [=](const Case& c) { return c.gate_dtype == dtype; }});
  }
  return shares;
}

TEST(Generator, EveryPromisedKindOfCaseHasItsShareOfTwoThousand) {
  for (uint64_t seed : {kSeed, kSeed + 1}) {
    const std::vector<Case> cases = drawn_in_blocks(2000, seed);
    for (const Share& share : promised_shares()) {
      const auto count = std::count_if(cases.begin(), cases.end(), share.holds);
      EXPECT_GE(static_cast<double>(count) / 2000, share.least) << share.what << ", seed " << seed;
    }
  }
}

TEST(Generator, SharesHoldForTheFirstTwoHundredToo) {
  const std::vector<Case> cases = drawn_in_blocks(200, kSeed);
  for (const DecayProfile& profile : decay_profiles()) {
    const auto count = std::count_if(cases.begin(), cases.end(),
                                     [&](const Case& c) { return profile_name(c) == profile.name; });
    EXPECT_GE(count, profile.in_domain ? 4 : 2) << profile.name;
  }
}

TEST(Generator, EveryCaseIsValidWithinTheKernelsLimitsAndReplaysFromItsToken) {
  Kernel kernel = test::subject_kernel();
  kernel.limits.max_K = 96;
  kernel.limits.max_V = 40;
  kernel.limits.dtypes = {Dtype::fp16};
  const Operator op = test::gla_arguments();
  Feedback feedback;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Case c = draw_case(kernel, op, feedback, kSeed, i);
    EXPECT_NO_THROW(validate(c, op)) << token_of(c);
    EXPECT_LE(c.K, 96) << token_of(c);
    EXPECT_LE(c.V, 40) << token_of(c);
    EXPECT_EQ(c.dtype, Dtype::fp16) << token_of(c);
    EXPECT_EQ(parse_token(token_of(c)), c) << token_of(c);
    if (i % 10 == 0) feedback.corpus.push_back(c);
  }
}

TEST(Generator, TheSameSeedAndIndexDrawTheSameCaseAndOthersDiffer) {
  const std::vector<Case> first = drawn_in_blocks(300, kSeed), again = drawn_in_blocks(300, kSeed),
                          other = drawn_in_blocks(300, kSeed + 1);
  EXPECT_EQ(first, again);
  int64_t equal = 0;
  for (size_t i = 0; i < first.size(); ++i) equal += first[i] == other[i];
  EXPECT_LE(equal, 3);
}

Case draw_near(const Kernel& kernel, const Operator& op, uint64_t seed, uint64_t index) {
  return draw_case(kernel, op, {}, seed, index);
}

/// As several campaigns in one process do, each with draws of its own kind.
TEST(Generator, ThreadsThatDrawAtOnceDrawWhatOneDraws) {
  const Kernel kernel = test::subject_kernel();
  const Operator op = test::gla_arguments();
  const auto tokens = [&](uint64_t seed) {
    std::string text;
    for (uint64_t i = 0; i < 100; ++i) {
      const auto draw = seed % 2 == 0 ? draw_far_case : draw_near;
      text += token_of(draw(kernel, op, seed, i)) + "\n";
    }
    return text;
  };
  constexpr size_t kThreads = 16;
  std::vector<std::string> together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { together[i] = tokens(i); });
  }
  for (size_t i = 0; i < kThreads; ++i) EXPECT_EQ(together[i], tokens(i));
}

TEST(Generator, CasesAreCheapOnAverageAndNoneIsOutOfScale) {
  double total = 0;
  const std::vector<Case> cases = drawn_in_blocks(2000, kSeed);
  for (const Case& c : cases) {
    total += estimated_cost(c);
    EXPECT_LE(estimated_cost(c), 1.2e8) << token_of(c);
  }
  EXPECT_LE(total / 2000, 1e7);
  EXPECT_GE(total / 2000, 5e5);
}

TEST(Generator, DrawsAnewWhatTheKernelRefuses) {
  Kernel kernel = test::subject_kernel();
  const Operator op = test::gla_arguments();
  kernel.refuses = [](const ResolvedCase& c) {
    return c.sizes.K % 16 == 0 && c.case_.cu_seqlens.empty() ? "" : "takes no such case";
  };
  std::set<int64_t> widths;
  for (uint64_t i = 0; i < 100; ++i) {
    const Case c = draw_case(kernel, op, {}, kSeed, i);
    EXPECT_EQ(kernel.refuses(resolve(c, op)), "") << token_of(c);
    widths.insert(c.K);
  }
  EXPECT_GE(widths.size(), 3u);
}

TEST(Generator, EveryCombinationOfOptionalInputsComesUpInBothDirections) {
  for (const char* name : {"gla.chunk", "simple_gla.chunk", "linear_attn_norm.chunk", "gsa.chunk"}) {
    const Kernel& kernel = find_kernel(name);
    const Operator& op = find_operator(kernel.operator_name);
    Feedback feedback;
    std::set<std::string> possible, drawn;
    for (uint64_t i = 0; i < 1500; ++i) {
      const Case c = draw_case(kernel, op, feedback, kSeed, i);
      for (const Case& at : presence_lattice(c, kernel, op)) possible.insert(presence_of(at, op));
      count_case(feedback, c, op);
      drawn.insert(presence_of(c, op));
    }
    EXPECT_EQ(drawn, possible) << name;
    EXPECT_GE(possible.size(), 8u) << name;
  }
}

/// A gate per head stands in where the gate per token is absent, and decays like one.
TEST(Generator, AGateThatStandsInForAnotherKeepsItsProfile) {
  const Kernel& kernel = find_kernel("simple_gla.chunk");
  const Operator& op = find_operator("simple_gla");
  int64_t standing_in = 0, decaying = 0, neither = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    const Case c = draw_case(kernel, op, {}, kSeed, i);
    if (!c.without.contains("g")) continue;
    if (c.without.contains("g_gamma")) {
      EXPECT_EQ(c.decay, "none") << token_of(c);
      ++neither;
    } else {
      ++standing_in, decaying += c.decay != "none";
    }
  }
  EXPECT_GE(standing_in, 60);
  EXPECT_GE(decaying, standing_in / 2);
  EXPECT_GE(neither, 1);
}

}  // namespace
}  // namespace assay
