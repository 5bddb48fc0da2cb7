#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section exponents;
}  // namespace assay::sections

namespace assay {
namespace exponents_section_test {

using nlohmann::json;
using test::Rows;

/// The arguments of three places: the least is of the second, the largest of the third.
json three_places() {
  json v = test::passed_verification();
  json& places = v["exponents"];
  places.push_back(places[0]), places.push_back(places[0]);
  places[0]["min"] = -2.5, places[1]["min"] = -1290.4375, places[2]["min"] = -1;
  places[2]["max"] = 3.25, places[2]["nans"] = 7, places[2]["where"]["line"] = 150;
  return v;
}

TEST(ExponentsSection, ThePageHasEveryPlaceWithItsRangeAndItsNans) {
  const Rows rows = test::read_page_rows(sections::exponents.page(three_places()["exponents"], "", 2));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], (Rows::value_type{"where", "instruction", "smallest", "largest", "count", "NaN"}));
  EXPECT_EQ(rows[2][2], "-1290");
  EXPECT_EQ(rows[3][0], "kernels/gla/chunk.cu:150, gla_chunk_output, PTX line 903");
  EXPECT_EQ(rows[3][3], "3.25");
  EXPECT_EQ(rows[3][5], "7");
}

TEST(ExponentsSection, TheConsolesLineHasTheRangeOfAllPlacesTogether) {
  const auto text = [](const Verification& v) {
    return test::printed([&](const Console& console) { sections::exponents.note(console, v); });
  };
  Verification v = verification_from_json(three_places());
  EXPECT_EQ(text(v), "exponentials at 3 places saw arguments from -1290.44 to 3.25\n");
  v.exponents.clear();
  EXPECT_EQ(text(v), "");
}

}  // namespace exponents_section_test
}  // namespace assay
