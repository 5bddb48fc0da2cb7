#include "reports/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/finding_parts.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay {
namespace {

using nlohmann::json;

struct TestCase {
  std::string name;
  std::string failure_type, message, text;  ///< empty type: passed
  bool known = false;                       ///< the baseline has it: listed as skipped, no failure
  std::string skipped = {};                 ///< why nothing was looked at; else empty
};

struct TestSuite {
  std::string name;
  std::vector<TestCase> cases;
  int failures() const {
    int count = 0;
    for (const TestCase& test : cases) count += test.failure_type.empty() || test.known ? 0 : 1;
    return count;
  }
  int skipped() const {
    int count = 0;
    for (const TestCase& test : cases) count += test.known || !test.skipped.empty() ? 1 : 0;
    return count;
  }
};

/// What went wrong in one run: cause, what its sections say, replay line.
std::string failure_text(const json& v) {
  std::string out = fmt::format("{}\n", text_of(v, "cause"));
  for (const Section* section : sections_by_weight())
    if (const json* part = section->plain ? part_of(v, *section) : nullptr) out += section->plain(*part);
  for (const json& other : field_or_null(v, "also"))
    out += fmt::format("the same defect: {} ({})\n", text_of(other, "sentence"), text_of(other, "replay"));
  return out + text_of(v, "replay") + "\n";
}

/// A finding names the properties that failed, by itself or by a further one of the same defect; one that
/// names none is outside the bound, or no number at all.
bool violates(const json& finding, const std::string& property) {
  const json& failed = field_of(finding, "properties_failed");
  const json& also = field_or_null(finding, "also");
  if (failed.empty() && property == "within-bound") return true;
  for (const json& line : failed) {
    const std::string text = exact_decimal(line);
    if (text.starts_with(property) && (text.size() == property.size() || text[property.size()] == ':'))
      return true;
  }
  return also.is_array() && std::any_of(also.begin(), also.end(), [&](const json& other) {
           return text_of(other, "cause") == "property/" + property;
         });
}

/// What is said of a kernel, or of a kernel and a property, in one of the run's lists; null: nothing.
const json* entry_of(const json& run, const char* list, const std::string& kernel,
                     const std::string& property = "") {
  for (const json& entry : field_or_null(run, list))
    if (text_of(entry, "kernel") == kernel && (property.empty() || text_of(entry, "name") == property))
      return &entry;
  return nullptr;
}

/// One property of one kernel: passed only where it was looked at.
TestCase property_test(const json& run, const std::string& kernel, const std::string& property) {
  TestCase test{property, "", "", ""};
  const json* const counts = entry_of(run, "kernel_properties", kernel, property);
  const int64_t checked = counts ? count_of(*counts, "checked") : 0,
                failed = counts ? count_of(*counts, "failed") : 0;
  bool all_known = true;
  for (const json& finding : field_of(run, "findings")) {
    if (text_of(finding, "kernel") != kernel || !violates(finding, property)) continue;
    test.failure_type = "property";
    if (test.message.empty() || (all_known && !is_known(finding))) test.message = text_of(finding, "cause");
    all_known = all_known && is_known(finding);
    test.text += failure_text(finding);
  }
  test.known = all_known && !test.failure_type.empty();
  if (failed > 0 && test.failure_type.empty()) {
    test.failure_type = "property";
    test.message = fmt::format("{} of {} failed", failed, checked);
    test.text = "see the findings of the kernel\n";
  }
  const bool counted = !field_or_null(run, "kernel_properties").is_null();
  if (counted && checked == 0 && test.failure_type.empty()) test.skipped = "no case was there to check it";
  return test;
}

TestSuite fuzz_suite(const json& run, const std::string& kernel) {
  TestSuite suite{kernel, {}};
  if (const int64_t floor = count_of(run, "min_cases"); floor > 0) {
    TestCase test{fmt::format("at least {} case{} judged", floor, floor == 1 ? " is" : "s are"), "", "", ""};
    if (const json* const few = entry_of(run, "too_few", kernel)) {
      test.failure_type = "inconclusive";
      test.message = fmt::format("{} judged", count_of(*few, "cases"));
      test.text = "too few to say anything of the kernel: give more --time, or a lower --min-cases\n";
    }
    suite.cases.push_back(std::move(test));
  }
  for (const json& property : field_of(run, "properties"))
    suite.cases.push_back(property_test(run, kernel, text_of(property, "name")));
  std::map<std::string, int> of_name;
  for (const json& finding : field_of(run, "findings")) {
    if (text_of(finding, "kernel") != kernel) continue;
    // Without sizes or values, so that whoever compares runs by names knows it again.
    std::string name = fmt::format("finding {}: {}", text_of(finding, "cause"), rule_of(finding).name);
    if (const int number = ++of_name[name]; number > 1) name += fmt::format(" ({})", number);
    suite.cases.push_back({name, text_of(finding, "verdict"), text_of(finding, "cause"),
                           failure_text(finding), is_known(finding)});
  }
  return suite;
}

/// What belongs to no single kernel.
TestSuite run_suite(const json& run) {
  TestSuite suite{"run", {}};
  const int64_t undecided = count_of(run, "undecided");
  suite.cases.push_back(
      {"every case is decided", undecided > 0 ? "undecided" : "",
       fmt::format("{} cases undecided", undecided),
       undecided > 0 ? "the enclosure of the reference stayed too wide to judge them\n" : ""});
  const std::string ended = text_of(run, "ended_early");
  suite.cases.push_back({"the run went to its end", ended.empty() ? "" : "incomplete", ended,
                         ended.empty() ? "" : "what was not seen until then says nothing\n"});
  return suite;
}

std::vector<TestSuite> fuzz_suites(const json& run) {
  std::vector<std::string> names;
  for (const json& kernel : field_of(run, "kernels")) names.push_back(exact_decimal(kernel));
  // A finding of a kernel that the run does not list would otherwise be lost.
  for (const json& finding : field_of(run, "findings")) {
    const std::string kernel = text_of(finding, "kernel");
    if (std::find(names.begin(), names.end(), kernel) == names.end()) names.push_back(kernel);
  }
  std::vector<TestSuite> suites;
  for (const std::string& kernel : names) suites.push_back(fuzz_suite(run, kernel));
  suites.push_back(run_suite(run));
  return suites;
}

TestSuite verification_suite(const json& v) {
  const std::string verdict = text_of(v, "verdict");
  std::string message = text_of(v, "cause");
  if (message.empty() && verdict != "pass")
    message = headline_of(v);  // inputs out of the domain have no cause
  TestSuite suite{text_of(v, "kernel"), {}};
  const auto add = [&](const json& output, const char* of, int64_t undecided) {
    const bool bad = count_of(output, "violation") + count_of(output, "nonfinite") +
                         count_of(output, "wrong_class") + undecided >
                     0;
    suite.cases.push_back(
        {text_of(output, "name") + of, bad ? verdict : "", message, bad ? failure_text(v) : ""});
  };
  for (const json& output : field_of(v, "outputs")) add(output, "", count_of(output, "undecided"));
  if (const auto expected = v.find("expected_outputs"); expected != v.end())
    for (const json& output : *expected) add(output, " in the inputs' file", 0);
  // Traps, properties, differing bits and inputs out of domain are no element's fault.
  // A run on inputs from a file has no token: its replay line names it.
  const std::string token = text_of(v, "token");
  suite.cases.push_back({token.empty() ? text_of(v, "replay") : token, verdict == "pass" ? "" : verdict,
                         message, verdict == "pass" ? "" : failure_text(v)});
  return suite;
}

std::string testcase_xml(const TestSuite& suite, const TestCase& test) {
  const std::string open = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                       escape_markup(suite.name), escape_markup(test.name));
  if (!test.skipped.empty())
    return open +
           fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", escape_markup(test.skipped));
  if (test.failure_type.empty()) return open + "/>\n";
  if (test.known)
    return open + fmt::format(">\n      <skipped message=\"known: {}\"/>\n    </testcase>\n",
                              escape_markup(test.message));
  return open + fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                            escape_markup(test.failure_type), escape_markup(test.message),
                            escape_markup(test.text));
}

}  // namespace

std::string render_junit(const json& result) {
  const std::string kind = result_kind(result);
  const std::vector<TestSuite> suites =
      kind == "fuzz" ? fuzz_suites(result) : std::vector{verification_suite(result)};
  size_t tests = 0;
  int failures = 0;
  std::string body;
  for (const TestSuite& suite : suites) {
    tests += suite.cases.size();
    failures += suite.failures();
    body +=
        fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
                    escape_markup(suite.name), suite.cases.size(), suite.failures(), suite.skipped());
    for (const TestCase& test : suite.cases) body += testcase_xml(suite, test);
    body += "  </testsuite>\n";
  }
  const double seconds = kind == "fuzz" && result.contains("seconds") && result["seconds"].is_number()
                             ? result["seconds"].get<double>()
                             : 0;
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\" tests=\"{}\" failures=\"{}\" "
      "errors=\"0\" time=\"{:.3f}\">\n{}</testsuites>\n",
      tests, failures, seconds, body);
}

}  // namespace assay
