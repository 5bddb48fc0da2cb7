#include "tests/reports/page_elements.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/html.h"
#include "reports/page_text.h"

namespace assay::test {

std::string own_text(const nlohmann::json& result) {
  std::string page = render_html(result);
  const size_t at = page.find(text::vega());
  EXPECT_NE(at, std::string::npos);
  return page.erase(at, text::vega().size());
}

std::vector<Element> elements(const std::string& markup) {
  std::string error;
  std::vector<Element> found = read_markup(markup, true, &error);
  EXPECT_EQ(error, "");
  return found;
}

}  // namespace assay::test
