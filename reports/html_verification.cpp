// The sections of one verification.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "src/result/verdict.h"

namespace assay::html {
namespace {

using nlohmann::json;

std::string heading(int level, std::string_view id, std::string_view text) {
  const std::string anchor = id.empty() ? "" : fmt::format(" id=\"{}\"", id);
  return fmt::format("<h{0}{1}>{2}</h{0}>\n", level, anchor, text);
}

std::string fact(std::string_view name, const std::string& markup) {
  return markup.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, markup);
}

std::string shape_text(const json& axes) {
  std::string out;
  for (const json& axis : axes) {
    if (!out.empty()) out += ", ";
    if (axis.is_object())
      out += fmt::format("{}={}", text_of(axis, "name"), text_of(axis, "size"));
    else
      out += axis.is_array() && axis.size() == 2
                 ? fmt::format("{}={}", exact_decimal(axis[0]), exact_decimal(axis[1]))
                 : exact_decimal(axis);
  }
  return fmt::format("[{}]", out);
}

/// Every parameter of the case, as it stands in the result.
std::string case_facts(const json& parameters) {
  std::string rows;
  for (const auto& [name, value] : parameters.items()) {
    const bool empty = value.is_null() || ((value.is_array() || value.is_string()) && value.empty());
    if (empty || name == "kernel") continue;
    std::string text;
    if (value.is_array()) {
      for (const json& entry : value) text += (text.empty() ? "" : ", ") + exact_decimal(entry);
    } else {
      text = exact_decimal(value);
    }
    rows += "<tr>" + row_head(escape_markup(name)) + mono_cell(text) + "</tr>\n";
  }
  return "<details><summary>Case parameters</summary>" + table("", {{"parameter"}, {"value"}}, rows) +
         "</details>\n";
}

std::string outputs_table(const json& outputs) {
  std::string rows;
  for (const json& output : outputs) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(output, "name"))));
    rows += mono_cell(shape_text(field_of(output, "axes"))) + text_cell(text_of(output, "dtype"));
    rows += number_cell(field_of(output, "elements"));
    for (const char* name : {"violation", "nonfinite", "wrong_class", "undecided"}) {
      rows += number_cell(field_of(output, name), count_of(output, name) > 0);
    }
    for (const char* name : {"max_ratio", "max_tightness", "max_relative_bound", "max_enclosure"}) {
      rows += number_cell(field_of(output, name));
    }
    rows += "</tr>\n";
  }
  return table(
      "Elements by verdict, and the largest of each measure. Ratio: error / bound. Tightness: the same with "
      "the "
      "rounding of the output itself removed from both. Bound: relative to the absolute companion. "
      "Enclosure: "
      "radius of the reference / bound.",
      {{"output"},
       {"shape"},
       {"format"},
       {"elements", true},
       {"violation", true},
       {"non-finite", true},
       {"class", true},
       {"undecided", true},
       {"ratio", true},
       {"tightness", true},
       {"bound", true},
       {"enclosure", true}},
      rows);
}

std::string worst_table(const json& worst) {
  struct Row {
    const char *label, *value, *bits;
  };
  const Row lines[] = {{"got", "got", "got_bits"},
                       {"expected", "expected", ""},
                       {"expected, rounded to the format", "expected_rounded", "expected_bits"},
                       {"absolute error", "absolute", ""},
                       {"bound", "bound", ""},
                       {"error / bound", "ratio", ""},
                       {"relative error", "relative", ""},
                       {"error in ulp", "ulp", ""}};
  std::string rows;
  for (const Row& row : lines) {
    rows += "<tr>" + row_head(row.label) + exact_cells(field_of(worst, row.value));
    rows += mono_cell(*row.bits ? text_of(worst, row.bits) : "") + "</tr>\n";
  }
  return table(fmt::format("Worst element <code>{}</code>", escape_markup(text_of(worst, "element"))),
               {{""}, {"decimal", true}, {"hexadecimal"}, {"bits"}}, rows);
}

