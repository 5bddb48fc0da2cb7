#include "fuzz/feature_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

size_t place(const FeaturePairs& pairs, std::string_view feature, std::string_view name) {
  for (size_t i = 0; i < pairs.classes().size(); ++i)
    if (pairs.classes()[i].feature->name == feature && pairs.classes()[i].name == name) return i;
  ADD_FAILURE() << "no class " << feature << " " << name;
  return 0;
}

bool possible(const FeaturePairs& pairs, std::string_view feature, std::string_view name,
              std::string_view other, std::string_view of_other) {
  return pairs.is_possible(place(pairs, feature, name), place(pairs, other, of_other));
}

TEST(FeaturePairs, WhatNoCaseCanHaveIsNotCounted) {
  const FeaturePairs pairs(find_kernel("gla.chunk"), find_operator("gla"));
  EXPECT_TRUE(possible(pairs, "values", "exact", "decay", "none"));
  EXPECT_FALSE(possible(pairs, "values", "exact", "decay", "mild"));
  EXPECT_TRUE(possible(pairs, "values", "exact", "present", "g"));
  EXPECT_FALSE(possible(pairs, "present", "initial_state", "decay", "mild")) << "nothing decays";
  EXPECT_FALSE(possible(pairs, "direction", "forward", "present", "g dfinal_state"));
  EXPECT_TRUE(possible(pairs, "direction", "both", "present", "g dfinal_state"));
  EXPECT_FALSE(possible(pairs, "H", "1", "layout", "heads-first")) << "as dense";
  EXPECT_FALSE(possible(pairs, "K", "1 to 15", "K", "65 to 128"));
}

TEST(FeaturePairs, ExactValuesMeetEveryFormatPairWhereTheArithmeticCanBeExact) {
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    if (op.inexact) continue;
    const FeaturePairs pairs(kernel, op);
    for (size_t i = 0; i < pairs.classes().size(); ++i) {
      if (pairs.classes()[i].feature->name != "formats") continue;
      EXPECT_TRUE(pairs.is_possible(place(pairs, "values", "exact"), i))
          << kernel.name << " " << pairs.classes()[i].name;
    }
  }
}

TEST(FeaturePairs, SizesMeetEachOtherUpToTheKernelsLimits) {
  const FeaturePairs pairs(find_kernel("rwkv7.fused_recurrent"), find_operator("rwkv7"));
  for (const char* width : {"129 to 192", "193 to 256"})
    for (const auto& [feature, name] : {std::pair{"V", "1 to 15"},
                                        {"V", "193 to 256"},
                                        {"H", "above 16"},
                                        {"T", "above 1024"},
                                        {"T", "63 mod 64 to 511"}})
      EXPECT_TRUE(possible(pairs, "K", width, feature, name)) << width << " " << feature << " " << name;
  for (const FeatureClass& row : pairs.classes()) EXPECT_NE(row.name, "above 256");
}

TEST(FeaturePairs, WhatTheKernelRefusesIsNotCounted) {
  Kernel kernel = find_kernel("linear_attn.chunk");
  const Operator& op = find_operator("linear_attn");
  const int64_t all = FeaturePairs(kernel, op).possible();
  kernel.refuses = [](const ResolvedCase& resolved) {
    const Case& c = resolved.case_;
    if (!c.cu_seqlens.empty()) return "takes no packed sequences";
    return c.K == 64 && c.V == 64 && c.T % 64 == 0 ? "" : "takes K = V = 64 and whole chunks only";
  };
  const FeaturePairs pairs(kernel, op);
  EXPECT_LT(pairs.possible(), all / 2);
  EXPECT_FALSE(possible(pairs, "packed", "yes", "H", "1"));
  EXPECT_FALSE(possible(pairs, "K", "65 to 128", "H", "1"));
  EXPECT_TRUE(possible(pairs, "T", "whole chunks to 512", "H", "9 to 16"));
  EXPECT_TRUE(possible(pairs, "T", "above 1024", "layout", "padded")) << "T = 1088";
}

TEST(FeaturePairs, CountsThePairsOfCasesThatRan) {
  FeaturePairs pairs(find_kernel("gla.chunk"), find_operator("gla"));
  const int64_t features = 11, each = features * (features - 1) / 2;
  EXPECT_EQ(pairs.features(), static_cast<size_t>(features));
  const Case c = parse_token("gla.chunk/B1/T127/H9/K129/V1/fp16/g-bf16/mild/s1/h0");
  pairs.note_drawn(c);
  EXPECT_EQ(pairs.drawn(), each);
  EXPECT_EQ(pairs.covered(), 0);
  pairs.note_covered(c);
  pairs.note_covered(c);
  EXPECT_EQ(pairs.covered(), each);
  EXPECT_EQ(std::ssize(pairs.missing()), pairs.possible() - each);
  const auto missing = pairs.missing();
  const auto is_missing = [&](const char* text) {
    return std::find(missing.begin(), missing.end(), text) != missing.end();
  };
  EXPECT_FALSE(is_missing("H 9 to 16 with K 129 to 192"));
  EXPECT_TRUE(is_missing("H 9 to 16 with K 193 to 256"));
  pairs.note_covered(parse_token("gla.chunk/B1/T127/H9/K129/V1/fp16/g-bf16/-inf/s1/h0"));
  EXPECT_EQ(pairs.covered(), each) << "a profile outside the domain is of no class";
}

}  // namespace
}  // namespace assay
