#include "src/base/vm/checks/one_per_barrier.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace checks_one_per_barrier_test {

CheckedPlace place(int ptx_line, const char* did, uint32_t thread, uint32_t block = 0) {
  CheckedPlace at;
  at.where.file = "f.cu", at.where.line = ptx_line / 10, at.where.ptx_line = ptx_line,
  at.where.function = "k";
  at.block = {block, 0, 0}, at.thread = {thread, 0, 0}, at.access = did;
  return at;
}
CheckFinding race(CheckKind kind, CheckedPlace before, CheckedPlace after, const char* element = "shared s") {
  CheckFinding made;
  made.kind = kind, made.at = after, made.other = before, made.element = element, made.message = "m";
  return made;
}
std::vector<size_t> sizes(const std::vector<CheckFinding>& findings) {
  std::vector<size_t> also;
  for (const CheckFinding& f : findings) also.push_back(f.also.size());
  return also;
}

const CheckedPlace stored = place(100, "written by st.shared.f32", 0), read = place(200, "read by ld", 40),
                   read_again = place(300, "read by ld", 70), stored_again = place(400, "written by st", 3);

TEST(OnePerBarrier, PairsThatOneBarrierWouldOrderAreOneFindingOfSeveralWarps) {
  const auto made =
      one_per_barrier({race(CheckKind::warp_race, stored, read), race(CheckKind::race, read, stored),
                       race(CheckKind::race, stored, read_again)},
                      {});
  ASSERT_EQ(sizes(made), std::vector<size_t>{2});
  EXPECT_EQ(made[0].kind, CheckKind::race);
  EXPECT_EQ(made[0].at.where.ptx_line, 300) << "as the text goes";
  EXPECT_EQ(made[0].also[0].message,
            "shared s: written at f.cu:10 by thread (0,0,0) of block (0,0,0); read at f.cu:20 by thread "
            "(40,0,0) of "
            "block (0,0,0)");
}

TEST(OnePerBarrier, TwoMissingBarriersAreTwo) {
  const auto made = one_per_barrier(
      {race(CheckKind::race, stored, read), race(CheckKind::race, read_again, stored_again)}, {});
  EXPECT_EQ(sizes(made), (std::vector<size_t>{0, 0}));
}

TEST(OnePerBarrier, APairThatABarrierPartsRacesFromTurnToTurn) {
  const BarrierLines barrier{{"k", {150}}};
  const std::vector<CheckFinding> found{race(CheckKind::race, read, stored),
                                        race(CheckKind::race, read_again, stored_again)};
  EXPECT_EQ(sizes(one_per_barrier(found, barrier)), (std::vector<size_t>{0, 0}));
  const std::vector<CheckFinding> overlapping{race(CheckKind::race, read, stored),
                                              race(CheckKind::race, read_again, stored)};
  EXPECT_EQ(sizes(one_per_barrier(overlapping, barrier)), std::vector<size_t>{1});
}

TEST(OnePerBarrier, RacesOfSeveralBlocksShareABufferAndALine) {
  const CheckedPlace there = place(100, "written by st", 0, 1);
  const auto made =
      one_per_barrier({race(CheckKind::race, read, there, "y[i0=0]"),
                       race(CheckKind::race, place(100, "written by st", 0), there, "y[i0=4]"),
                       race(CheckKind::race, read, there, "z[i0=0]"), race(CheckKind::race, read, stored)},
                      {});
  EXPECT_EQ(sizes(made), (std::vector<size_t>{2, 0}));  // the same lines are one whatever the buffer
}

TEST(OnePerBarrier, OtherFindingsAndLanesOfOneStoreStay) {
  CheckFinding other;
  other.kind = CheckKind::unwritten_branch;
  const auto made = one_per_barrier(
      {other, race(CheckKind::warp_race, stored, stored), race(CheckKind::race, stored, read)}, {});
  EXPECT_EQ(sizes(made), (std::vector<size_t>{0, 0, 0}));
}

}  // namespace checks_one_per_barrier_test
}  // namespace assay::vm
