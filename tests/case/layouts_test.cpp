#include "src/case/layouts.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/case/gated_operator.h"

namespace assay {
namespace {

Case case_with(const std::string& layout) {
  Case c;
  c.kernel = "gla.chunk";
  c.B = 2, c.T = 5, c.H = 3, c.K = 8, c.V = 6, c.initial_state = true;
  c.layout = layout;
  return c;
}

std::optional<TensorLayout> of(const std::string& layout, const std::string& input) {
  const Operator op = gated_operator();
  for (const SizedArgument& argument : resolve_unchecked(case_with(layout), op).inputs)
    if (argument.spec.name == input) return argument.layout;
  return std::nullopt;
}

TEST(Layouts, LieWhereTheirNamesSay) {
  const struct {
    std::string layout, input;
    std::vector<int64_t> strides;
    int64_t offset, elements;
  } rows[] = {
      {"heads-first", "q", {120, 8, 40, 1}, 0, 240},
      {"joined", "v", {270, 54, 6, 1}, 18, 540},
      {"padded", "v", {120, 24, 8, 1}, 0, 240},
      {"padded", "q", {240, 48, 16, 1}, 0, 480},
      {"transposed", "initial_state", {144, 48, 1, 8}, 0, 288},
      {"v=1000:100:10:1", "v", {1000, 100, 10, 1}, 0, 1426},
      {"heads-first,v=padded", "v", {120, 24, 8, 1}, 0, 240},
  };
  for (const auto& row : rows) {
    const auto layout = of(row.layout, row.input);
    ASSERT_TRUE(layout) << row.layout;
    EXPECT_EQ(layout->strides, row.strides) << row.layout;
    EXPECT_EQ(layout->offset, row.offset) << row.layout;
    EXPECT_EQ(layout->elements, row.elements) << row.layout;
  }
}

TEST(Layouts, NoRowOverlapsOnAnyShapeOfAnInput) {
  for (const LayoutRow& row : layouts())
    for (const int64_t T : {0, 1, 7})
      for (const std::vector<Axis>& axes :
           std::vector<std::vector<Axis>>{{{"B", 2}, {"T", T}, {"H", 3}, {"K", 9}},
                                          {{"B", 2}, {"T", T}, {"D", 8}},
                                          {{"B", 1}, {"T", T}, {"H", 1}},
                                          {{"N", 2}, {"H", 3}, {"K", 4}, {"V", 5}},
                                          {{"H", 3}},
                                          {{"H*V", 6}, {"K", 4}}}) {
        const auto layout = row.layout(axes);
        if (!layout) continue;
        EXPECT_EQ(stride_fault(axes, layout->strides), "") << row.name;
        int64_t size = 1;
        for (const Axis& axis : axes) size *= axis.size;
        EXPECT_TRUE(size == 0 || layout->position(size - 1) < layout->elements) << row.name;
      }
}

TEST(Layouts, WhatLiesRowByRowIsNoView) {
  EXPECT_FALSE(of("", "q"));
  EXPECT_FALSE(of("dense", "q"));
  EXPECT_FALSE(of("q=120:24:8:1", "q"));
  EXPECT_FALSE(of("heads-first", "initial_state")) << "what has no tokens stays as it is";
  EXPECT_FALSE(of("heads-first,q=dense", "q"));
}

TEST(Layouts, TextComesBackAsItWas) {
  for (const std::string text : {"heads-first", "q=padded", "joined,q=heads-first,k=1:2:3:4"})
    EXPECT_EQ(layout_text(parse_layout(text)), text);
}

TEST(Layouts, WhatIsNoneIsRefusedInOneLine) {
  const std::pair<std::string, std::string> rows[] = {
      {"heads_first", "unknown layout 'heads_first': did you mean 'heads-first'?"},
      {"q=", "unknown layout '': there are dense, heads-first, joined, padded, sliced, transposed"},
      {"=padded", "layout '=padded': names no input; write it as q=heads-first"},
      {"100:10:1", "layout '100:10:1': strides are those of one input; write them as q=4096:64:64:1"},
      {"q=100:x:1",
       "unknown layout '100:x:1': there are dense, heads-first, joined, padded, sliced, transposed"},
      {"q=100::1:1", "layout 'q=100::1:1': '' is not a stride; write them as q=4096:64:64:1"},
      {"q=99999999999999999999:1",
       "layout 'q=99999999999999999999:1': '99999999999999999999' is not a stride; "
       "write them as q=4096:64:64:1"},
      {"padded,joined", "layout 'padded,joined': every input is given two"},
      {"q=padded,q=joined", "layout 'q=padded,q=joined': q is given two"},
      {"x=padded", "layout: unknown input of gated 'x': did you mean 'q'?"},
      {"initial_state=heads-first",
       "layout heads-first of initial_state: needs a token axis before a head axis"},
      {"q=24:8:1", "strides of q: 3 strides for 4 axes"},
      {"q=120:20:8:1",
       "strides of q: axis T has stride 20, but K and H span 24 elements: elements overlap or interleave"},
      {"q=120:24:0:1",
       "strides of q: axis H has stride 0 along 3 elements: a tensor expanded over an axis is not taken, "
       "copy it"},
      {"q=120:-24:8:1", "strides of q: axis T has the negative stride -24: copy the tensor forwards"},
  };
  for (const auto& [layout, message] : rows) try {
      validate(case_with(layout), gated_operator());
      FAIL() << layout;
    } catch (const BadInput& error) {
      EXPECT_EQ(error.what(), message);
    }
}

TEST(Layouts, SomeBlocksOfARunTakeNoViews) {
  Case c = case_with("padded");
  c.blocks = "0";
  EXPECT_THROW(validate(c, gated_operator()), BadInput);
  c.layout.clear();
  EXPECT_NO_THROW(validate(c, gated_operator()));
}

}  // namespace
}  // namespace assay
