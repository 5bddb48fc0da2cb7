#include "src/campaign/sweep/dimension.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using Values = std::vector<std::string>;

TEST(Dimension, RangesAndListsGiveTheirValues) {
  const std::pair<const char*, Values> table[] = {
      {"length=64..512", {"64", "128", "256", "512"}},
      {"length=64..500", {"64", "128", "256"}},
      {"length=1..81*9", {"1", "9", "81"}},
      {"length=10..40+10", {"10", "20", "30", "40"}},
      {"length=7,64..128", {"7", "64", "128"}},
      {"dtype=bf16,fp32", {"bf16", "fp32"}},
      {"decay=ladder:8;none", {"ladder:8", "none"}},
      {"cu-seqlens=0,15,100;0,50,100", {"0,15,100", "0,50,100"}},
      {"initial-state=no,yes", {"no", "yes"}},
  };
  for (const auto& [text, values] : table) EXPECT_EQ(parse_dimension(text).values, values) << text;
}

TEST(Dimension, WhatIsNoRangeIsRefused) {
  for (const char* text :
       {"length", "length=", "lenght=1,2", "length=4..2", "length=0..8", "length=1..8*1", "length=1..8+0",
        "length=x", "dtype=fp8", "length=64,64", "initial-state=maybe", "length=1..9999999+1"})
    EXPECT_THROW(parse_dimension(text), BadInput) << text;
}

TEST(Dimension, AppliesToTheCase) {
  Case c;
  apply(c, "length", "300");
  apply(c, "dtype", "fp16");
  apply(c, "cu-seqlens", "0,15,100");
  apply(c, "without", "g");
  EXPECT_EQ(c.T, 100);
  EXPECT_EQ(c.dtype, Dtype::fp16);
  EXPECT_EQ(c.cu_seqlens, (std::vector<int64_t>{0, 15, 100}));
  EXPECT_EQ(c.without, std::set<std::string>{"g"});
}

}  // namespace
}  // namespace assay
