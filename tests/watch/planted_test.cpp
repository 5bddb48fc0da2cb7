// Births planted in kernels: one instruction changed, or inputs; all are noted at their line.
#include <gtest/gtest.h>

#include <set>

#include "tests/watch/traced_and_noted.h"
#include "tools/watch/plants.h"

namespace assay::watch {
namespace planted_test {

std::string text_of(const BirthLines& lines) {
  std::string text;
  for (const auto& [line, born] : lines)
    text += line + (born.first ? " NaN" : "") + (born.second ? " infinity" : "") + "; ";
  return text;
}

TEST(Planted, TwentyTwoKindsAreNotedAtTheirLineInEightKernels) {
  std::set<std::string> kinds, kernels;
  for (const PlantedCase& planted_case : planted_cases()) {
    const std::string name = planted_case.plant->kind + (" in " + planted_case.kernel);
    const std::optional<PlantedProgram> made = planted(planted_case);
    ASSERT_TRUE(made) << name;
    const TracedAndNoted noted = traced_and_noted(made->program, made->inputs);
    EXPECT_EQ(text_of(made->traced), text_of(noted.noted)) << name;
    EXPECT_TRUE(noted.same_outputs && noted.same_trap) << name;
    kinds.insert(planted_case.plant->kind), kernels.insert(planted_case.kernel);
  }
  EXPECT_EQ(kinds.size(), 22u);
  EXPECT_EQ(kernels.size(), 8u);
}

TEST(Planted, TheHistoricNanOfRwkv6IsNotedAtItsLine) {
  const PlantedProgram made = historic_nan();
  const TracedAndNoted noted = traced_and_noted(made.program, made.inputs);
  EXPECT_EQ(text_of(made.traced), text_of(noted.noted));
  bool infinity = false, nan = false;
  for (const auto& [line, born] : noted.noted) {
    infinity |= line.starts_with(kHistoricLine) && born.second;
    nan |= born.first;
  }
  EXPECT_TRUE(infinity && nan);
}

}  // namespace planted_test
}  // namespace assay::watch
