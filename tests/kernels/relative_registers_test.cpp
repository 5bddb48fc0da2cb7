#include "kernels/relative_registers.h"

#include <gtest/gtest.h>

#include <random>

namespace assay {
namespace {

TEST(RelativeRegisters, MakeStepsOfAnUnrolledLoopAlike) {
  const auto of = [](const char* text) { return with_relative_registers(text).value(); };
  EXPECT_EQ(of("add %f7, %f5, %f2;\nadd %f17, %f15, %f12;\n"),
            "add %f\x01"
            "7, %f\x02"
            "2, %f\x02"
            "5;\nadd %f\x01"
            "10, %f\x02"
            "2, %f\x02"
            "5;\n");
  EXPECT_EQ(of("\t@%p3 add %r9, %r4;\n\tmov %r2, %p1;"),
            "\t@%p\x01"
            "3 add %r\x01"
            "9, %r\x01"
            "4;\n\tmov %r\x01"
            "2, %p\x01"
            "1;")
      << "a line with a predicate names nothing that is counted from";
}

TEST(RelativeRegisters, AreTheTextAgain) {
  for (const char* text : {"", "%", "%f", "%f1", "%f0", "%f007, %f1234567890123", "%tid.x %clock64 100%",
                           "\n\n@%p1\n %rd1%rd2\n", "%F3 %f3x"})
    EXPECT_EQ(with_absolute_registers(with_relative_registers(text).value()), text);
  std::mt19937 random(1);
  const std::string letters = "%%%ffrp0123456789 ,;\n\n\t@";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 60; n; --n) text += letters[random() % letters.size()];
    const std::optional<std::string> relative = with_relative_registers(text);
    ASSERT_TRUE(relative) << text;
    ASSERT_EQ(with_absolute_registers(*relative), text) << text;
  }
}

TEST(RelativeRegisters, AreNothingOfTextsThatHoldTheirBytes) {
  EXPECT_FALSE(with_relative_registers("add \x01;"));
  EXPECT_FALSE(with_relative_registers("\x02"));
  EXPECT_FALSE(with_absolute_registers("%f\x01;"));
  EXPECT_FALSE(
      with_absolute_registers("%f\x02"
                              "0012"));
}

}  // namespace
}  // namespace assay
