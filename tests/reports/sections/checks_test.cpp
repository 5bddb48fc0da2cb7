#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section checks;
}  // namespace assay::sections

namespace assay {
namespace checks_section_test {

using nlohmann::json;

CheckFinding met(CheckKind kind, int line, const std::string& message) {
  CheckFinding f;
  f.kind = kind, f.check = check_of(kind), f.message = message, f.count = 3;
  f.at.access = "written by st.shared";
  f.at.where.file = "k.cu", f.at.where.line = line;
  return f;
}

/// A race that is a finding, and another that is none.
Verification sample() {
  Verification v = verification_from_json(test::passed_verification());
  v.checks.emplace().ran = {CheckName::races, CheckName::bounds};
  v.checks->findings = {met(CheckKind::race, 5, "tile: a | b")};
  v.checks->dismissed = {{met(CheckKind::warp_race, 9, "tile: c"), "it reaches nothing"}};
  return v;
}
json part_of_json(const Verification& v) {
  return to_json(v)["checks"];
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(ChecksSection, WhatIsNoFindingIsToldApartWithItsReasonInEveryForm) {
  const json part = part_of_json(sample());
  const std::string page = sections::checks.page(part, "", 2);
  const size_t none = page.find("<h2>What they met, and is no finding</h2>");
  ASSERT_NE(none, page.npos) << page;
  EXPECT_TRUE(holds(page.substr(0, none), "race: tile: a | b"));
  EXPECT_TRUE(holds(page.substr(none), "warp-race: tile: c - no finding: it reaches nothing"));
  EXPECT_EQ(sections::checks.markdown(part),
            "- **race** tile: a \\| b\n- warp-race: tile: c - no finding: it reaches nothing\n");
  const std::string note =
      test::printed([&](const Console& console) { sections::checks.note(console, sample()); });
  EXPECT_EQ(note, "checked: races, bounds\nno finding: warp-race, 3 times at k.cu:9: it reaches nothing\n");
}

TEST(ChecksSection, WhatIsNoFindingIsNowhereThatFindingsAre) {
  Verification v = sample();
  v.checks->findings.clear();
  const json part = part_of_json(v);
  EXPECT_EQ(sections::checks.headline(part), "");
  EXPECT_FALSE(sections::checks.rule(part));
  EXPECT_TRUE(sections::checks.place(part).is_null());
  EXPECT_EQ(sections::checks.plain(part), "");
  EXPECT_EQ(test::printed([&](const Console& console) { sections::checks.print(console, v, 0); }), "");
}

TEST(ChecksSection, AFindingHasItsMessageItsRuleAndItsPlace) {
  const json part = part_of_json(sample());
  EXPECT_EQ(sections::checks.headline(part), "tile: a | b");
  EXPECT_EQ(sections::checks.rule(part)->name, "race");
  EXPECT_EQ(sections::checks.rule(part)->text, "the check races found: race");
  EXPECT_EQ(sections::checks.place(part)["line"], 5);
  EXPECT_EQ(test::printed([&](const Console& console) { sections::checks.print(console, sample(), 0); }),
            "  race: tile: a | b (3 instances)\n");
}

TEST(ChecksSection, ADocumentThatKnowsOfNoneDismissedIsReadAndShown) {
  json v = to_json(sample());
  v["checks"].erase("dismissed");
  EXPECT_TRUE(verification_from_json(v).checks->dismissed.empty());
  EXPECT_FALSE(holds(sections::checks.page(v["checks"], "", 2), "no finding"));
}

}  // namespace checks_section_test
}  // namespace assay
