#include "src/case/override.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

TEST(Override, ReadsTheArgumentTheIndexAndTheValue) {
  const Override change = parse_override("g[0,16,0,3]=-90.5");
  EXPECT_EQ(change.argument, "g");
  EXPECT_EQ(change.index, (std::vector<int64_t>{0, 16, 0, 3}));
  EXPECT_EQ(change.value, -90.5);
  EXPECT_TRUE(std::isnan(parse_override("q[0]=nan").value));
  EXPECT_EQ(parse_override("q[0]=-inf").value, -INFINITY);
}

TEST(Override, MalformedTextsAreBadInput) {
  for (const char* text :
       {"", "g", "g[]=1", "g[0=1", "g[0]", "g[0]=", "[0]=1", "g[0,]=1", "g[a]=1", "g[0]=1x", "]=g[0]"}) {
    EXPECT_THROW(parse_override(text), BadInput) << text;
  }
}

TEST(Override, ElementsThatAreNotThereAreBadInput) {
  TensorMap inputs;
  inputs.emplace("g", Tensor("g", Dtype::fp32, {{"T", 4}, {"K", 2}}));
  for (const char* text : {"g[4,0]=1", "g[0,2]=1", "g[-1,0]=1", "g[0]=1", "g[0,0,0]=1", "q[0,0]=1"}) {
    EXPECT_THROW(apply_override(parse_override(text), inputs), BadInput) << text;
  }
  apply_override(parse_override("g[3,1]=-2"), inputs);
  EXPECT_EQ(inputs.at("g").value(7), -2);
}

}  // namespace
}  // namespace assay
