#include "reports/markup.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using nlohmann::json;

TEST(Markup, EscapesWhatMarkupWouldRead) {
  const std::pair<std::string, std::string> table[] = {
      {"plain", "plain"},
      {"<b a=\"1\" c='2'>&amp;", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"},
      {"2\xE2\x81\xBB\xC2\xB9", "2\xE2\x81\xBB\xC2\xB9"},
      {std::string("a\0b\x1b[31m", 8),
       "a\xEF\xBF\xBD"
       "b\xEF\xBF\xBD[31m"},
      {"\xff\xfe", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"},                                  // overlong "<"
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // surrogate
      {"\xF5\x80\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // beyond U+10FFFF
      {"\xEF\xBF\xBF", "\xEF\xBF\xBD"},                                          // U+FFFF: no XML character
      {"cut \xE2\x81", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
      {"line\nbreak\ttab", "line\nbreak\ttab"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(escape_markup(text), expected);
}

TEST(Markup, MarkdownStaysOnOneLineAndInertInTables) {
  EXPECT_EQ(escape_markdown("a|b\nc"), "a\\|b c");
  EXPECT_EQ(escape_markdown("[x](y) `z` <s>"), "\\[x\\](y) \\`z\\` &lt;s>");
}

TEST(Markup, ExactDecimalAndHexadecimalReadBackToTheSameBits) {
  const uint64_t seed = 20240811;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const char* scale = std::getenv("ASSAY_TEST_SCALE");
  const int count = static_cast<int>(20000 * (scale ? std::atof(scale) : 1.0));
  std::mt19937_64 random(seed);
  for (int i = 0; i < count; ++i) {
    const double x = std::bit_cast<double>(random());
    if (!std::isfinite(x)) continue;
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(exact_decimal(json(x)).c_str(), nullptr)),
              std::bit_cast<uint64_t>(x));
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(hex_float(json(x)).c_str(), nullptr)),
              std::bit_cast<uint64_t>(x));
  }
}

TEST(Markup, ShowsNonFiniteNumbersAndAbsentOnesByName) {
  EXPECT_EQ(exact_decimal("nan"), "nan");
  EXPECT_EQ(hex_float("-inf"), "-inf");
  EXPECT_EQ(number_markup("inf"), "<data value=\"inf\">inf</data>");
  EXPECT_EQ(exact_decimal(json()), "-");
}

TEST(Markup, KeepsWholeNumbersWholeUpTo64Bits) {
  EXPECT_EQ(exact_decimal(json(18446744073709551615ull)), "18446744073709551615");
  EXPECT_EQ(grouped(json(1234567)),
            "1\xE2\x80\x89"
            "234\xE2\x80\x89"
            "567");
  EXPECT_EQ(grouped(json(-123456)),
            "-123\xE2\x80\x89"
            "456");
  EXPECT_EQ(grouped(json(1234)), "1234");
}

TEST(Markup, NamesTheFieldThatADocumentLacks) {
  try {
    field_of(json::object(), "outputs");
    FAIL() << "no exception";
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("'outputs'"), std::string::npos) << error.what();
  }
}

TEST(Markup, RefusesAResultOfAnotherSchema) {
  EXPECT_EQ(result_kind({{"kind", "fuzz"}, {"schema", 1}}), "fuzz");
  for (const json& document : {json{{"kind", "fuzz"}, {"schema", 2}}, json{{"kind", "fuzz"}},
                               json{{"kind", "x"}, {"schema", 1}}, json(3)}) {
    EXPECT_THROW(result_kind(document), BadInput) << document;
  }
}

TEST(Markup, WritesALocationAsFileLineFunctionAndPtxLine) {
  EXPECT_EQ(location_text({{"file", "a.cu"}, {"line", 3}, {"ptx_line", 9}, {"function", "f"}}),
            "a.cu:3, f, PTX line 9");
  EXPECT_EQ(location_text({{"file", ""}, {"line", 0}, {"ptx_line", 9}, {"function", ""}}), "PTX line 9");
}

}  // namespace
}  // namespace assay
