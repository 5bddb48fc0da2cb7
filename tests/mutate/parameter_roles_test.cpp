// What the launches of a function say of its parameters.
#include "src/campaign/mutate/parameter_roles.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

/// f(number, table) of a case of these widths, M as K.
CleanCase launched(int64_t K, int64_t V, int32_t number, int64_t entry) {
  CleanCase clean;
  clean.case_.K = K, clean.case_.V = V;
  Tensor table("table", Dtype::i64, {{"entry", 1}});
  table.as<int64_t>()[0] = entry;
  clean.plan.constants = {table};
  clean.plan.launches.push_back(
      {.module = "m", .function = "f", .arguments = {number, PointerArgument{"table", 0}}});
  return clean;
}

ParameterRoles roles(const std::vector<CleanCase>& cases) {
  KernelLimits limits;
  limits.max_K = 256, limits.max_V = 128;
  return roles_of(cases, limits, "m", "f");
}

TEST(ParameterRoles, AWidthIsWhatAlwaysIsOne) {
  const ParameterRoles width = roles({launched(8, 3, 8, 0), launched(9, 3, 9, 0), launched(70, 3, 70, 0)});
  ASSERT_TRUE(width.most.contains(0));
  EXPECT_EQ(width.most.at(0), 256);
  EXPECT_EQ(roles({launched(8, 3, 3, 0), launched(9, 5, 5, 0), launched(70, 4, 4, 0)}).most.at(0), 128);
  EXPECT_EQ(roles({launched(8, 3, 8, 0), launched(9, 5, 5, 0), launched(70, 4, 4, 0)}).most.at(0), 256)
      << "in one launch this, in another that";
  EXPECT_TRUE(roles({launched(8, 3, 8, 0), launched(9, 3, 9, 0), launched(70, 3, 71, 0)}).most.empty());
  EXPECT_TRUE(roles({launched(8, 3, 8, 0), launched(8, 5, 8, 0), launched(8, 4, 8, 0)}).most.empty())
      << "may be a constant";
}

TEST(ParameterRoles, OneNegativeEntryIsEnough) {
  EXPECT_TRUE(roles({launched(8, 3, 1, 5), launched(8, 3, 1, 0)}).natural_tables.contains(1));
  const ParameterRoles some = roles({launched(8, 3, 1, 5), launched(8, 3, -1, -1)});
  EXPECT_TRUE(some.tables.contains(1));
  EXPECT_FALSE(some.natural_tables.contains(1));
  EXPECT_TRUE(some.numbers.contains(0));
  EXPECT_FALSE(some.sizes.contains(0));
  EXPECT_TRUE(roles_of({launched(8, 3, 1, 5)}, {}, "m", "another").numbers.empty());
}

TEST(ParameterRoles, CasesAloneNeverSayThatNothingElseIsPassed) {
  const ParameterRoles seen = roles({launched(8, 3, 8, 0), launched(9, 3, 9, 0), launched(70, 3, 70, 0)});
  EXPECT_TRUE(seen.least.empty());
  EXPECT_TRUE(seen.nulls.empty());
  EXPECT_TRUE(seen.places.empty());
}

TEST(ParameterRoles, OfASurveyAreNarrowedByAllThatIsPassed) {
  const auto of = [](const std::vector<Argument>& arguments, bool every_width = true) {
    KernelLimits limits;
    limits.max_K = 256;
    SeenArgument seen;
    for (const Argument& argument : arguments) {
      Case c;
      c.K = integer_of(argument).value_or(1), c.V = 300;
      seen.see(argument, {}, c, limits);
    }
    ParameterRoles roles;
    seen.add_to(roles, 0, true, every_width);
    return roles;
  };
  EXPECT_EQ(of({17, 40, 64}).least.at(0), 17);
  EXPECT_EQ(of({17, 40, 64}).most.at(0), 64);
  EXPECT_TRUE(of({17, 40, 64}, false).least.empty());
  EXPECT_EQ(of({17, 40, 64}, false).most.at(0), 256);
  const Argument null = PointerArgument{}, place = PointerArgument{"x", 0};
  EXPECT_TRUE(of({null, null}).nulls.contains(0));
  EXPECT_TRUE(of({place, place}).places.contains(0));
  EXPECT_TRUE(of({null, place}).nulls.empty());
  EXPECT_TRUE(of({null, place}).places.empty());
}

}  // namespace
}  // namespace assay
