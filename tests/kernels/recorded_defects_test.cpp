#include "kernels/recorded_defects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernels/defect.h"

namespace assay {
namespace {

int64_t count(DefectGroup group) {
  return std::count_if(recorded_defects().begin(), recorded_defects().end(),
                       [&](const RecordedDefect& recorded) { return recorded.group == group; });
}

TEST(RecordedDefects, AreMostlyRecreatedHere) {
  EXPECT_EQ(recorded_defects().size(), 95u);
  EXPECT_GE(count(DefectGroup::native), 42);
  EXPECT_GE(count(DefectGroup::transplanted), 10);
}

TEST(RecordedDefects, StandInTheTableOnce) {
  std::set<std::string_view> seen;
  for (const RecordedDefect& recorded : recorded_defects())
    EXPECT_TRUE(seen.insert(recorded.id).second) << recorded.id;
}

TEST(RecordedDefects, HaveAPatchOrAReason) {
  for (const RecordedDefect& recorded : recorded_defects()) {
    EXPECT_FALSE(recorded.title.empty()) << recorded.id;
    const bool outside = recorded.group == DefectGroup::outside;
    EXPECT_EQ(recorded.patches.empty(), outside) << recorded.id;
    EXPECT_EQ(recorded.reason.empty(), !outside) << recorded.id;
    for (const std::string_view patch : recorded.patches)
      EXPECT_TRUE(std::any_of(defects().begin(), defects().end(),
                              [&](const Defect& defect) { return defect.id() == patch; }))
          << recorded.id << ": no patch " << patch;
  }
}

TEST(RecordedDefects, AreAllThePatchesThatAreNotPlanted) {
  for (const Defect& defect : defects()) {
    const RecordedDefect* recorded = recorded_as(defect.id());
    EXPECT_EQ(recorded == nullptr, defect.since.starts_with("planted")) << defect.id();
    if (recorded) {
      EXPECT_EQ(recorded->id, defect.name) << defect.id();
    }
  }
}

}  // namespace
}  // namespace assay
