// assay list WHAT: the tables the program is made of, printed from their rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "fuzz/properties.h"
#include "kernels/defect.h"
#include "kernels/kernel.h"
#include "kernels/recorded_defects.h"
#include "reference/arithmetic.h"
#include "reference/operator.h"
#include "reports/console.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"
#include "src/case/decay_profiles.h"
#include "src/case/names.h"
#include "src/cli/commands.h"
#include "src/result/schema.h"
#include "src/verification/diagnosis/diagnose.h"

namespace assay::cli {
namespace {

/// One table: names of the columns, rows of text, a line below.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note;
  size_t brief = 0;  ///< so many columns in front are printed unless --wide; 0: all
};

std::string arguments_text(const std::vector<ArgumentSpec>& arguments) {
  std::vector<std::string> parts;
  for (const ArgumentSpec& a : arguments)
    parts.push_back(fmt::format("{}[{}]{}{}", a.name, fmt::join(a.axes, ","), a.optional ? "?" : "",
                                a.instead_of.empty() ? "" : fmt::format("(instead of {})", a.instead_of)));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string parameters_text(const std::vector<ParameterSpec>& parameters) {
  std::vector<std::string> parts;
  for (const ParameterSpec& p : parameters)
    parts.push_back(fmt::format("{} ({}): {}", p.name, p.value, p.summary));
  return fmt::format("{}", fmt::join(parts, "; "));
}

Listing list_operators() {
  Listing list{{"operator", "summary", "inputs (? optional)", "outputs", "parameters (default)", "formula",
                "citation"},
               {},
               "",
               3};
  for (const Operator& op : operators()) {
    list.rows.push_back({std::string(op.name), std::string(op.summary), arguments_text(op.inputs),
                         arguments_text(op.outputs), parameters_text(op.parameters), std::string(op.formula),
                         std::string(op.citation)});
  }
  return list;
}

std::string formats_text(const std::vector<Dtype>& dtypes) {
  std::vector<std::string_view> names;
  for (Dtype d : dtypes) names.push_back(format(d).name);
  return fmt::format("{}", fmt::join(names, ","));
}

/// Whether an input has the axis, by itself or as a factor ("H*V"); D is V.
bool has_axis(const Operator& op, std::string_view axis) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& input) {
    return std::any_of(input.axes.begin(), input.axes.end(),
                       [&](std::string_view name) { return name == axis || (axis == "V" && name == "D"); });
  });
}

/// What a kernel is safe for: every input of the operator finite, its log decays in this range.
std::string domain_text(const Kernel& kernel, const Operator& op) {
  for (const ArgumentSpec& input : op.inputs)
    if (input.role == Role::log_decay)
      return fmt::format("{} in [{}, {}]", input.name, kernel.limits.gate_min, kernel.limits.gate_max);
  return "finite inputs";
}

Listing list_kernels() {
  Listing list{
      {"kernel", "summary", "directions", "inputs", "gates", "K up to", "V up to", "safe for", "arithmetic"},
      {},
      fmt::format(
          "safe for: where every intermediate stays in its format and no exponential sees an argument "
          "above 0, as the machine sees at the edges; other inputs finite. GPU: {}",
          describe_gpu()),
      7};
  for (const Kernel& kernel : kernels()) {
    const KernelLimits& limits = kernel.limits;
    const Operator& op = find_operator(kernel.operator_name);
    list.rows.push_back({kernel.name, kernel.summary,
                         fmt::format("{}", fmt::join(names_of(directions_of(kernel)), ",")),
                         formats_text(limits.dtypes), formats_text(limits.gate_dtypes),
                         has_axis(op, "K") ? std::to_string(limits.max_K) : "-",
                         has_axis(op, "V") ? std::to_string(limits.max_V) : "-", domain_text(kernel, op),
                         kernel.arithmetic_text});
  }
  return list;
}

Listing list_instructions() {
  Listing list{
      {"sm_80", "sm_89", "sm_90", "instruction"},
      {},
      "exact: fixed by the PTX ISA; measured: the bits that an H200 returned; modelled: nobody has compared "
      "them with hardware; -: the architecture lacks it. Cache operators, memory orders and scopes may be "
      "added."};
  for (const vm::InstructionRow& row : vm::instruction_rows())
    list.rows.push_back({row.status[0], row.status[1], row.status[2], row.forms});
  return list;
}

Listing list_causes() {
  Listing list{{"cause", "summary"}, {}, ""};
  for (const auto& [name, summary] : cause_names())
    list.rows.push_back({std::string(name), std::string(summary)});
  return list;
}

Listing list_properties() {
  Listing list{{"property", "summary"}, {}, ""};
  for (const Property& property : properties())
    list.rows.push_back({std::string(property.name), std::string(property.summary)});
  return list;
}

