// assay inspect FILE: what the tensors of a file are, and which operators they can be the inputs of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/console.h"
#include "src/base/ptx/printable.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/case/layouts.h"
#include "src/case/operator_fit.h"
#include "src/cli/commands.h"
#include "src/cli/tensor_names.h"
#include "src/cli/whole_number.h"
#include "src/result/inspection.h"

namespace assay::cli {
namespace {

constexpr int kExponentGroups = 8;
constexpr size_t kNearest = 3;  // operators that do not fit and are told

std::vector<int64_t> shape_of(const Tensor& tensor) {
  std::vector<int64_t> shape;
  for (const Axis& axis : tensor.axes) shape.push_back(axis.size);
  return shape;
}

/// "k[0,3,1,7]".
std::string element(const std::string& name, const Tensor& tensor, int64_t flat) {
  return fmt::format("{}[{}]", ptx::printable(name), fmt::join(tensor.index(flat), ","));
}

std::string share(int64_t count, int64_t of) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(count) / static_cast<double>(of));
}

struct NamedClass {
  const char* name;
  ValueClass TensorSummary::*values;
};
constexpr NamedClass kNotFinite[] = {{"nan", &TensorSummary::nan},
                                     {"inf", &TensorSummary::plus_infinity},
                                     {"-inf", &TensorSummary::minus_infinity}};

void print_tensor(const Console& console, const std::string& name, const Tensor& tensor,
                  const TensorSummary& s) {
  std::string line = fmt::format("{}  {} [{}]", console.styled(Style::bold, ptx::printable(name)),
                                 format(tensor.dtype).name, fmt::join(shape_of(tensor), ","));
  if (s.elements == 0) return console.line(line + "  empty");
  if (s.min)
    line += fmt::format("  {:.6g} to {:.6g}, zeros {}", *s.min, *s.max, share(s.zeros, s.elements));
  else
    line += "  nothing finite";
  if (format(tensor.dtype).precision) line += ", subnormals " + share(s.subnormals, s.elements);
  console.line(line);
  if (!s.exponents.empty()) console.line("  exponents " + exponents_text(s, kExponentGroups));
  for (const NamedClass& row : kNotFinite)
    if (const ValueClass& values = s.*row.values; values.count)
      console.line(fmt::format("  {} {}, the first {}",
                               console.styled(Style::bad, fmt::format("{}", values.count)), row.name,
                               element(name, tensor, values.first)));
}

std::string sizes_text(const Case& c, const Operator& op) {
  const Sizes sizes = sizes_of(c);
  std::vector<std::string> parts;
  for (const char* axis : kSizedAxes) {
    const auto has = [&](const ArgumentSpec& spec) {
      return std::any_of(spec.axes.begin(), spec.axes.end(), [&](std::string_view a) {
        return a == axis || (a == "D" && *axis == 'V') ||
               (a == "H*V" && *axis != 'B' && a.find(axis) != a.npos);
      });
    };
    if (std::any_of(op.inputs.begin(), op.inputs.end(), has))
      parts.push_back(fmt::format("{}={}", axis, sizes.of(axis)));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

void print_fit(const Console& console, const OperatorFit& fit) {
  const std::string ignored =
      fit.unused.empty() ? "" : ptx::printable(fmt::format("; not used: {}", fmt::join(fit.unused, ", ")));
  if (fit.fits) {
    const std::string expected =
        fit.expected.empty() ? "" : fmt::format("; its outputs {}", fmt::join(fit.expected, ", "));
    console.line(fmt::format("{} {}  {}, {}{}{}", console.styled(Style::good, "fits"), fit.name,
                             sizes_text(fit.case_, find_operator(fit.name)), fmt::join(fit.matched, ", "),
                             expected, ignored));
    for (const std::string& note : fit.notes) console.line("  " + ptx::printable(note));
  } else if (!fit.missing.empty()) {
    console.line(fmt::format("not {}: no tensor {}{}", fit.name, fmt::join(fit.missing, ", "), ignored));
  } else {
    console.line(fmt::format("not {}: {}", fit.name, ptx::printable(fit.complaint)));
  }
}

/// Those that fit, and the nearest of the others.
void print_fits(const Console& console, const std::vector<OperatorFit>& fits) {
  size_t nearest = 0;
  for (const OperatorFit& fit : fits)
    if (fit.fits || (!fit.matched.empty() && nearest++ < kNearest)) print_fit(console, fit);
  if (!fits.front().fits && nearest == 0)
    console.line(
        "no tensor is named after an operator's input: say which is which, as in --map q=query_states");
}

struct InspectCommand {
  std::string file, json;
  std::vector<std::string> map, layout;
  int64_t heads = 0;

  int run() const {
    const TensorMap tensors = renamed(read_tensors(file), map, file);
    Case base;
    base.kernel = "inspect";
    base.layout = layout_text(parse_layout(fmt::format("{}", fmt::join(layout, ","))));
    const Inspection inspection = inspect(file, tensors, fit_operators(tensors, base, heads, file));
    const Console console(json == "-" ? stderr : stdout);
    for (const auto& [name, tensor] : tensors)
      print_tensor(console, name, tensor, inspection.tensors.at(name).summary);
    print_fits(console, inspection.operators);
    const std::string text =
        to_json(inspection).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (json == "-") fmt::print("{}", text);
    if (!json.empty() && json != "-") write_file(json, text);
    return 0;
  }
};

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Says what the tensors of a file hold, and which operators they can be the inputs of");
  const auto options = std::make_shared<InspectCommand>();
  command->add_option("FILE", options->file, "FILE.safetensors, FILE.npz or a folder of .npy")
      ->required()
      ->check(not_empty());
  command
      ->add_option(
          "--map", options->map,
          "Names in that file: q=query_states takes its tensor query_states as q, o=attn_output as o")
      ->delimiter(',')
      ->type_name("NAME=TENSOR");
  command->add_option("--layout", options->layout, "How the file holds inputs, as in heads-first,k=dense")
      ->delimiter(',');
  command->add_option("-H,--heads", options->heads, "Heads, where the shapes leave them open")
      ->check(whole_number(1, int64_t{1} << 40));
  command->add_option("--json", options->json, "All of it as JSON; - for standard output")->type_name("FILE");
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
