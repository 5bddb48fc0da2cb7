// What stands behind one element.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/console_chain.h"
#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

std::string step_item(const json& step) {
  std::string values;
  for (const json& o : field_of(step, "operands"))
    values += (values.empty() ? "" : ", ") + number_markup(field_of(o, "value"));
  if (!values.empty()) values += " \u2192 " + number_markup(field_of(step, "result"));
  const json& at = field_of(step, "at");
  const std::string text = text_of(at, "text");
  const int64_t times = count_of(step, "times");
  return fmt::format(
      "<li><b>{}</b> <code>{}</code> {}{}{}</li>\n", escape_markup(location_text(field_of(at, "where"))),
      escape_markup(text_of(at, "instruction")), values, times > 1 ? fmt::format(" \u00d7 {}", times) : "",
      text.empty() ? "" : fmt::format("<pre>{}</pre>", escape_markup(text)));
}

std::string slice_page(const json& slice, const std::string&, int level) {
  std::string out =
      fmt::format("<h{0}>Behind <code>{1}</code></h{0}>\n", level, escape_markup(text_of(slice, "element")));
  out +=
      fmt::format("<p>{}{} instruction instances on {} source lines; {} of {} blocks were run again.</p>\n",
                  slice.value("truncated", false) ? "More than " : "", grouped(field_of(slice, "instances")),
                  field_of(slice, "lines").size(), grouped(field_of(slice, "blocks")),
                  grouped(field_of(slice, "blocks_of")));
  std::string rows;
  for (const json& in : field_of(slice, "inputs")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(in, "input"))));
    rows += number_cell(field_of(in, "elements"));
    for (const char* name : {"first", "last", "largest"}) rows += mono_cell(text_of(in, name));
    rows += number_cell(field_of(in, "value")) + "</tr>\n";
  }
  out += table("Inputs it depends on",
               {{"input"}, {"elements", true}, {"first"}, {"last"}, {"largest"}, {"value", true}}, rows);
  out += "<p>The operands that decide its size, from the input to the output:</p>\n<ol class=\"chain\">\n";
  for (const json& step : field_of(slice, "chain")) out += step_item(step);
  return out + "</ol>\n";
}

std::string slice_markdown(const json& slice) {
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

std::string step_text(const SliceStep& step) {
  std::string operands;
  for (const OriginOperand& o : step.operands)
    operands += fmt::format("{}{:.6g}", operands.empty() ? "" : ", ", o.value);
  std::string text = fmt::format("    {:<24} {:<26}", short_place(step.at.where),
                                 step.at.instruction.substr(0, step.at.instruction.find(' ')));
  if (!step.type.empty() && !step.operands.empty())
    text += fmt::format(" {} -> {:.6g}", operands, step.result);
  if (step.times > 1) text += fmt::format("  (x {})", step.times);
  if (!step.at.text.empty()) text += fmt::format("   {}", step.at.text);
  return text;
}

/// Size of the slice, the inputs it read, and the chain of operands that decide the element's size; of a
/// chain longer than `depth` the first and last steps.
void print_slice(const Console& console, const ElementSlice& slice, size_t depth) {
  console.line(
      fmt::format("\n{} {} = {:.9g}", console.styled(Style::bold, "behind"), slice.element, slice.value));
  console.line(fmt::format("  {}{} instruction instances on {} source lines; {} of {} blocks were run again",
                           slice.truncated ? "more than " : "", slice.instances, slice.lines.size(),
                           slice.blocks, slice.blocks_of));
  if (slice.truncated)
    console.line("  the nearest of them, and further back those behind the operands that decide its size");
  for (const SliceInput& in : slice.inputs) {
    const std::string range = in.elements == 1 ? in.first : fmt::format("{} to {}", in.first, in.last);
    console.line(fmt::format("  {}: {} element{}, {}; largest {} = {:.6g}", in.input, in.elements,
                             in.elements == 1 ? "" : "s", range, in.largest, in.value));
  }
  if (slice.unwritten)
    console.line(console.styled(Style::doubtful, "  a value that nothing wrote takes part"));
  if (slice.chain.empty()) return;
  console.line("  the operands that decide its size, from the input to the output");
  for_ends(
      slice.chain.size(), depth, [&](size_t i) { console.line(step_text(slice.chain[i])); },
      [&](size_t left_out) { console.line(fmt::format("    ... {} more (--depth)", left_out)); });
}

}  // namespace

extern const Section element_slice = {
    .field = "slice",
    .later = true,
    .page = slice_page,
    .markdown = slice_markdown,
    .print =
        [](const Console& console, const Verification& v, size_t depth) {
          if (v.slice) print_slice(console, *v.slice, depth);
        },
    .place =
        [](const json& slice) {
          const json& chain = field_or_null(slice, "chain");
          return chain.empty() ? json() : field_or_null(field_or_null(chain.back(), "at"), "where");
        },
};

}  // namespace assay::sections
