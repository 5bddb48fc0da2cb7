#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section unexplained;
}  // namespace assay::sections

namespace assay {
namespace unexplained_section_test {

TEST(UnexplainedSection, EveryFormSaysWhyThereIsNoExplanation) {
  const nlohmann::json why = "no <time> was left; its replay explains it";
  EXPECT_EQ(sections::unexplained.page(why, "", 2),
            "<p>Not explained: no &lt;time&gt; was left; its replay explains it.</p>\n");
  EXPECT_EQ(sections::unexplained.markdown(why),
            "Not explained: no &lt;time> was left; its replay explains it.\n\n");
  EXPECT_EQ(sections::unexplained.plain(why), "not explained: no <time> was left; its replay explains it\n");
}

TEST(UnexplainedSection, TheConsoleSaysItOfSuchAFindingAlone) {
  Verification v = verification_from_json(test::passed_verification());
  const auto print = [&] {
    return test::printed([&](const Console& console) { sections::unexplained.print(console, v, 0); });
  };
  EXPECT_EQ(print(), "");
  v.unexplained = "no time was left for it; its replay explains it";
  EXPECT_EQ(print(), "not explained: no time was left for it; its replay explains it\n");
}

}  // namespace unexplained_section_test
}  // namespace assay
