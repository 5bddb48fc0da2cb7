#include "tests/reports/sarif_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

namespace assay::test {
namespace {

using nlohmann::json;
using Errors = std::vector<std::string>;

/// One property of one kind of object; the sections are those of the standard. `type`: string, text (not
/// empty), uri (RFC 3986 reference), line (integer from 1 on), index (from 0 on), boolean, map (of strings),
/// any, an enumeration "a|b|c", an object's name, or "[NAME]": a list of them.
struct Rule {
  const char *object, *property, *type;
  bool required = false;
};
constexpr Rule kRules[] = {
    {"log", "$schema", "uri"},  // 3.13
    {"log", "version", "2.1.0", true},
    {"log", "runs", "[run]", true},
    {"run", "tool", "tool", true},  // 3.14
    {"run", "results", "[result]"},
    {"run", "originalUriBaseIds", "bases"},
    {"run", "columnKind", "utf16CodeUnits|unicodeCodePoints"},
    {"run", "invocations", "any"},
    {"run", "properties", "any"},
    {"tool", "driver", "component", true},  // 3.18
    {"component", "name", "text", true},    // 3.19
    {"component", "version", "text"},
    {"component", "rules", "[rule]"},
    {"rule", "id", "text", true},  // 3.49
    {"rule", "shortDescription", "description"},
    {"description", "text", "text", true},  // 3.12
    {"result", "ruleId", "text"},           // 3.27
    {"result", "ruleIndex", "index"},
    {"result", "level", "none|note|warning|error"},
    {"result", "message", "message", true},
    {"result", "locations", "[location]"},
    {"result", "codeFlows", "[codeFlow]"},
    {"result", "partialFingerprints", "map"},
    {"result", "baselineState", "new|unchanged|updated|absent"},
    {"result", "properties", "any"},
    {"message", "text", "text", true},             // 3.11: text or id
    {"location", "physicalLocation", "physical"},  // 3.28
    {"location", "logicalLocations", "[logical]"},
    {"location", "message", "message"},
    {"physical", "artifactLocation", "artifact", true},  // 3.29
    {"physical", "region", "region"},
    {"artifact", "uri", "uri", true},  // 3.4
    {"artifact", "uriBaseId", "text"},
    {"region", "startLine", "line", true},  // 3.30
    {"region", "snippet", "message"},
    {"logical", "name", "text"},  // 3.33
    {"logical", "kind", "text"},
    {"codeFlow", "threadFlows", "[threadFlow]", true},  // 3.36
    {"threadFlow", "locations", "[step]", true},        // 3.37
    {"step", "location", "location"},                   // 3.38
};

bool is_object_name(const std::string& type) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return type == r.object; });
}

void check_object(const std::string& object, const json& value, const std::string& path, Errors& errors);

void check_value(const std::string& type, const json& v, const std::string& path, Errors& errors) {
  const auto require = [&](bool holds) {
    if (!holds) errors.push_back(path + ": is no " + type + ": " + v.dump().substr(0, 80));
  };
  static const std::regex reference(R"(([A-Za-z0-9\-._~!$&'()*+,;=:@/?#]|%[0-9A-Fa-f]{2})+)");
  if (type.starts_with('[')) {
    require(v.is_array());
    for (size_t i = 0; v.is_array() && i < v.size(); ++i)
      check_value(type.substr(1, type.size() - 2), v[i], path + "/" + std::to_string(i), errors);
  } else if (is_object_name(type)) {
    check_object(type, v, path, errors);
  } else if (type == "text") {
    require(v.is_string() && !v.get<std::string>().empty());
  } else if (type == "uri") {
    require(v.is_string() && std::regex_match(v.get<std::string>(), reference));
  } else if (type == "line" || type == "index") {
    require(v.is_number_integer() && v.get<int64_t>() >= (type == "line" ? 1 : 0));
  } else if (type == "map") {
    require(v.is_object() && std::all_of(v.begin(), v.end(), [](const json& x) { return x.is_string(); }));
  } else if (type == "bases") {
    require(v.is_object());
    for (const auto& [name, base] : v.items())
      if (base.contains("uri") && !base["uri"].get<std::string>().ends_with('/'))
        errors.push_back(path + "/" + name + ": a base's uri ends with a slash");
  } else if (type != "any") {
    require(v.is_string() && ("|" + type + "|").find("|" + v.get<std::string>() + "|") != std::string::npos);
  }
}

void check_object(const std::string& object, const json& value, const std::string& path, Errors& errors) {
  if (!value.is_object()) return errors.push_back(path + ": is no object");
  for (const Rule& rule : kRules) {
    if (object != rule.object) continue;
    if (value.contains(rule.property))
      check_value(rule.type, value[rule.property], path + "/" + rule.property, errors);
    else if (rule.required)
      errors.push_back(path + ": lacks " + rule.property);
  }
  for (const auto& [name, unused] : value.items()) {
    const bool listed = std::any_of(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
      return object == rule.object && name == rule.property;
    });
    if (!listed) errors.push_back(path + ": unknown " + name);
  }
}

/// Every base id that is used is defined, and a relative reference has one; an absolute one has none.
void check_artifacts(const json& value, const json& bases, const std::string& path, Errors& errors) {
  if (!value.is_structured()) return;
  if (value.is_object() && value.contains("artifactLocation")) {
    const json& at = value["artifactLocation"];
    const bool absolute = at.value("uri", "").find("://") != std::string::npos;
    if (absolute == at.contains("uriBaseId"))
      errors.push_back(path + ": a relative uri has a base id, an absolute one has none");
    if (at.contains("uriBaseId") && !bases.contains(at.value("uriBaseId", "")))
      errors.push_back(path + ": base id is not defined");
  }
  for (const auto& [name, child] : value.items()) check_artifacts(child, bases, path + "/" + name, errors);
}

void check_run(const json& run, const std::string& path, Errors& errors) {
  const json rules = run["tool"]["driver"].value("rules", json::array());
  std::vector<std::string> ids;
  for (const json& rule : rules) ids.push_back(rule.value("id", ""));
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end())
    errors.push_back(path + ": two rules of one id");
  for (const json& result : run.value("results", json::array())) {
    const size_t index = result.value("ruleIndex", size_t{0});
    if (result.contains("ruleIndex") &&
        (index >= rules.size() || rules[index].value("id", "") != result.value("ruleId", "")))
      errors.push_back(path + ": ruleIndex names another rule");
  }
  check_artifacts(run, run.value("originalUriBaseIds", json::object()), path, errors);
}

}  // namespace

Errors sarif_errors(const json& log) {
  Errors errors;
  check_object("log", log, "", errors);
  if (!errors.empty()) return errors;
  for (size_t i = 0; i < log["runs"].size(); ++i)
    check_run(log["runs"][i], "/runs/" + std::to_string(i), errors);
  return errors;
}

}  // namespace assay::test
