#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/finding_parts.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay {
namespace {

using nlohmann::json;
using namespace markdown;

std::string verification_part(const json& v, std::string_view heading) {
  std::string out = fmt::format("{} {}: {}\n\n", heading, code(text_of(v, "kernel")),
                                escape_markdown(text_of(v, "verdict")));
  if (const std::string cause = text_of(v, "cause"); !cause.empty())
    out += fmt::format("Cause: {}\n\n", escape_markdown(cause));
  const std::string arithmetic = text_of(v, "arithmetic");
  out += fmt::format("    {}\n\nBackend {}{}{}.\n\n", escape_markdown(text_of(v, "replay")),
                     escape_markdown(text_of(v, "backend")), arithmetic.empty() ? "" : "; ",
                     escape_markdown(arithmetic));
  for (const Section* section : sections_of_markdown())
    if (const json* part = part_of(v, *section)) out += section->markdown(*part);
  return out;
}

constexpr size_t kFindingsBytes = 30'000;  ///< of findings in full, so that the file stays short
constexpr size_t kTightnessRows = 120;     ///< of more, the largest of each kernel and format

/// The rows of error over bound: all, or where they are many the worst of each kernel and format.
std::vector<const json*> telling_rows(const json& tightness) {
  std::vector<const json*> rows;
  for (const json& line : tightness) rows.push_back(&line);
  if (rows.size() <= kTightnessRows) return rows;
  const auto ratio = [](const json& line) {
    const json& value = field_of(line, "max_ratio");
    return value.is_number() ? value.get<double>() : HUGE_VAL;
  };
  std::vector<const json*> worst;
  for (const json* line : rows) {
    const auto same = std::find_if(worst.begin(), worst.end(), [&](const json* other) {
      return (*other)["kernel"] == (*line)["kernel"] && (*other)["dtype"] == (*line)["dtype"];
    });
    if (same == worst.end())
      worst.push_back(line);
    else if (ratio(*line) > ratio(**same))
      *same = line;
  }
  return worst;
}

std::string fuzz_part(const json& run) {
  std::string names;
  const json& kernels = field_of(run, "kernels");
  for (const json& kernel : kernels) names += (names.empty() ? "" : ", ") + code(exact_decimal(kernel));
  if (kernels.size() > kKernelsInTitle) names = fmt::format("{} kernels", kernels.size());
  const json& findings = field_of(run, "findings");
  std::string out = fmt::format("# fuzz {}: {}, {} passed, {}, {} undecided, {} out of domain\n\n", names,
                                counted(count_of(run, "cases"), "case", "cases"), short_field(run, "passed"),
                                counted(static_cast<int64_t>(findings.size()), "finding", "findings"),
                                short_field(run, "undecided"), short_field(run, "domain"));
  out += fmt::format("Backend {}, seed {}, {} s.\n\n", escape_markdown(text_of(run, "backend")),
                     escape_markdown(text_of(run, "seed")), short_field(run, "seconds"));
  if (const std::string why = shortfall_of(run); !why.empty())
    out += fmt::format("**Not a pass**: {}.\n\n", escape_markdown(why));
  size_t shown = 0;
  for (; shown < findings.size(); ++shown) {
    const std::string part = verification_part(findings[shown], "## Finding:");
    if (shown > 0 && out.size() + part.size() > kFindingsBytes) break;
    out += part;
  }
  if (shown < findings.size())
    out += fmt::format("{} of {} findings stand here; `result.json` has all.\n\n", shown, findings.size());
  out += "## Properties\n\n" + head({"property", "checked", "failed"}, 1);
  for (const json& property : field_of(run, "properties"))
    out += row({escape_markdown(text_of(property, "name")), short_field(property, "checked"),
                short_field(property, "failed")});
  out += "\n## Error against bound\n\n" + head({"kernel", "output", "format", "decay", "length", "cases",
                                                "undecided", "max error/bound", "tightness", "max bound"},
                                               5);
  for (const json* line : telling_rows(field_of(run, "tightness"))) {
    const auto of_judged = [&](const char* name) {
      return count_of(*line, "cases") > 0 ? short_field(*line, name) : "-";
    };
    out += row({code(text_of(*line, "kernel")), code(text_of(*line, "output")),
                escape_markdown(text_of(*line, "dtype")), escape_markdown(text_of(*line, "decay")),
                escape_markdown(text_of(*line, "length_class")), short_field(*line, "cases"),
                std::to_string(count_of(*line, "undecided")), of_judged("max_ratio"),
                of_judged("max_tightness"), of_judged("max_relative_bound")});
  }
  out += "\n## Coverage\n\n" + head({"feature", "value", "cases"}, 2);
  for (const json& line : field_of(run, "coverage"))
    out += row({escape_markdown(text_of(line, "feature")), escape_markdown(text_of(line, "value")),
                short_field(line, "cases")});
  out += "\n## Reached\n\n" + head({"kernel", "what", "reached", "of"}, 2);
  for (const json& line : field_of(run, "reached"))
    out += row({code(text_of(line, "kernel")), escape_markdown(text_of(line, "what")),
                short_field(line, "reached"), short_field(line, "of")});
  return out;
}

}  // namespace

std::string render_markdown(const json& result) {
  return result_kind(result) == "fuzz" ? fuzz_part(result) : verification_part(result, "#");
}

}  // namespace assay
