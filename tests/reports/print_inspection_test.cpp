#include "reports/print_inspection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/result/inspection.h"
#include "tests/reports/console_text.h"

namespace assay {
namespace print_inspection_test {

std::string text_of(const TensorMap& tensors) {
  Case base;
  base.kernel = "inspect";
  const nlohmann::json document =
      to_json(inspect("x.npz", tensors, fit_operators(tensors, base, 0, "x.npz")));
  return test::printed([&](const Console& console) { print_inspection(console, document); });
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

Tensor of(Dtype dtype, std::vector<int64_t> shape, std::initializer_list<double> values = {}) {
  std::vector<Axis> axes;
  for (const int64_t size : shape) axes.push_back({"", size});
  Tensor tensor("", dtype, axes);
  int64_t i = 0;
  for (const double x : values) tensor.set(i++, x);
  return tensor;
}

TensorMap inputs_of_gla() {
  TensorMap tensors;
  for (const char* name : {"q", "k", "v", "o"}) tensors[name] = of(Dtype::bf16, {1, 3, 2, 4});
  return tensors;
}

TEST(PrintInspection, RangesAreOfTheFiniteValuesAndEveryOtherClassIsCountedWithItsFirst) {
  const std::string text =
      text_of({{"x", of(Dtype::fp32, {2, 4}, {0, NAN, HUGE_VAL, -HUGE_VAL, 0x1p-140, -3, NAN, 0.75})}});
  EXPECT_TRUE(text.starts_with("x  fp32 [2,4]  -3 to 0.75, zeros 12.5 %, subnormals 12.5 %\n")) << text;
  EXPECT_TRUE(holds(text,
                    "\n  2 nan, the first x[0,1]\n  1 inf, the first x[0,2]\n"
                    "  1 -inf, the first x[0,3]\n"))
      << text;
}

TEST(PrintInspection, WhatHasNoRangeIsGivenNone) {
  EXPECT_TRUE(text_of({{"x", of(Dtype::fp32, {0})}}).starts_with("x  fp32 [0]  empty\n"));
  const std::string text = text_of({{"x", of(Dtype::bf16, {1}, {NAN})}});
  EXPECT_TRUE(text.starts_with("x  bf16 [1]  nothing finite, subnormals 0 %\n  1 nan, the first x[0]\n"))
      << text;
  EXPECT_TRUE(text_of({{"n", of(Dtype::i64, {2}, {3, 5})}}).starts_with("n  i64 [2]  3 to 5, zeros 0 %\n"))
      << "integers have no subnormals";
}

TEST(PrintInspection, AnOperatorThatFitsIsGivenItsSizesAndOthersSayWhatTheyLack) {
  TensorMap tensors = inputs_of_gla();
  tensors["extra"] = of(Dtype::fp32, {5});
  const std::string text = text_of(tensors);
  EXPECT_TRUE(holds(text, "fits gla  B=1 T=3 H=2 K=4 V=4")) << text;
  EXPECT_TRUE(holds(text, "q, k, v; its outputs o; not used: extra\n")) << text;
  EXPECT_TRUE(holds(text, ": no tensor ")) << text;
}

TEST(PrintInspection, TensorsThatDoNotGoTogetherSayWhy) {
  TensorMap tensors = inputs_of_gla();
  tensors["k"] = of(Dtype::bf16, {1, 3, 2, 5});
  const std::string text = text_of(tensors);
  EXPECT_FALSE(holds(text, "fits gla ")) << text;
  EXPECT_TRUE(holds(text, "not gla: ")) << text;
}

TEST(PrintInspection, WhereNoNameIsAnOperatorsTheWayOutIsNamed) {
  EXPECT_TRUE(holds(text_of({{"query_states", of(Dtype::fp32, {2})}}), "--map q=query_states\n"));
  EXPECT_FALSE(holds(text_of(inputs_of_gla()), "--map"));
}

TEST(PrintInspection, AHostileNameStaysOnItsLine) {
  const std::string text = text_of({{"a\n\x1b[31m", of(Dtype::fp32, {1}, {NAN})}});
  EXPECT_FALSE(holds(text, "\x1b")) << text;
  EXPECT_TRUE(text.starts_with("a\\x0a\\x1b[31m  fp32 [1]")) << text;
}

}  // namespace print_inspection_test
}  // namespace assay
