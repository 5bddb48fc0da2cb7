#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section repeats;
}  // namespace assay::sections

namespace assay {
namespace repeats_section_test {

using nlohmann::json;

Repeat repeat(const std::string& how, int64_t differing) {
  Repeat r;
  r.how = how, r.differing = differing, r.element = "o[0] 1 and 2", r.largest = 0.125;
  return r;
}

Verification verification_of(std::vector<Repeat> repeats) {
  Verification v = verification_from_json(test::passed_verification());
  v.repeats = std::move(repeats);
  return v;
}
json part_of_json(const Verification& v) {
  return to_json(v)["repeats"];
}
std::string on_console(const Verification& v) {
  return test::printed([&](const Console& console) { sections::repeats.print(console, v, 0); });
}

/// The same bits, a difference that sums by atomics explain, one that an architecture's roundings do, and one
/// that nothing does.
Verification sample() {
  Repeat sums = repeat("warps backwards", 4), rounded = repeat("on sm_80", 2),
         racing = repeat("blocks backwards", 1);
  sums.by_order_of_sums = true, rounded.expected = true, rounded.note = "no departure was looked for";
  racing.departure = "k.cu:7, 1 and 2", racing.where.emplace().file = "k.cu", racing.where->line = 7;
  return verification_of({repeat("other bytes", 0), sums, rounded, racing});
}

TEST(RepeatsSection, EachRepeatIsToldWithWhatExplainsIt) {
  const std::string markdown = sections::repeats.markdown(part_of_json(sample()));
  EXPECT_EQ(
      markdown,
      "Run once more:\n\n- other bytes: the same bits\n"
      "- warps backwards: 4 elements differ, first o\\[0\\] 1 and 2; only the order of floating-point "
      "atomics, up to 0.125 of the tensor's size\n"
      "- on sm\\_80: 2 elements differ, first o\\[0\\] 1 and 2; as the architectures' own roundings "
      "explain, up to 0.125 of the tensor's size\n"
      "- blocks backwards: 1 element differ, first o\\[0\\] 1 and 2; first parted: k.cu:7, 1 and 2\n\n");
}

TEST(RepeatsSection, TheConsoleHasWhatIsNoFindingAndThenThoseOfTheSameBits) {
  EXPECT_EQ(on_console(sample()),
            "  warps backwards: 4 elements differ, first o[0] 1 and 2; only the order of floating-point "
            "atomics, up to 0.12 of the tensor's size\n"
            "  on sm_80: 2 elements differ, first o[0] 1 and 2; as the architectures' own roundings explain, "
            "up to 0.12 of the tensor's size\n"
            "    no departure was looked for\n"
            "  same bits: other bytes\n");
  EXPECT_EQ(on_console(verification_of({repeat("a", 0), repeat("b", 0)})), "  same bits: a; b\n");
}

TEST(RepeatsSection, AFindingIsTheFirstThatNothingExplains) {
  const json part = part_of_json(sample());
  EXPECT_EQ(sections::repeats.headline(part),
            "blocks backwards: 1 element differ, first o[0] 1 and 2; first parted: k.cu:7, 1 and 2");
  ASSERT_TRUE(sections::repeats.rule(part));
  EXPECT_TRUE(sections::repeats.rule(part)->name.ends_with("-changes-results"))
      << sections::repeats.rule(part)->name;
  EXPECT_EQ(sections::repeats.place(part)["line"], 7);
}

TEST(RepeatsSection, WhatIsExplainedIsNoFinding) {
  Verification v = sample();
  v.repeats.pop_back();
  const json part = part_of_json(v);
  EXPECT_EQ(sections::repeats.headline(part), "");
  EXPECT_FALSE(sections::repeats.rule(part));
  EXPECT_TRUE(sections::repeats.place(part).is_null());
}

}  // namespace repeats_section_test
}  // namespace assay