std::string chart(std::string_view kind, const std::string& pointer, const std::string& caption) {
  return fmt::format(
      "<figure data-chart=\"{}\" data-at=\"{}\"><figcaption>{}</figcaption><div class=\"canvas\" "
      "role=\"img\" aria-label=\"{}: see the "
      "tables of this output\"></div></figure>\n",
      kind, pointer, caption, kind == "histogram" ? "histogram" : "chart");
}

/// The histogram's numbers, for those who do not see the chart.
std::string histogram_table(const json& histogram) {
  std::string rows;
  for (size_t bin = 0; bin < histogram.size(); ++bin) {
    if (histogram[bin] == 0) continue;
    const int exponent = static_cast<int>(bin) - 60;  // compare.h: counts by floor(log2 ratio) + 60
    rows += "<tr>" + text_cell(bin == 0    ? "exact (0)"
                               : bin == 63 ? fmt::format("2^{} and more, or not finite", exponent)
                                           : fmt::format("2^{} to 2^{}", exponent, exponent + 1));
    rows += number_cell(histogram[bin]) + "</tr>\n";
  }
  return "<details><summary>Histogram as a table</summary>" +
         table("", {{"error / bound"}, {"elements", true}}, rows) + "</details>\n";
}

std::string output_section(const json& output, const std::string& pointer, int level) {
  const std::string name = escape_markup(text_of(output, "name"));
  std::string out = heading(level, "", fmt::format("Output <code>{}</code>", name));
  const json& worst = field_of(output, "worst");
  if (!text_of(worst, "element").empty()) out += worst_table(worst);
  out += chart(
      "histogram", pointer,
      fmt::format("<b>How large the errors are</b>: elements of <code>{}</code> by error / bound", name));
  out += histogram_table(field_of(output, "histogram"));
  out += "<div class=\"fields\">\n";
  const json& fields = field_of(output, "fields");
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t indices = field_of(fields[i], "max_ratio").size();
    if (indices < 2) continue;  // the table says it
    out += chart("field", fmt::format("{}/fields/{}", pointer, i),
                 fmt::format("<b>Where along <code>{}</code></b>: largest error / bound at each index{}",
                             escape_markup(text_of(fields[i], "axis")),
                             indices > kPointsPerField ? " (neighbours folded into one point)" : ""));
  }
  return out + "</div>\n";
}

std::string trap_section(const json& trap, int level) {
  const auto triple = [](const json& at) {
    return at.is_array() && at.size() == 3
               ? fmt::format("({}, {}, {})", exact_decimal(at[0]), exact_decimal(at[1]), exact_decimal(at[2]))
               : exact_decimal(at);
  };
  return heading(level, "", "Trap: the run did not complete") +
         fmt::format(
             "<div class=\"callout\"><p class=\"lead\"><b>{}</b>: {}</p>\n<dl "
             "class=\"facts\">{}{}{}</dl></div>\n",
             escape_markup(text_of(trap, "kind")), escape_markup(text_of(trap, "message")),
             fact("where", escape_markup(location_text(field_of(trap, "where")))),
             fact("block", triple(field_of(trap, "block"))),
             fact("thread", triple(field_of(trap, "thread"))));
}

std::string exponents_section(const json& exponents, int level) {
  std::string rows;
  for (const json& range : exponents) {
    rows += "<tr>" + row_head(escape_markup(location_text(field_of(range, "where")))) +
            mono_cell(text_of(range, "instruction"));
    for (const char* name : {"min", "max", "count", "nans"}) rows += number_cell(field_of(range, name));
    rows += "</tr>\n";
  }
  return heading(level, "", "Arguments of exponentials") + table("",
                                                                 {{"where"},
                                                                  {"instruction"},
                                                                  {"smallest", true},
                                                                  {"largest", true},
                                                                  {"count", true},
                                                                  {"NaN", true}},
                                                                 rows);
}

