// What is come to in a function when branches that are decided are.
#include "src/campaign/mutate/ways.h"

#include <gtest/gtest.h>

#include <string>

#include "src/campaign/mutate/value_range.h"
#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// Whether the store to [%rd2] is come to. a: what `roles` say of parameter 0; n is a width.
bool stores(const std::string& body, const ParameterRoles& roles) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, roles);
  for (size_t i = 0; i < f.body.size(); ++i)
    if (text.original({0, static_cast<int32_t>(i), nullptr, 0}).find("[%rd2]") != std::string::npos)
      return is_come_to(f, ranges, static_cast<int32_t>(i));
  ADD_FAILURE() << "no store in " << body;
  return false;
}

ParameterRoles of_width(int64_t least, int64_t most) {
  ParameterRoles roles;
  roles.numbers = roles.sizes = {1};
  roles.least[1] = least, roles.most[1] = most;
  return roles;
}

TEST(Ways, EndAtBranchesThatAlwaysGoTheOtherWay) {
  const std::string store = " st.global.u32 [%rd2], %r1;";
  const std::string if_there = "ld.param.u64 %rd1, [a]; setp.eq.s64 %p1, %rd1, 0; @%p1 bra $L_end;" + store;
  ParameterRoles null, place;
  null.nulls = {0}, place.places = {0};
  EXPECT_FALSE(stores(if_there, null));
  EXPECT_TRUE(stores(if_there, place));
  EXPECT_TRUE(stores(if_there, {})) << "either";
  const std::string if_none = "ld.param.u64 %rd1, [a]; setp.ne.s64 %p1, %rd1, 0; @%p1 bra $L_end;" + store;
  EXPECT_TRUE(stores(if_none, null));
  EXPECT_FALSE(stores(if_none, place));
  EXPECT_TRUE(stores(if_none, {}));
}

TEST(Ways, FollowTheWidthsThatLaunchAnEntry) {
  const std::string store = " st.global.u32 [%rd2], %r1;";
  const std::string of_groups =
      "ld.param.u32 %r2, [n]; add.s32 %r3, %r2, 15; shr.s32 %r4, %r3, 4; setp.gt.s32 %p1, %r4, 4; @%p1 bra "
      "$L_end;" +
      store;
  EXPECT_FALSE(stores(of_groups, of_width(65, 128)));
  EXPECT_TRUE(stores(of_groups, of_width(64, 128))) << "64 channels are four groups";
  const std::string around =
      "ld.param.u32 %r2, [n]; setp.lt.s32 %p1, %r2, 65; $L_a: @!%p1 exit;" + store + " @%p2 bra $L_a;";
  EXPECT_FALSE(stores(around, of_width(65, 128))) << "all threads leave";
  EXPECT_TRUE(stores(around, of_width(64, 65)));
}

TEST(Ways, OfAFunctionAreSuccessorsAndPredecessors) {
  const ptx::MutableText text = small_program("@%p1 bra $L_a; mov.u32 %r1, 2; exit; $L_a: mov.u32 %r1, 3;");
  const auto next = successors_of(text.module().functions[0]),
             before = predecessors_of(text.module().functions[0]);
  EXPECT_EQ(next, (std::vector<std::vector<int32_t>>{{1, 3}, {2}, {}, {4}, {}, {}}));
  EXPECT_EQ(before, (std::vector<std::vector<int32_t>>{{}, {0}, {1}, {0}, {3}, {}}));
}

}  // namespace
}  // namespace assay
