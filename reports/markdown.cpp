#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/markdown_table.h"
#include "reports/markup.h"

namespace assay {
namespace {

using nlohmann::json;
using namespace markdown;

std::string short_field(const json& object, const char* name) {
  return short_decimal(field_of(object, name));
}

std::string outputs_part(const json& outputs) {
  std::string out = head({"output", "format", "elements", "violation", "non-finite", "class", "undecided",
                          "max error/bound", "tightness", "enclosure/bound"},
                         2);
  for (const json& output : outputs) {
    out += row({code(text_of(output, "name")), escape_markdown(text_of(output, "dtype")),
                short_field(output, "elements"), short_field(output, "violation"),
                short_field(output, "nonfinite"), short_field(output, "wrong_class"),
                short_field(output, "undecided"), short_field(output, "max_ratio"),
                short_field(output, "max_tightness"), short_field(output, "max_enclosure")});
  }
  out += "\n" + head({"worst element", "got", "expected", "bound", "error/bound"}, 1);
  for (const json& output : outputs) {
    const json& worst = field_of(output, "worst");
    const auto both = [&](const char* name) {
      return fmt::format("{} ({})", exact_decimal(field_of(worst, name)), hex_float(field_of(worst, name)));
    };
    if (!text_of(worst, "element").empty())
      out += row({code(text_of(worst, "element")), both("got"), both("expected"), both("bound"),
                  short_field(worst, "ratio")});
  }
  return out + "\n";
}

std::string accumulated_part(const json& sums) {
  std::string out;
  for (const json& sum : sums)
    out += fmt::format("Accumulated log decay over the {} steps to {}: {} nats, off by {} (bound {}).\n\n",
                       short_field(sum, "steps"), code(text_of(sum, "element")), short_field(sum, "decay"),
                       short_field(sum, "error"), short_field(sum, "bound"));
  return out;
}

std::string origin_part(const json& origin) {
  std::string out = fmt::format("**Origin**: {}\n\n", escape_markdown(text_of(origin, "sentence")));
  out += fmt::format("- kind: {}\n- where: {}\n- instruction: {}\n", escape_markdown(text_of(origin, "kind")),
                     code(location_text(field_of(origin, "where"))), code(text_of(origin, "instruction")));
  for (const json& input : field_of(origin, "inputs")) {
    const std::string nearest = text_of(input, "nearest_finite");
    out += fmt::format(
        "- input: {} = {}{}\n", code(text_of(input, "element")), exact_decimal(field_of(input, "value")),
        nearest.empty() ? ""
                        : fmt::format(" (nearest value that makes it finite: {})", escape_markdown(nearest)));
  }
  int step = 0;
  out += "\n";
  for (const json& link : field_of(origin, "chain")) {
    out += fmt::format("{}. {} {} {}\n", ++step, code(location_text(field_of(link, "where"))),
                       code(text_of(link, "instruction")), code(text_of(link, "text")));
  }
  return out + "\n";
}

std::string origins_part(const json& origins) {
  std::string out = head({"elements", "origin", "where", "example"}, 4);
  for (const json& group : origins) {
    const json& origin = field_of(group, "origin");
    out +=
        row({short_field(group, "elements"), escape_markdown(text_of(origin, "kind")),
             code(location_text(field_of(origin, "where"))), escape_markdown(text_of(origin, "sentence"))});
  }
  return out + "\n";
}

std::string slice_part(const json& slice) {
  std::string out =
      fmt::format("**Behind {}**: {}{} instruction instances on {} source lines\n\n",
                  code(text_of(slice, "element")), slice.value("truncated", false) ? "more than " : "",
                  short_field(slice, "instances"), field_of(slice, "lines").size());
  for (const json& in : field_of(slice, "inputs"))
    out += fmt::format("- {} elements of {}, {} to {}; largest {} = {}\n", short_field(in, "elements"),
                       code(text_of(in, "input")), code(text_of(in, "first")), code(text_of(in, "last")),
                       code(text_of(in, "largest")), exact_decimal(field_of(in, "value")));
  int number = 0;
  out += "\n";
  for (const json& step : field_of(slice, "chain")) {
    const json& at = field_of(step, "at");
    out +=
        fmt::format("{}. {} {} -> {} {}\n", ++number, code(location_text(field_of(at, "where"))),
                    code(text_of(at, "instruction")), short_field(step, "result"), code(text_of(at, "text")));
  }
  return out + "\n";
}

std::string shadow_part(const json& shadow) {
  constexpr size_t kRows = 12;
  std::string out = "Against its own exact arithmetic\n\n" +
                    head({"output", "rms error", "rms value", "largest error", "at"}, 1);
  for (const json& o : field_of(shadow, "outputs"))
    out += row({code(text_of(o, "name")), short_field(o, "rms_error"), short_field(o, "rms_exact"),
                short_field(o, "max_error"), code(text_of(o, "worst"))});
  const json& lines = field_of(shadow, "lines");
  if (!lines.empty()) out += "\n" + head({"percent of the errors", "line", "instruction"}, 0);
  for (size_t i = 0; i < std::min(kRows, lines.size()); ++i)
    out += row({short_field(lines[i], "share"), code(location_text(field_of(lines[i], "where"))),
                code(text_of(lines[i], "instruction"))});
  const auto edges = shadow.find("edges");
  if (edges == shadow.end() || edges->empty()) return out + "\n";
  out += "\n" + head({"binades left", "line", "instruction", ""}, 0);
  for (size_t i = 0; i < std::min(kRows, edges->size()); ++i)
    out += row({short_field((*edges)[i], "distance"), code(location_text(field_of((*edges)[i], "where"))),
                code(text_of((*edges)[i], "instruction")), escape_markdown(text_of((*edges)[i], "text"))});
  return out + "\n";
}

std::string formula_part(const json& formula) {
  if (const std::string skipped = text_of(formula, "skipped"); !skipped.empty())
    return fmt::format("Formula not judged: {}\n\n", escape_markdown(skipped));
  std::string out =
      "The formula, in exact arithmetic\n\n" +
      head({"output", "judged", "violation", "difference / rms", "allowed / rms", "worst at"}, 1);
  for (const json& o : field_of(formula, "outputs"))
    out += row({code(text_of(o, "name")), short_field(o, "judged"), short_field(o, "violation"),
                short_field(o, "max_difference"), short_field(o, "max_allowed"),
                code(text_of(field_of(o, "worst"), "element"))});
  return out + "\n";
}

std::string verification_part(const json& v, std::string_view heading) {
  std::string out = fmt::format("{} {}: {}\n\n", heading, code(text_of(v, "kernel")),
                                escape_markdown(text_of(v, "verdict")));
  if (const std::string cause = text_of(v, "cause"); !cause.empty())
    out += fmt::format("Cause: {}\n\n", escape_markdown(cause));
  out += fmt::format("    {}\n\nBackend {}; {}.\n\n", escape_markdown(text_of(v, "replay")),
                     escape_markdown(text_of(v, "backend")), escape_markdown(text_of(v, "arithmetic")));
  for (const json& line : field_of(v, "properties_failed"))
    out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
  for (const json& line : field_of(v, "domain"))
    out += fmt::format("- outside the domain: {}\n", escape_markdown(exact_decimal(line)));
  if (const json& trap = field_of(v, "trap"); !trap.is_null()) {
    out +=
        fmt::format("**Trap** {}: {} at {}\n\n", escape_markdown(text_of(trap, "kind")),
                    escape_markdown(text_of(trap, "message")), code(location_text(field_of(trap, "where"))));
  }
  for (const json& finding : check_findings(v))
    out += fmt::format("- **{}** {}\n", escape_markdown(text_of(finding, "kind")),
                       escape_markdown(text_of(finding, "message")));
  if (const auto formula = v.find("formula"); formula != v.end() && !formula->is_null())
    out += formula_part(*formula);
  if (const json& origin = field_of(v, "origin"); !origin.is_null()) out += origin_part(origin);
  if (const auto all = v.find("origins"); all != v.end() && !all->empty()) out += origins_part(*all);
  if (const auto slice = v.find("slice"); slice != v.end() && !slice->is_null()) out += slice_part(*slice);
  if (const auto shadow = v.find("shadow"); shadow != v.end() && !shadow->is_null())
    out += shadow_part(*shadow);
  if (const auto triage = v.find("triage"); triage != v.end() && !triage->is_null()) {
    out += fmt::format("**At fault: {}**. {}\n\n", escape_markdown(text_of(*triage, "fault")),
                       escape_markdown(text_of(*triage, "explanation")));
    for (const json& line : field_of(*triage, "evidence"))
      out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
    out += "\n";
  }
  for (const json& cause : field_of(v, "diagnosis")) {
    out += fmt::format("**{}** (score {}): {}\n\n", escape_markdown(text_of(cause, "cause")),
                       short_field(cause, "score"), escape_markdown(text_of(cause, "explanation")));
    for (const json& line : field_of(cause, "evidence"))
      out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
    if (const auto against = cause.find("against"); against != cause.end())
      for (const json& line : *against)
        out += fmt::format("- against it: {}\n", escape_markdown(exact_decimal(line)));
    out += "\n";
  }
  const json& outputs = field_of(v, "outputs");
  if (!outputs.empty()) out += outputs_part(outputs);
  if (const auto expected = v.find("expected_outputs"); expected != v.end() && !expected->empty())
    out += "Outputs in the inputs' file, against the reference\n\n" + outputs_part(*expected);
  if (const auto sums = v.find("accumulated_decay"); sums != v.end()) out += accumulated_part(*sums);
  return out;
}

std::string fuzz_part(const json& run) {
  std::string names;
  for (const json& kernel : field_of(run, "kernels"))
    names += (names.empty() ? "" : ", ") + code(exact_decimal(kernel));
  const json& findings = field_of(run, "findings");
  std::string out =
      fmt::format("# fuzz {}: {} cases, {} passed, {} findings, {} undecided, {} out of domain\n\n", names,
                  short_field(run, "cases"), short_field(run, "passed"), findings.size(),
                  short_field(run, "undecided"), short_field(run, "domain"));
  out += fmt::format("Backend {}, seed {}, {} s.\n\n", escape_markdown(text_of(run, "backend")),
                     escape_markdown(text_of(run, "seed")), short_field(run, "seconds"));
  for (const json& finding : findings) out += verification_part(finding, "## Finding:");
  out += "## Properties\n\n" + head({"property", "checked", "failed"}, 1);
  for (const json& property : field_of(run, "properties"))
    out += row({escape_markdown(text_of(property, "name")), short_field(property, "checked"),
                short_field(property, "failed")});
  out += "\n## Error against bound\n\n" + head({"kernel", "output", "format", "decay", "length", "cases",
                                                "max error/bound", "tightness", "max bound"},
                                               5);
  for (const json& line : field_of(run, "tightness")) {
    out += row({code(text_of(line, "kernel")), code(text_of(line, "output")),
                escape_markdown(text_of(line, "dtype")), escape_markdown(text_of(line, "decay")),
                escape_markdown(text_of(line, "length_class")), short_field(line, "cases"),
                short_field(line, "max_ratio"), short_field(line, "max_tightness"),
                short_field(line, "max_relative_bound")});
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
