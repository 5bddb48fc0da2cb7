// Errors of the outputs against their bounds, and the same of outputs that the inputs' file holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/result/finding_kind.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

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

/// Has no element a finite bound? Then no error is a share of one.
bool is_unbounded(const json& output) {
  const int64_t by_formula = count_of(output, "by_formula");
  return by_formula > 0 && by_formula == count_of(output, "elements");
}

/// Of each output that has elements without a finite bound a sentence.
std::string unbounded_sentences(const json& outputs) {
  std::string sentences;
  for (const json& output : outputs) {
    const std::string text =
        unbounded_text(text_of(output, "name"), count_of(output, "by_formula"), count_of(output, "elements"));
    if (!text.empty()) sentences += fmt::format("{}{}.", sentences.empty() ? "" : " ", text);
  }
  return sentences;
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
      rows += is_unbounded(output) ? text_cell("-") : number_cell(field_of(output, name));
    }
    rows += "</tr>\n";
  }
  const std::string unbounded = unbounded_sentences(outputs);
  const std::string note = unbounded.empty() ? "" : fmt::format("<p>{}</p>\n", escape_markup(unbounded));
  const char* const caption =
      "Elements by verdict, and the largest of each measure. Ratio: error / bound. Tightness: the same with "
      "the rounding of the output itself removed from both. Bound: relative to the absolute companion. "
      "Enclosure: radius of the reference / bound.";
  return note + table(caption,
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
  std::string out = heading(level, fmt::format("Output <code>{}</code>", name));
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

std::string outputs_markdown(const json& outputs) {
  std::string out = head({"output", "format", "elements", "violation", "non-finite", "class", "undecided",
                          "max error/bound", "tightness", "enclosure/bound"},
                         2);
  for (const json& output : outputs) {
    const auto measure = [&](const char* name) {
      return is_unbounded(output) ? "-" : short_field(output, name);
    };
    out += row({code(text_of(output, "name")), escape_markdown(text_of(output, "dtype")),
                short_field(output, "elements"), short_field(output, "violation"),
                short_field(output, "nonfinite"), short_field(output, "wrong_class"),
                short_field(output, "undecided"), measure("max_ratio"), measure("max_tightness"),
                measure("max_enclosure")});
  }
  if (const std::string unbounded = unbounded_sentences(outputs); !unbounded.empty())
    out += "\n" + escape_markdown(unbounded) + "\n";
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

/// Of a program without a claim only what is not finite is known of its outputs, unless values are expected.
bool are_judged(const Verification& v) {
  return !v.program || std::any_of(v.outputs.begin(), v.outputs.end(),
                                   [](const OutputComparison& o) { return !o.verdicts.empty(); });
}

void print_outputs(const Console& console, const Verification& v, size_t) {
  if (v.outputs.empty() || !are_judged(v)) return;
  console.line("");
  std::vector<std::vector<std::string>> rows{{"output", "shape", "elements", "ok", "violation", "nonfinite",
                                              "class", "undecided", "max error/bound", "tightness"}};
  const auto add = [&](const OutputComparison& o, const char* of) {
    std::vector<std::string> shape;
    for (const Axis& axis : o.axes) shape.push_back(fmt::format("{}={}", axis.name, axis.size));
    const bool unbounded = o.by_formula > 0 && o.by_formula == o.elements;
    rows.push_back({o.name + of, fmt::format("[{}] {}", fmt::join(shape, ","), format(o.dtype).name),
                    std::to_string(o.elements), std::to_string(o.ok), std::to_string(o.violation),
                    std::to_string(o.nonfinite), std::to_string(o.wrong_class), std::to_string(o.undecided),
                    unbounded ? "-" : fmt::format("{:.3g}", o.max_ratio),
                    unbounded ? "-" : fmt::format("{:.3g}", o.max_tightness)});
  };
  for (const OutputComparison& o : v.outputs) add(o, "");
  for (const OutputComparison& o : v.expected_outputs) add(o, " in the file");
  console.table(rows, 2);
  console.prose(console.styled(
      Style::dim,
      "error/bound: above 1 is a fault; tightness: the same before the output itself is rounded; class: "
      "infinite or of the other sign where the reference is infinite"));
}

/// The element that is shown: of the output with the worst one.
const OutputComparison* worst_output(const std::vector<OutputComparison>& outputs) {
  const auto badness = [](const OutputComparison& o) {
    return o.worst.flat < 0 ? -1 : std::isnan(o.worst.ratio) ? INFINITY : o.worst.ratio;
  };
  const auto worst = std::max_element(outputs.begin(), outputs.end(),
                                      [&](const auto& a, const auto& b) { return badness(a) < badness(b); });
  return worst == outputs.end() || worst->worst.flat < 0 ? nullptr : &*worst;
}

void print_worst(const Console& console, const std::vector<OutputComparison>& outputs, const char* what) {
  const OutputComparison* output = worst_output(outputs);
  if (!output) return;
  const WorstElement& w = output->worst;
  const int digits = 2 * format(output->dtype).bytes + 2;
  console.line(fmt::format("\n{} {}", console.styled(Style::bold, what), w.element));
  console.line(fmt::format("  got       {:<24.17g} {:#0{}x}", w.got, w.got_bits, digits));
  console.line(fmt::format("  expected  {:<24.17g} {:#0{}x} as {}, exactly {:a}", w.expected_rounded,
                           w.expected_bits, digits, format(output->dtype).name, w.expected));
  console.line(
      fmt::format("  error     {:<24.9g} {:.3g} relative, {:.3g} ulp", w.absolute, w.relative, w.ulp));
  console.line(fmt::format("  bound     {:<24.9g} {:a}", w.bound, w.bound));
  console.line(fmt::format("  error/bound {:.4g}", w.ratio));
}

std::string worst_text(const json& output, const char* of) {
  const json& worst = field_of(output, "worst");
  return fmt::format("{}{}: got {}, expected {}, bound {}, error/bound {}\n", of, text_of(worst, "element"),
                     exact_decimal(field_of(worst, "got")), exact_decimal(field_of(worst, "expected")),
                     exact_decimal(field_of(worst, "bound")), exact_decimal(field_of(worst, "ratio")));
}

std::string output_headline(const json& output, const char* of, int64_t faults) {
  const json& worst = field_of(output, "worst");
  return fmt::format("{} of {} elements of {}{}: {} is {}, expected {}, error {} times its bound", faults,
                     count_of(output, "elements"), text_of(output, "name"), of, text_of(worst, "element"),
                     short_decimal(field_of(worst, "got")), short_decimal(field_of(worst, "expected")),
                     short_decimal(field_of(worst, "ratio")));
}

}  // namespace

extern const Section outputs = {
    .field = "outputs",
    .page = [](const json& outputs, const std::string&,
               int level) { return heading(level, "Error against bound") + outputs_table(outputs); },
    .markdown = outputs_markdown,
    .print = print_outputs,
    .plain =
        [](const json& outputs) {
          std::string out;
          for (const json& output : outputs) out += worst_text(output, "");
          return out;
        },
    .headline = [](const json& outputs) -> std::string {
      for (const json& output : outputs)
        if (const int64_t faults = count_of(output, "violation") + count_of(output, "wrong_class") +
                                   count_of(output, "undecided"))
          return output_headline(output, "", faults);
      return "";
    },
};

extern const Section worst_elements = {
    .field = "outputs",
    .page =
        [](const json& outputs, const std::string& pointer, int level) {
          std::string out;
          for (size_t i = 0; i < outputs.size(); ++i)
            out += output_section(outputs[i], fmt::format("{}/outputs/{}", pointer, i), level + 1);
          return out;
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          const bool right = std::all_of(v.outputs.begin(), v.outputs.end(),
                                         [](const OutputComparison& o) { return o.pass(); });
          if (right && expected_differs(v)) return;  // the file's follows: nothing is wrong with these
          if (are_judged(v)) print_worst(console, v.outputs, "worst element");
        },
};

extern const Section expected_outputs = {
    .field = "expected_outputs",
    .later = true,
    .page =
        [](const json& outputs, const std::string&, int level) {
          std::string out =
              heading(level, "Outputs in the inputs' file, against the reference") + outputs_table(outputs);
          for (const json& output : outputs)
            if (const json& worst = field_of(output, "worst"); !text_of(worst, "element").empty())
              out += worst_table(worst);
          return out;
        },
    .markdown =
        [](const json& outputs) {
          return "Outputs in the inputs' file, against the reference\n\n" + outputs_markdown(outputs);
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          if (expected_differs(v)) print_worst(console, v.expected_outputs, "worst element in the file");
        },
    .plain =
        [](const json& outputs) {
          std::string out;
          for (const json& output : outputs) out += worst_text(output, "in the file ");
          return out;
        },
    .headline = [](const json& outputs) -> std::string {
      for (const json& output : outputs)
        if (const int64_t faults = count_of(output, "violation") + count_of(output, "wrong_class") +
                                   count_of(output, "nonfinite"))
          return output_headline(output, " in the inputs' file", faults);
      return "";
    },
};

}  // namespace assay::sections
