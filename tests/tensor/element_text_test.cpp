#include "src/base/tensor/element_text.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

const std::vector<Axis> kTable{{"rows", 3}, {"columns", 5}};

TEST(ElementText, IsTheInverseOfAnElementsName) {
  const Tensor tensor("y", Dtype::fp32, kTable);
  for (int64_t i = 0; i < tensor.size(); ++i) EXPECT_EQ(flat_element(tensor.element_name(i), kTable), i);
  EXPECT_EQ(flat_element("y[2,4]", kTable), 14);
}

TEST(ElementText, WhatIsNoElementIsRefused) {
  for (const char* text : {"y", "y[1", "y[3,0]", "y[0,5]", "y[-1,0]", "y[1]", "y[1,2,3]", "y[a,0]", "y[]"})
    EXPECT_THROW(flat_element(text, kTable), BadInput) << text;
}

}  // namespace
}  // namespace assay
