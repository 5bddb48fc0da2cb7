#include "src/capsule/size_draw.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(SizeDraw, StaysWithinWhatTheFileAllows) {
  const NamedSize size{"n", 48, 16, 400, 16};
  std::set<int64_t> seen;
  for (uint64_t seed = 0; seed < 400; ++seed) seen.insert(draw_size(size, RandomStream(seed, "draw"), 0));
  for (const int64_t n : seen) EXPECT_TRUE(n >= 16 && n <= 400 && n % 16 == 0) << n;
  for (const int64_t edge : {16, 32, 48, 64, 128, 256}) EXPECT_TRUE(seen.contains(edge)) << edge;
  EXPECT_EQ(fitted_size(size, 1), 16);
  EXPECT_EQ(fitted_size(size, 63), 48);
}

TEST(SizeDraw, WhatDoesNotVaryKeepsItsValue) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(draw_size({"n", 7, 7, 7, 1}, RandomStream(seed, "draw"), 0), 7);
}

}  // namespace
}  // namespace assay
