#include "reports/print_inspection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reference/operator.h"
#include "src/base/ptx/printable.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/result/inspection.h"

namespace assay {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr int kExponentGroups = 8;
constexpr size_t kNearest = 3;  // operators that do not fit and are told

std::string share(int64_t count, int64_t of) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(count) / static_cast<double>(of));
}

std::string exponents_of(const json& tensor) {
  TensorSummary summary;
  for (const auto& [exponent, count] : tensor.at("exponents").items())
    summary.exponents[std::stoi(exponent)] = count;
  return exponents_text(summary, kExponentGroups);
}

void print_tensor(const Console& console, const std::string& name, const json& tensor) {
  const std::string shown = ptx::printable(name);
  const int64_t elements = tensor.at("elements");
  std::string line =
      fmt::format("{}  {} [{}]", console.styled(Style::bold, shown), tensor.at("dtype").get<std::string>(),
                  fmt::join(tensor.at("shape").get<std::vector<int64_t>>(), ","));
  if (elements == 0) return console.line(line + "  empty");
  if (!tensor.at("min").is_null())
    line += fmt::format("  {:.6g} to {:.6g}, zeros {}", tensor.at("min").get<double>(),
                        tensor.at("max").get<double>(), share(tensor.at("zeros"), elements));
  else
    line += "  nothing finite";
  if (format(tensor.at("dtype").get<std::string>()).precision)
    line += ", subnormals " + share(tensor.at("subnormals"), elements);
  console.line(line);
  if (const std::string exponents = exponents_of(tensor); !exponents.empty())
    console.line("  exponents " + exponents);
  for (const char* kind : {"nan", "inf", "-inf"}) {
    const json& values = tensor.at(kind);
    if (values.at("count") == 0) continue;
    console.line(fmt::format("  {} {}, the first {}[{}]",
                             console.styled(Style::bad, fmt::format("{}", values.at("count").get<int64_t>())),
                             kind, shown, fmt::join(values.at("first").get<std::vector<int64_t>>(), ",")));
  }
}

std::string sizes_text(const json& sizes, const Operator& op) {
  Names parts;
  for (const char* axis : kSizedAxes) {
    const auto has = [&](const ArgumentSpec& spec) {
      return std::any_of(spec.axes.begin(), spec.axes.end(), [&](std::string_view a) {
        return a == axis || (a == "D" && *axis == 'V') ||
               (a == "H*V" && *axis != 'B' && a.find(axis) != a.npos);
      });
    };
    if (std::any_of(op.inputs.begin(), op.inputs.end(), has))
      parts.push_back(fmt::format("{}={}", axis, sizes.at(axis).get<int64_t>()));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

void print_fit(const Console& console, const json& fit) {
  const auto listed = [&](const char* key) {
    return fmt::format("{}", fmt::join(fit.at(key).get<Names>(), ", "));
  };
  const std::string name = fit.at("operator"),
                    ignored =
                        fit.at("unused").empty() ? "" : ptx::printable("; not used: " + listed("unused"));
  if (fit.at("fits") == true) {
    const std::string expected = fit.at("expected").empty() ? "" : "; its outputs " + listed("expected");
    console.line(fmt::format("{} {}  {}, {}{}{}", console.styled(Style::good, "fits"), name,
                             sizes_text(fit.at("sizes"), find_operator(name)), listed("matched"), expected,
                             ignored));
    for (const std::string note : fit.at("notes")) console.line("  " + ptx::printable(note));
  } else if (!fit.at("missing").empty()) {
    console.line(fmt::format("not {}: no tensor {}{}", name, listed("missing"), ignored));
  } else {
    console.line(fmt::format("not {}: {}", name, ptx::printable(fit.at("complaint").get<std::string>())));
  }
}

/// Those that fit, and the nearest of the others.
void print_fits(const Console& console, const json& fits) {
  size_t nearest = 0;
  for (const json& fit : fits)
    if (fit.at("fits") == true || (!fit.at("matched").empty() && nearest++ < kNearest))
      print_fit(console, fit);
  if (!fits.empty() && fits.front().at("fits") == false && nearest == 0)
    console.line(
        "no tensor is named after an operator's input: say which is which, as in --map q=query_states");
}

}  // namespace

void print_inspection(const Console& console, const json& inspection) {
  for (const auto& [name, tensor] : inspection.at("tensors").items()) print_tensor(console, name, tensor);
  print_fits(console, inspection.at("operators"));
}

}  // namespace assay
