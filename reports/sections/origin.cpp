// Where a non-finite value was born, with the chain to the output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "reports/console_chain.h"
#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/origin_graph.h"
#include "reports/section.h"
#include "src/base/program/source_place.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

constexpr size_t kInputsPrinted = 6;

std::string triple(const json& at) {
  std::string out;
  for (const json& part : at) out += (out.empty() ? "" : ", ") + exact_decimal(part);
  return fmt::format("({})", out);
}

std::string link_item(const json& link) {
  const std::string text = text_of(link, "text");
  return fmt::format("<b>{}</b> <code>{}</code>{}", escape_markup(location_text(field_of(link, "where"))),
                     escape_markup(text_of(link, "instruction")),
                     text.empty() ? "" : fmt::format("<pre>{}</pre>", escape_markup(text)));
}

std::string operands_table(const json& origin) {
  std::string rows;
  for (const json& operand : field_of(origin, "operands")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(operand, "name"))));
    rows += text_cell(text_of(operand, "type")) + exact_cells(field_of(operand, "value")) +
            mono_cell(text_of(operand, "bits")) + "</tr>\n";
  }
  rows += "<tr>" + row_head("result") + "<td></td>" + exact_cells(field_of(origin, "result")) +
          "<td></td></tr>\n";
  return table("", {{"operand"}, {"type"}, {"decimal", true}, {"hexadecimal"}, {"bits"}}, rows);
}

std::string inputs_table(const json& origin) {
  const json& inputs = field_of(origin, "inputs");
  if (inputs.empty()) return "";
  std::string rows;
  for (const json& input : inputs) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(input, "element"))));
    rows += number_cell(field_of(input, "value")) + text_cell(text_of(input, "nearest_finite")) + "</tr>\n";
  }
  return table(origin.value("inputs_truncated", false) ? "Input elements it depends on (there are more)"
                                                       : "Input elements it depends on",
               {{"element"}, {"value", true}, {"nearest value that makes the output finite"}}, rows);
}

std::string origin_page(const json& origin, const std::string&, int level) {
  std::string out = fmt::format("<h{0}>Where it was born</h{0}>\n<p>Walked back from <code>{1}</code>.</p>\n",
                                level, escape_markup(text_of(origin, "element"))) +
                    origin_graph(origin);
  if (const std::string source = text_of(origin, "source_text"); !source.empty())
    out += fmt::format("<pre>{}</pre>\n", escape_markup(source));
  out += fmt::format(
      "<dl "
      "class=\"facts\"><dt>kind</dt><dd><b>{}</b></dd>\n<dt>where</dt><dd>{}</dd>\n<dt>instruction</"
      "dt><dd><code>{}</code></dd>\n"
      "<dt>block, thread</dt><dd class=\"mono\">{} {}</dd></dl>\n",
      escape_markup(text_of(origin, "kind")), escape_markup(location_text(field_of(origin, "where"))),
      escape_markup(text_of(origin, "instruction")), triple(field_of(origin, "block")),
      triple(field_of(origin, "thread")));
  out += operands_table(origin) + inputs_table(origin);
  if (const auto made = origin.find("infinity_made_at"); made != origin.end() && !made->is_null()) {
    out += "<p>The infinity was made at " + link_item(*made) + "</p>\n";
  }
  if (const json& chain = field_of(origin, "chain"); !chain.empty()) {
    out += fmt::format("<h{0}>From there to the output</h{0}>\n<ol class=\"chain\">\n", level + 1);
    for (const json& link : chain) out += "<li>" + link_item(link) + "</li>\n";
    out += "</ol>\n";
  }
  return out;
}

std::string origin_markdown(const json& origin) {
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

void print_origin(const Console& console, const Origin& origin, size_t depth) {
  console.line(fmt::format("\n{} {}", console.styled(Style::bold, "origin of"), origin.element));
  if (!origin.sentence.empty()) console.line(fmt::format("  {}", origin.sentence));
  if (origin.where.ptx_line == 0) {  // no instruction: nothing was ever stored there
    console.line(fmt::format("  {}", console.styled(Style::bad, name_of(origin.kind))));
    return;
  }
  console.line(fmt::format("  {} at {}", console.styled(Style::bad, name_of(origin.kind)),
                           place_with_ptx_line(origin.where)));
  print_frames(console, origin.where);
  if (!origin.source_text.empty()) console.line(fmt::format("    {}", origin.source_text));
  console.line(fmt::format("  {}  -> {}", origin.instruction, origin.result));
  for (const OriginOperand& operand : origin.operands) {
    console.line(fmt::format("    {:<12} {:<6} = {:<24.9g} {:#x}", operand.name, operand.type, operand.value,
                             operand.bits));
  }
  console.line(
      fmt::format("  block ({}), thread ({})", fmt::join(origin.block, ","), fmt::join(origin.thread, ",")));
  if (origin.infinity_made_at) {
    console.line(fmt::format("  the infinity was made at {}: {}",
                             place_with_ptx_line(origin.infinity_made_at->where),
                             origin.infinity_made_at->instruction));
  }
  if (!origin.inputs.empty()) console.line("  it depends on");
  for (size_t i = 0; i < std::min(kInputsPrinted, origin.inputs.size()); ++i) {
    const InputElement& input = origin.inputs[i];
    const bool inwards = std::fabs(std::atof(input.nearest_finite.c_str())) < std::fabs(input.value);
    const std::string nearest =
        input.nearest_finite.empty()
            ? ""
            : fmt::format("   finite from {} {} 0", input.nearest_finite, inwards ? "towards" : "away from");
    console.line(fmt::format("    {} = {}{}", input.element, input.value, nearest));
  }
  if (origin.inputs.size() > kInputsPrinted || origin.inputs_truncated) {
    const size_t more = origin.inputs.size() - std::min(kInputsPrinted, origin.inputs.size());
    console.line(fmt::format("    ... and {}{} more", origin.inputs_truncated ? "at least " : "",
                             more + (origin.inputs_truncated ? 1 : 0)));
  }
  if (!origin.chain.empty()) console.line("  and reached the output through");
  for_ends(
      origin.chain.size(), depth,
      [&](size_t i) {
        const ChainLink& link = origin.chain[i];
        console.line(fmt::format("    {:<44} {}{}", place_with_ptx_line(link.where), link.instruction,
                                 link.text.empty() ? "" : fmt::format("   {}", link.text)));
      },
      [&](size_t left_out) { console.line(fmt::format("    ... {} more (--depth)", left_out)); });
}

}  // namespace

extern const Section origin = {
    .field = "origin",
    .page = origin_page,
    .markdown = origin_markdown,
    .print =
        [](const Console& console, const Verification& v, size_t depth) {
          if (v.origin) print_origin(console, *v.origin, depth);
        },
    .plain = [](const json& origin) { return text_of(origin, "sentence") + "\n"; },
    .headline = [](const json& origin) { return text_of(origin, "sentence"); },
    .rule = [](const json& origin) -> std::optional<Rule> {
      const std::string kind = text_of(origin, "kind");
      return Rule{kind, "a value that is not finite was born of " + kind};
    },
    .place = [](const json& origin) { return field_or_null(origin, "where"); },
};

}  // namespace assay::sections
