#include "src/base/tensor/shape_contract.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using Shape = std::vector<int64_t>;

Shape sizes(const ShapeContract& contract) {
  Shape shape;
  for (const Axis& axis : contract.axes) shape.push_back(axis.size);
  return shape;
}

std::string axes_text(const std::vector<Axis>& axes) {
  std::vector<std::string> parts;
  for (const Axis& axis : axes) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("[{}]", fmt::join(parts, ","));
}

bool heads(const Axis& axis) {
  return axis.name == "H" || axis.name == "HV" || axis.name == "HQ";
}

// One explanation each: text where it explains the shape, nothing else.

std::string exchanged(const ShapeContract& contract, const Shape& got) {
  const auto& axes = contract.axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = i + 1; j < axes.size(); ++j) {
      Shape swapped = sizes(contract);
      std::swap(swapped[i], swapped[j]);
      if (swapped != got) continue;
      if (axes[i].name == "T" && heads(axes[j]))
        return fmt::format("heads first: {} and {} look exchanged; transpose them", axes[i].name,
                           axes[j].name);
      const std::string text = fmt::format("{} and {} look exchanged", axes[i].name, axes[j].name);
      const bool state = axes[0].name == "N" && i + 2 == axes.size();
      return state ? fmt::format("transposed: {}; give --layout {}=transposed", text, contract.argument)
                   : text;
    }
  }
  Shape expected = sizes(contract), sorted = got;
  if (expected.size() != got.size()) return {};
  std::sort(expected.begin(), expected.end());
  std::sort(sorted.begin(), sorted.end());
  return expected == sorted ? fmt::format("axes look permuted; the order is {}", axes_text(axes)) : "";
}

std::string offsets_for_sequences(const ShapeContract& contract, const Shape& got) {
  if (contract.axes.empty() || contract.axes[0].name != "N" || got.size() != contract.axes.size()) return {};
  const int64_t n = contract.axes[0].size;
  if (!std::equal(got.begin() + 1, got.end(), sizes(contract).begin() + 1)) return {};
  if (got[0] == n + 1) return "one too many states: cu_seqlens has N + 1 offsets for N sequences";
  if (got[0] == 1) return "one state given, but cu_seqlens or the batch has N sequences, each with its own";
  return "N is the batch, or the number of sequences in cu_seqlens";
}

std::string size_one(const ShapeContract& contract, const Shape& got) {
  if (got.size() != contract.axes.size()) return {};
  std::vector<std::string> ones;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == contract.axes[i].size) continue;
    if (got[i] != 1) return {};
    ones.push_back(contract.axes[i].name);
  }
  return fmt::format("{} {} size 1: nothing is broadcast, expand it", fmt::join(ones, " and "),
                     ones.size() == 1 ? "has" : "have");
}

std::string missing(const ShapeContract& contract, const Shape& got) {
  if (got.size() + 1 != contract.axes.size()) return {};
  for (size_t i = contract.axes.size(); i-- > 0;) {
    Shape without = sizes(contract);
    without.erase(without.begin() + static_cast<int64_t>(i));
    if (without != got) continue;
    const std::string& name = contract.axes[i].name;
    if (contract.gate && i + 1 == contract.axes.size())
      return fmt::format("a per-head gate where a per-channel one is expected; expand it over {}", name);
    return fmt::format("axis {} is missing", name);
  }
  return {};
}

std::string merged(const ShapeContract& contract, const Shape& got) {
  const auto& axes = contract.axes;
  if (got.size() + 1 != axes.size()) return {};
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    Shape joined = sizes(contract);
    joined[i] *= joined[i + 1];
    joined.erase(joined.begin() + static_cast<int64_t>(i) + 1);
    if (joined != got) continue;
    const bool head = heads(axes[i]) || heads(axes[i + 1]);
    return fmt::format("{}{} and {} look merged; reshape to {}", head ? "heads merged: " : "", axes[i].name,
                       axes[i + 1].name, axes_text(axes));
  }
  return {};
}

std::string superfluous(const ShapeContract& contract, const Shape& got) {
  if (got.size() != contract.axes.size() + 1) return {};
  for (size_t i = 0; i < got.size(); ++i) {
    Shape without = got;
    without.erase(without.begin() + static_cast<int64_t>(i));
    if (without == sizes(contract))
      return fmt::format("one axis too many, of size {} at position {}", got[i], i);
  }
  return {};
}

std::string of_another(const ShapeContract& contract, const Shape& got) {
  for (const auto& [name, shape] : contract.others)
    if (shape == got) return fmt::format("this is the shape of {}", name);
  return {};
}

std::string one_differs(const ShapeContract& contract, const Shape& got) {
  if (got.size() != contract.axes.size()) return {};
  std::optional<size_t> different;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == contract.axes[i].size) continue;
    if (different) return {};
    different = i;
  }
  return fmt::format("only {} differs from the other arguments", contract.axes[*different].name);
}

/// Likeliest first; `misfit` as shape_misfit() counts.
struct Explanation {
  std::string (*explain)(const ShapeContract&, const Shape&);
  int misfit;
};
constexpr Explanation kExplanations[] = {
    {exchanged, 1}, {offsets_for_sequences, 1}, {size_one, 1},   {missing, 1},
    {merged, 1},    {superfluous, 1},           {of_another, 2}, {one_differs, 3}};
constexpr int kUnexplained = 4;

}  // namespace

std::string explain_shape(const ShapeContract& contract, std::span<const int64_t> got_sizes) {
  const Shape got(got_sizes.begin(), got_sizes.end());
  if (got == sizes(contract)) return {};
  for (const Explanation& row : kExplanations)
    if (std::string text = row.explain(contract, got); !text.empty()) return text;
  return {};
}

int shape_misfit(const ShapeContract& contract, std::span<const int64_t> got_sizes) {
  const Shape got(got_sizes.begin(), got_sizes.end());
  if (got == sizes(contract)) return 0;
  for (const Explanation& row : kExplanations)
    if (!row.explain(contract, got).empty()) return row.misfit;
  return kUnexplained;
}

void require_shape(const ShapeContract& contract, std::span<const int64_t> got) {
  const Shape expected = sizes(contract);
  if (std::equal(expected.begin(), expected.end(), got.begin(), got.end())) return;
  const std::string why = explain_shape(contract, got);
  throw BadInput(fmt::format("{}: expected {}, got [{}]{}", contract.argument, axes_text(contract.axes),
                             fmt::join(got, ","), why.empty() ? "" : fmt::format(" ({})", why)));
}

}  // namespace assay
