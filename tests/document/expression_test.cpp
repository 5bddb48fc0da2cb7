#include "src/base/document/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace expression_test {

const ExpressionScope kScope{{{"T", 100}, {"K", 60}, {"packed", 0}}, {100, 0, 17}};

TEST(Expression, HasTheValueThatItsArithmeticSays) {
  const std::pair<const char*, double> rows[] = {
      {"T", 100},
      {"2 * T + K", 260},
      {"(K + 2) * 2^-24", 62 * 0x1p-24},
      {"ceil_div(T, 64)", 2},
      {"ceil_div(128, 64)", 2},
      {"floor_div(T, 64)", 1},
      {"round_up(K, 16)", 64},
      {"next_power_of_two(K)", 64},
      {"next_power_of_two(64)", 64},
      {"T % 64", 36},
      {"K % 16 == 0", 0},
      {"K % 20 == 0 && packed == 0", 1},
      {"min(T, K, 7)", 7},
      {"packed ? 3 : 5", 5},
      {"chunks(16)", 9},  // 7 + 0 + 2: each sequence has its own partial chunk
      {"chunks(1)", 117},
      {"!packed && !(T == 3)", 1},
      {"!T == 0", 1},
      {"-2^2", -4},
      {"2^3^2", 512},
      {"2^-1", 0.5},
      {"1 + 2 * 3 - 4 / 2", 5},
      {"10 - 2 - 3", 5},
      {"12 / 2 / 3", 2},
      {"7 * 5 % 4", 3},
      {"-(1 - 3)", 2},
      {".5 * 4e2", 200},
      {"T > 50 || packed", 1},
      {"1 || 0 && 0", 1},
      {"3 <= 3 == 1", 1},
      {"1 - 1 < 1", 1},
      {"0 ? 1 : 0 ? 2 : 3", 3},
      {"max(1, min(2, 3))", 2},
      {"sum(1, 2, 3) + avg(1, 3)", 8},
      {"abs(-3) + sign(-2) + rint(1.6) + log2(8) + sqrt(16)", 11},
  };
  for (const auto& [text, value] : rows) EXPECT_EQ(evaluate(text, kScope, "here"), value) << text;
}

TEST(Expression, ThatCannotBeEvaluatedIsNamedWithPlaceAndKnownNames) {
  for (const char* text : {"", "T +", "T * Q", "ceil_div(T)", "(T", "T = 3", "T; K", "ceil_div(1, 2, 3)",
                           "T(1)", "1 2", "*1", "T ? 1", "cei_div(T, 2)"}) {
    try {
      evaluate(text, kScope, "plan.json at /launches/0/grid");
      ADD_FAILURE() << "\"" << text << "\" was evaluated";
    } catch (const BadInput& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("plan.json at /launches/0/grid: ", 0), 0u) << message;
      EXPECT_NE(message.find("K, T, packed"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
  EXPECT_THROW(evaluate("1, 2", kScope, "here"), BadInput);
  for (const char* deep : {"(", "-", "T ? T : ", "2^"})
    EXPECT_THROW(
        [&] {
          std::string text;
          for (int i = 0; i < 100'000; ++i) text += deep;
          evaluate(text + "1", kScope, "here");
        }(),
        BadInput)
        << deep;
}

TEST(Expression, WholeNumbersOutsideTheirRangeAreRefused) {
  EXPECT_EQ(evaluate_integer("T * 2", kScope, "here", 1, 200), 200);
  for (const char* text : {"T * 2 + 1", "0", "K / 7", "1 / 0", "0 / 0", "-1", "chunks(0)"})
    EXPECT_THROW(evaluate_integer(text, kScope, "here", 1, 200), BadInput) << text;
}

}  // namespace expression_test
}  // namespace assay