Listing list_decays() {
  Listing list{{"decay", "arguments", "defaults", "in domain", "summary"}, {}, ""};
  for (const DecayProfile& p : decay_profiles()) {
    list.rows.push_back({std::string(p.name), std::string(p.arguments),
                         fmt::format("{}", fmt::join(p.defaults, ",")), p.in_domain ? "yes" : "no",
                         std::string(p.summary)});
  }
  return list;
}

/// A patch is native or transplanted as the recorded defect is that it recreates, or else planted; then the
/// recorded ones that no kernel can carry.
Listing list_defects() {
  Listing list{
      {"defect", "group", "what", "expected cause", "expected line, or why there is no patch"}, {}, ""};
  for (const Defect& defect : defects()) {
    const RecordedDefect* recorded = recorded_as(defect.id());
    list.rows.push_back({defect.id(), std::string(recorded ? name_of(recorded->group) : "planted"),
                         defect.what, fmt::format("{}", fmt::join(expected_causes(defect), ", ")),
                         defect.line});
  }
  for (const RecordedDefect& recorded : recorded_defects())
    if (recorded.patches.empty())
      list.rows.push_back({std::string(recorded.id), std::string(name_of(recorded.group)),
                           std::string(recorded.title), "", std::string(recorded.reason)});
  return list;
}

Listing list_arithmetic() {
  Listing list{{"number", "of", "unit", "covers"},
               {},
               "what a kernel declares of its arithmetic: upper bounds, 0 where nothing is said. "
               "reference/bound.h and bound_adjoint.h say which operations each covers."};
  const auto add = [&](const auto& fields) {
    for (const auto& field : fields)
      list.rows.push_back({std::string(field.name), std::string(field.family),
                           std::string(name_of(field.unit)), std::string(field.covers)});
  };
  add(kArithmeticFields), add(kAdjointFields);
  return list;
}

struct Kind {
  const char* name;
  Listing (*list)();
};
constexpr Kind kKinds[] = {{"operators", list_operators},       {"kernels", list_kernels},
                           {"instructions", list_instructions}, {"causes", list_causes},
                           {"properties", list_properties},     {"decays", list_decays},
                           {"defects", list_defects},           {"arithmetic", list_arithmetic}};

void print_text(const Listing& list) {
  const Console console(stdout);
  std::vector<std::vector<std::string>> rows{list.columns};
  rows.insert(rows.end(), list.rows.begin(), list.rows.end());
  const bool cut = list.brief > 0 && !Console::is_set_wide();
  if (cut)
    for (std::vector<std::string>& row : rows) row.resize(list.brief);
  console.table(rows, list.columns.size());
  if (!list.note.empty()) console.help(list.note);
  if (cut)
    console.line(fmt::format(
        "{} with --wide, --markdown or --json",
        fmt::join(list.columns.begin() + static_cast<std::ptrdiff_t>(list.brief), list.columns.end(), ", ")));
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (std::string cell : cells) {
    for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
    text += fmt::format(" {} |", cell);
  }
  return text;
}

void print_markdown(const Listing& list) {
  fmt::print("{}\n|{}\n", markdown_row(list.columns),
             fmt::format("{}", fmt::join(std::vector<std::string>(list.columns.size(), "---|"), "")));
  for (const auto& row : list.rows) fmt::print("{}\n", markdown_row(row));
  if (!list.note.empty()) fmt::print("\n{}\n", list.note);
}

void print_json(const char* kind, const Listing& list) {
  nlohmann::json json{{"kind", kind}, {"rows", nlohmann::json::array()}};
  for (const auto& row : list.rows) {
    nlohmann::json object;
    for (size_t i = 0; i < list.columns.size(); ++i) object[list.columns[i]] = row[i];
    json["rows"].push_back(object);
  }
  if (!list.note.empty()) json["note"] = list.note;
  fmt::print("{}\n", json.dump(1));
}

struct ListCommand {
  std::string what;
  bool json = false, markdown = false;

  int run() const {
    if (what == "schema") return fmt::print("{}\n", result_schema().dump(2)), 0;
    std::vector<std::string> names = {"schema"};
    for (const Kind& kind : kKinds) {
      names.emplace_back(kind.name);
      if (what != kind.name) continue;
      const Listing list = kind.list();
      if (json)
        print_json(kind.name, list);
      else if (markdown)
        print_markdown(list);
      else
        print_text(list);
      return 0;
    }
    throw BadInput(unknown_name("list", what, names));
  }
};

}  // namespace

void add_list(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("list",
                                         "Prints a table: operators, kernels, instructions, causes, "
                                         "properties, decays, defects, arithmetic; or the schema "
                                         "of results");
  const auto options = std::make_shared<ListCommand>();
  command
      ->add_option(
          "WHAT", options->what,
          "operators, kernels, instructions, causes, properties, decays, defects, arithmetic or schema")
      ->required();
  CLI::Option* json = command->add_flag("--json", options->json, "As JSON");
  command->add_flag("--markdown", options->markdown, "As a Markdown table")->excludes(json);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
