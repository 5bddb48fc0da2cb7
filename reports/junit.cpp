#include "reports/junit.h"

#include <fmt/format.h>

#include <algorithm>
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
    for (const TestCase& test : cases) count += test.known ? 1 : 0;
    return count;
  }
};

/// What went wrong in one run: cause, what its sections say, replay line.
std::string failure_text(const json& v) {
  std::string out = fmt::format("{}\n", text_of(v, "cause"));
  for (const Section* section : sections_by_weight())
    if (const json* part = section->plain ? part_of(v, *section) : nullptr) out += section->plain(*part);
  return out + text_of(v, "replay") + "\n";
}

/// A finding names the properties that failed; one that names none is outside the bound, or no number at all.
bool violates(const json& finding, const std::string& property) {
  const json& failed = field_of(finding, "properties_failed");
  if (failed.empty()) return property == "within-bound";
  for (const json& line : failed) {
    const std::string text = exact_decimal(line);
    if (text.starts_with(property) && (text.size() == property.size() || text[property.size()] == ':'))
      return true;
  }
  return false;
}

TestSuite fuzz_suite(const json& run, const std::string& kernel) {
  TestSuite suite{kernel, {}};
  for (const json& property : field_of(run, "properties")) {
    TestCase test{text_of(property, "name"), "", "", ""};
    for (const json& finding : field_of(run, "findings")) {
      if (text_of(finding, "kernel") != kernel || is_known(finding) || !violates(finding, test.name))
        continue;
      test.failure_type = "property";
      test.message = text_of(finding, "cause");
      test.text += failure_text(finding);
    }
    suite.cases.push_back(std::move(test));
  }
  int number = 0;
  for (const json& finding : field_of(run, "findings")) {
    if (text_of(finding, "kernel") != kernel) continue;
    suite.cases.push_back({fmt::format("finding {}: {}", ++number, text_of(finding, "token")),
                           text_of(finding, "verdict"), text_of(finding, "cause"), failure_text(finding),
                           is_known(finding)});
  }
  return suite;
}

/// What belongs to no single kernel: property failures and undecided cases counted over the whole run.
TestSuite run_suite(const json& run) {
  TestSuite suite{"run", {}};
  const int64_t undecided = count_of(run, "undecided");
  suite.cases.push_back(
      {"every case is decided", undecided > 0 ? "undecided" : "",
       fmt::format("{} cases undecided", undecided),
       undecided > 0 ? "the enclosure of the reference stayed too wide to judge them\n" : ""});
  const json& findings = field_of(run, "findings");
  const bool all_known = !findings.empty() && std::all_of(findings.begin(), findings.end(), is_known);
  for (const json& property : field_of(run, "properties")) {
    const int64_t failed = count_of(property, "failed"), checked = count_of(property, "checked");
    suite.cases.push_back({fmt::format("{} ({} checked)", text_of(property, "name"), checked),
                           failed > 0 ? "property" : "", fmt::format("{} of {} failed", failed, checked),
                           failed > 0 ? "see the findings of the kernels\n" : "", failed > 0 && all_known});
  }
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
  TestSuite suite{text_of(v, "kernel"), {}};
  const auto add = [&](const json& output, const char* of, int64_t undecided) {
    const bool bad = count_of(output, "violation") + count_of(output, "nonfinite") +
                         count_of(output, "wrong_class") + undecided >
                     0;
    suite.cases.push_back(
        {text_of(output, "name") + of, bad ? verdict : "", text_of(v, "cause"), bad ? failure_text(v) : ""});
  };
  for (const json& output : field_of(v, "outputs")) add(output, "", count_of(output, "undecided"));
  if (const auto expected = v.find("expected_outputs"); expected != v.end())
    for (const json& output : *expected) add(output, " in the inputs' file", 0);
  // Traps, properties, differing bits and inputs out of domain are no element's fault.
  // A run on inputs from a file has no token: its replay line names it.
  const std::string token = text_of(v, "token");
  suite.cases.push_back({token.empty() ? text_of(v, "replay") : token, verdict == "pass" ? "" : verdict,
                         text_of(v, "cause"), verdict == "pass" ? "" : failure_text(v)});
  return suite;
}

std::string testcase_xml(const TestSuite& suite, const TestCase& test) {
  const std::string open = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                       escape_markup(suite.name), escape_markup(test.name));
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
