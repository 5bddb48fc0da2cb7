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
  for (const auto& [text, message] :
       {std::pair{"y[0", "element 'y[0': it does not end with ']'; the last one is y[2,4]"},
        {"y", "element 'y': no index in brackets follows the name; the last one is y[2,4]"}})
    try {
      flat_element(text, kTable);
      ADD_FAILURE() << text;
    } catch (const BadInput& e) {
      EXPECT_EQ(std::string(e.what()), message);
    }
}

}  // namespace
}  // namespace assay
