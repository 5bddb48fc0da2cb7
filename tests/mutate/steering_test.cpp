// Instructions that only decide which way is taken: each with a twin that does more, or hears of values.
#include "src/campaign/mutate/steering.h"

#include <gtest/gtest.h>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// The last instruction of an opcode; n is a number, a an address of a table where `table`.
bool steers(const std::string& body, const std::string& opcode, bool table) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  ParameterRoles roles{{1}, {}, {1}, {}, {}};
  if (table) roles.tables = {0};
  int32_t found = -1;
  for (size_t i = 0; i < f.body.size(); ++i)
    if (f.body[i].opcode == opcode) found = static_cast<int32_t>(i);
  EXPECT_GE(found, 0) << opcode;
  return only_steers(f, ValueRanges(f, roles), found, roles);
}

TEST(Steering, IsFoundOnlyWhereNothingElseDependsOnIt) {
  const std::string size = "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; ",
                    store = " st.global.u32 [%rd1], %r2;";
  const struct {
    const char* opcode;
    std::string steers, does_more;
  } rows[] = {
      {"setp.gt.s32", size + "setp.gt.s32 %p1, %r1, 4; @%p1 bra $L_end;" + store,
       size + "setp.gt.s32 %p1, %r1, 4; selp.b32 %r2, 1, 2, %p1; @%p1 bra $L_end;" + store},
      {"bra", size + "setp.gt.s32 %p1, %r1, 4; @%p1 bra $L_end;" + store, size + "bra $L_end;" + store},
      {"and.pred",
       size + "setp.gt.s32 %p1, %r1, 4; setp.eq.s64 %p2, %rd1, 0; and.pred %p3, %p1, %p2; @%p3 bra $L_end;" +
           store,
       size +
           "ld.global.u32 %r4, [%rd1]; setp.gt.s32 %p1, %r1, 4; setp.eq.s32 %p2, %r4, 0; and.pred %p3, %p1, "
           "%p2; @%p3 bra $L_end;" +
           store},
      {"setp.lt.s32", size + "mov.u32 %r3, %tid.x; setp.lt.s32 %p1, %r3, %r1; @%p1 bra $L_end;" + store,
       size +
           "mov.u32 %r4, %tid.x; shfl.sync.bfly.b32 %r3, %r4, 1, 31, -1; setp.lt.s32 %p1, %r3, %r1; @%p1 bra "
           "$L_end;" +
           store},
  };
  for (const auto& row : rows) {
    EXPECT_TRUE(steers(row.steers, row.opcode, false)) << row.steers;
    EXPECT_FALSE(steers(row.does_more, row.opcode, false)) << row.does_more;
  }
}

TEST(Steering, IsNoMatterOfNumbers) {
  const std::string body =
      "ld.param.u32 %r1, [n]; min.s32 %r3, %r1, 4; setp.eq.s32 %p1, %r3, 0; @%p1 bra $L_end;";
  EXPECT_FALSE(steers(body, "min.s32", false)) << "a count decides how much is read, not only which way";
  EXPECT_TRUE(steers(body, "setp.eq.s32", false));
}

TEST(Steering, MayHearOfTablesButNotOfTensors) {
  const std::string body =
      "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mul.wide.s32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2; "
      "ld.global.u32 %r2, [%rd3]; setp.gt.s32 %p1, %r2, 4; @%p1 bra $L_end;";
  EXPECT_TRUE(steers(body, "setp.gt.s32", true));
  EXPECT_FALSE(steers(body, "setp.gt.s32", false));
}

}  // namespace
}  // namespace assay
