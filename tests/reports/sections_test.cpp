// The lists of sections: a form lists exactly those that say something in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/section.h"
#include "src/base/numerics/bad_input.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace sections_test {

struct Form {
  const char* name;
  Sections sections;
  bool (*speaks)(const Section&);
};

const Form kForms[] = {
    {"page", sections_of_page(), [](const Section& s) { return s.page != nullptr; }},
    {"markdown", sections_of_markdown(), [](const Section& s) { return s.markdown != nullptr; }},
    {"console", sections_of_console(), [](const Section& s) { return s.print != nullptr; }},
    {"notes", sections_of_notes(), [](const Section& s) { return s.note != nullptr; }},
    {"weight", sections_by_weight(),
     [](const Section& s) { return s.plain || s.headline || s.rule || s.place; }},
};

TEST(Sections, EveryFormListsThoseThatSpeakInItOnce) {
  std::set<const Section*> all;
  for (const Form& form : kForms) all.insert(form.sections.begin(), form.sections.end());
  for (const Form& form : kForms)
    for (const Section* section : all)
      EXPECT_EQ(std::count(form.sections.begin(), form.sections.end(), section), form.speaks(*section))
          << section->field << " in " << form.name;
}

TEST(Sections, AFieldThatEarlierDocumentsLackMayBeMissingAndNoOther) {
  for (const Form& form : kForms)
    for (const Section* section : form.sections) {
      nlohmann::json v = test::passed_verification();
      ASSERT_TRUE(v.contains(section->field)) << section->field;
      v.erase(section->field);
      if (section->later)
        EXPECT_EQ(part_of(v, *section), nullptr) << section->field;
      else
        EXPECT_THROW(part_of(v, *section), BadInput) << section->field;
    }
}

}  // namespace sections_test
}  // namespace assay