std::string lead(const json& verification) {
  const json& origin = field_of(verification, "origin");
  if (!origin.is_null())
    return fmt::format("<div class=\"callout\"><p class=\"lead\">{}</p></div>\n",
                       escape_markup(text_of(origin, "sentence")));
  const std::string verdict = text_of(verification, "verdict"), cause = text_of(verification, "cause");
  if (verdict == name_of(Verdict::pass))
    return "<p class=\"lead\">Every element lies within the proved bound.</p>\n";
  return cause.empty()
             ? ""
             : fmt::format("<div class=\"callout{}\"><p class=\"lead\">{}</p></div>\n",
                           verdict == name_of(Verdict::finding) ? "" : " note", escape_markup(cause));
}

std::string list_section(const json& lines, int level, std::string_view title) {
  if (lines.empty()) return "";
  std::string out = heading(level, "", title) + "<ul>\n";
  for (const json& line : lines)
    out += fmt::format("<li class=\"mono\">{}</li>\n", escape_markup(exact_decimal(line)));
  return out + "</ul>\n";
}

std::string run_facts(const json& verification) {
  std::string out = "<dl class=\"facts\">\n";
  out += fact("kernel", "<code>" + escape_markup(text_of(verification, "kernel")) + "</code>");
  out += fact("backend", escape_markup(text_of(verification, "backend")));
  out += fact("declared arithmetic", escape_markup(text_of(verification, "arithmetic")));
  out += fact("cause", escape_markup(text_of(verification, "cause")));
  const int64_t differ = verification.value("bits_differ", int64_t{-1});
  if (differ >= 0) {
    out += fact("GPU against machine",
                differ == 0 ? "<span class=\"good\">the same bits</span>"
                            : fmt::format("<span class=\"bad\">{} elements differ</span>", differ));
  }
  if (count_of(verification, "lane_instructions") > 0)
    out += fact("lane instructions", number_markup(verification["lane_instructions"]));
  for (const auto& [name, label] :
       {std::pair{"seconds_reference", "reference"}, std::pair{"seconds_kernel", "kernel"}}) {
    if (verification.contains(name)) out += fact(label, number_markup(verification[name]) + " s");
  }
  return out + "</dl>\n";
}

/// What the errors of tensors of log decays add up to.
std::string accumulated_paragraphs(const json& sums) {
  std::string out;
  for (const json& sum : sums) {
    const auto number = [&](const char* name) { return number_markup(field_of(sum, name)); };
    out += fmt::format(
        "<p>Accumulated log decay over the {} steps to <code>{}</code>: {} nats, off by {} (bound {}).</p>\n",
        number("steps"), escape_markup(text_of(sum, "element")), number("decay"), number("error"),
        number("bound"));
  }
  return out;
}

/// The kernel's outputs on real numbers against the reference.
std::string formula_section(const json& formula, int level) {
  std::string out = heading(level, "", "The formula, in exact arithmetic");
  if (const std::string skipped = text_of(formula, "skipped"); !skipped.empty())
    return out + fmt::format("<p>Not judged: {}.</p>\n", escape_markup(skipped));
  std::string rows;
  for (const json& output : field_of(formula, "outputs")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(output, "name"))));
    rows += number_cell(field_of(output, "elements")) + number_cell(field_of(output, "judged"));
    rows += number_cell(field_of(output, "violation"), count_of(output, "violation") > 0);
    rows += number_cell(field_of(output, "max_difference")) + number_cell(field_of(output, "max_allowed"));
    const json& worst = field_of(output, "worst");
    rows += mono_cell(text_of(worst, "element"));
    for (const char* name : {"exact", "expected", "allowed"}) rows += number_cell(field_of(worst, name));
    rows += "</tr>\n";
  }
  out += fmt::format("<p>In {} s; {} comparisons would come out otherwise on real numbers.</p>\n",
                     number_markup(field_of(formula, "seconds")), number_markup(field_of(formula, "turned")));
  return out +
         table(
             "Where nothing rounds, what do the kernel's instructions give? Difference from the reference, "
             "and what constants, radius and shadow explain of it, relative to the output's root mean "
             "square; then the element of the largest share of what is allowed.",
             {{"output"},
              {"elements", true},
              {"judged", true},
              {"violation", true},
              {"difference", true},
              {"allowed", true},
              {"element"},
              {"exact", true},
              {"expected", true},
              {"allowed there", true}},
             rows);
}

}  // namespace

