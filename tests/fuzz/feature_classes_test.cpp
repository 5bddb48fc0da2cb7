#include "fuzz/feature_classes.h"

#include <gtest/gtest.h>

#include <set>

#include "fuzz/choice.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

TEST(FeatureClasses, EverySizeHasAClassAndEveryClassItsLeastAndLargest) {
  for (const char axis : {'K', 'V', 'M', 'H'})
    for (int64_t size = 1; size < 2000; ++size) EXPECT_NE(size_class(axis, size), nullptr) << axis << size;
  for (int64_t T = 0; T < 5000; ++T) EXPECT_NE(size_class('T', T), nullptr) << T;
  for (const SizeClass& row : size_classes()) {
    EXPECT_FALSE(row.why.empty()) << row.name;
    EXPECT_LE(row.least, row.most) << row.name;
    for (const char axis : row.axes) {
      EXPECT_EQ(size_class(axis, row.least), &row) << axis << row.least;
      EXPECT_EQ(size_class(axis, row.most), &row) << axis << row.most;
    }
  }
}

TEST(FeatureClasses, TheNextSizeAboveALimitIsOfAnotherClass) {
  for (const int64_t limit : {15, 64, 128, 192, 256})
    EXPECT_NE(size_class('K', limit), size_class('K', limit + 1)) << limit;
  for (const int64_t limit : {1, 8, 16})
    EXPECT_NE(size_class('H', limit), size_class('H', limit + 1)) << limit;
  for (const int64_t limit : {15, 63, 64, 127, 512, 1024})
    EXPECT_NE(size_class('T', limit), size_class('T', limit + 1)) << limit;
  EXPECT_EQ(size_class('T', 191), size_class('T', 447)) << "63 mod 64";
}

/// What a class draws is of that class, of every kernel and feature, where the case can have it at all.
TEST(FeatureClasses, WhatAClassDrawsIsOfThatClass) {
  const Feedback nothing;
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    Case c = draw_case(kernel, op, {}, 3, 5);
    c.direction = Direction::both;
    c.without.clear();
    c.H = uses_axis(op, "H") ? 2 : 1, c.HV = uses_axis(op, "HV") ? 2 : 0;
    c.T = 200, c.B = 2, c.cu_seqlens.clear(), c.layout.clear();
    for (const Feature& feature : features()) {
      std::set<std::string> names;
      for (const std::string& name : feature.classes(kernel, op)) {
        EXPECT_TRUE(names.insert(name).second) << kernel.name << " " << feature.name << " " << name;
        const bool needs_heads = feature.name == "layout" && name == "heads-first" && !uses_axis(op, "H");
        if (needs_heads || (feature.name == "present" && name.find("dfinal") == name.npos)) continue;
        for (uint64_t seed = 0; seed < 8; ++seed) {
          const Case drawn = drawn_from(rc::Random(seed), [&] {
            Case drawn = c;
            feature.draw(drawn, {kernel, op, nothing}, name);
            return drawn;
          });
          EXPECT_EQ(feature.class_of(drawn, op), name) << token_of(drawn) << " " << feature.name;
          EXPECT_LE(drawn.K, kernel.limits.max_K);
          EXPECT_LE(drawn.V, kernel.limits.max_V);
        }
      }
    }
  }
}

TEST(FeatureClasses, ALayoutThatChangesNoInputIsDense) {
  const Operator& op = find_operator("gla");
  const auto layout_of = [&](const std::string& token) {
    for (const Feature& feature : features())
      if (feature.name == "layout") return feature.class_of(parse_token(token), op);
    return std::string();
  };
  EXPECT_EQ(layout_of("gla.chunk/B1/T70/H1/K64/V64/bf16/mild/l-heads-first"), "dense");
  EXPECT_EQ(layout_of("gla.chunk/B1/T70/H2/K64/V64/bf16/mild/l-heads-first"), "heads-first");
  EXPECT_EQ(layout_of("gla.chunk/B1/T70/H2/K4/V4/bf16/mild/l-k=560:8:4:1"), "dense");
  EXPECT_EQ(layout_of("gla.chunk/B1/T70/H2/K4/V4/bf16/mild/l-k=1120:16:8:1,v=padded"), "any strides");
}

}  // namespace
}  // namespace assay
