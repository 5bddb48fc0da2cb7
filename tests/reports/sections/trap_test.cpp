#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section trap;
}  // namespace assay::sections

namespace assay {
namespace trap_section_test {

using nlohmann::json;

Verification sample() {
  Verification v = verification_from_json(test::passed_verification());
  Trap& trap = v.trap.emplace();
  trap.kind = TrapKind::out_of_bounds, trap.message = "4 bytes past <o> | [x]";
  trap.where.file = "k.cu", trap.where.line = 9, trap.where.ptx_line = 30;
  trap.block = {1, 2, 3}, trap.thread = {31, 0, 0};
  return v;
}
json part_of_json(const Verification& v) {
  return to_json(v)["trap"];
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(TrapSection, ThePageHasKindMessagePlaceBlockAndThread) {
  const std::string page = sections::trap.page(part_of_json(sample()), "", 2);
  EXPECT_TRUE(holds(page, "<h2>Trap: the run did not complete</h2>")) << page;
  EXPECT_TRUE(holds(page, "<b>out-of-bounds</b>: 4 bytes past &lt;o&gt; | [x]")) << page;
  for (const char* fact : {"k.cu:9", "(1, 2, 3)", "(31, 0, 0)"})
    EXPECT_TRUE(holds(page, fact)) << fact << page;
}

TEST(TrapSection, LinesOfTextHaveTheSame) {
  const json part = part_of_json(sample());
  EXPECT_TRUE(holds(sections::trap.markdown(part),
                    "**Trap** out-of-bounds: 4 bytes past &lt;o> \\| \\[x\\] at `k.cu:9"))
      << sections::trap.markdown(part);
  EXPECT_TRUE(sections::trap.plain(part).starts_with("trap out-of-bounds: 4 bytes past <o> | [x] at k.cu:9"))
      << sections::trap.plain(part);
  EXPECT_EQ(sections::trap.headline(part), "out-of-bounds: 4 bytes past <o> | [x]");
}

TEST(TrapSection, TheConsoleSaysWhichThreadOfWhichBlock) {
  const auto print = [](const Verification& v) {
    return test::printed([&](const Console& console) { sections::trap.print(console, v, 0); });
  };
  EXPECT_TRUE(print(sample()).starts_with("  at k.cu:9")) << print(sample());
  EXPECT_TRUE(holds(print(sample()), ", block (1,2,3), thread (31,0,0)\n")) << print(sample());
  EXPECT_EQ(print(verification_from_json(test::passed_verification())), "");
}

TEST(TrapSection, ARunThatEndedByATrapIsAFindingThere) {
  const json part = part_of_json(sample());
  ASSERT_TRUE(sections::trap.rule(part));
  EXPECT_EQ(sections::trap.rule(part)->name, "out-of-bounds");
  EXPECT_EQ(sections::trap.rule(part)->text, "the run ended by a trap: out-of-bounds");
  EXPECT_EQ(sections::trap.place(part)["line"], 9);
}

}  // namespace trap_section_test
}  // namespace assay