std::string verdict_badge(const std::string& verdict) {
  const char* sign = verdict == name_of(Verdict::pass)      ? "\u2713"
                     : verdict == name_of(Verdict::finding) ? "\u2717"
                                                            : "?";
  return fmt::format("<span class=\"badge {0}\">{1} {0}</span>", escape_markup(verdict), sign);
}

std::string replay_line(const std::string& command) {
  if (command.empty()) return "";
  return fmt::format(
      "<div class=\"replay\"><code>{}</code><button class=\"copy\" type=\"button\" "
      "hidden>copy</button></div>\n",
      escape_markup(command));
}

std::string verification_sections(const json& verification, const std::string& pointer, int level) {
  std::string out =
      lead(verification) + replay_line(text_of(verification, "replay")) + run_facts(verification);
  out += case_facts(field_of(verification, "case"));
  out += list_section(field_of(verification, "properties_failed"), level, "Properties that fail");
  json checks = json::array();
  for (const json& finding : check_findings(verification))
    checks.push_back(text_of(finding, "kind") + ": " + text_of(finding, "message"));
  out += list_section(checks, level, "What the checks on the machine found");
  out += list_section(field_of(verification, "domain"), level,
                      "Inputs outside the domain: no fault of the kernel");
  if (const json& trap = field_of(verification, "trap"); !trap.is_null()) out += trap_section(trap, level);
  if (const json& origin = field_of(verification, "origin"); !origin.is_null())
    out += origin_section(origin, level);
  if (const auto origins = verification.find("origins"); origins != verification.end() && !origins->empty())
    out += origins_section(*origins, level);
  if (const auto triage = verification.find("triage"); triage != verification.end() && !triage->is_null()) {
    out += list_section(field_of(*triage, "evidence"), level, "At fault: " + text_of(*triage, "fault"));
    out += fmt::format("<p>{}</p>\n", escape_markup(text_of(*triage, "explanation")));
  }
  out += diagnosis_section(field_of(verification, "diagnosis"), level);
  const json& outputs = field_of(verification, "outputs");
  if (!outputs.empty()) out += heading(level, "", "Error against bound") + outputs_table(outputs);
  if (const auto formula = verification.find("formula"); formula != verification.end() && !formula->is_null())
    out += formula_section(*formula, level);
  if (const auto expected = verification.find("expected_outputs");
      expected != verification.end() && !expected->empty()) {
    out +=
        heading(level, "", "Outputs in the inputs' file, against the reference") + outputs_table(*expected);
    for (const json& output : *expected)
      if (const json& worst = field_of(output, "worst"); !text_of(worst, "element").empty())
        out += worst_table(worst);
  }
  if (const auto sums = verification.find("accumulated_decay"); sums != verification.end())
    out += accumulated_paragraphs(*sums);
  for (size_t i = 0; i < outputs.size(); ++i)
    out += output_section(outputs[i], fmt::format("{}/outputs/{}", pointer, i), level + 1);
  if (const auto slice = verification.find("slice"); slice != verification.end() && !slice->is_null())
    out += slice_section(*slice, level);
  if (const auto shadow = verification.find("shadow"); shadow != verification.end() && !shadow->is_null())
    out += shadow_section(*shadow, level);
  if (const json& exponents = field_of(verification, "exponents"); !exponents.empty())
    out += exponents_section(exponents, level);
  return out;
}

}  // namespace assay::html
