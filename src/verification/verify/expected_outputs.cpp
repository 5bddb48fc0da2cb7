#include "src/verification/verify/expected_outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/numerics/counted_work.h"
#include "src/case/held_order.h"
#include "src/verification/compare/compare.h"
#include "src/verification/diagnosis/diagnose.h"

namespace assay {
namespace {

/// The bound counts one rounding of the reference's output format: a coarser one of the file is added.
ReferenceOutput stored_as(ReferenceOutput reference, Dtype dtype) {
  const double u = unit_roundoff(dtype), half = min_subnormal(dtype) / 2;
  if (u <= reference.roundoff) return reference;
  for (size_t i = 0; i < reference.bound.size(); ++i) {
    const double largest = std::fabs(reference.mid[i]) + reference.rad[i] + reference.bound[i];
    reference.bound[i] += u * largest + half;
  }
  reference.roundoff = std::max(reference.roundoff, u);
  return reference;
}

bool is_state(const Tensor& tensor) {
  return !tensor.axes.empty() && tensor.axes[0].name == "N";
}

/// The places of both letters; nothing where one is missing.
std::optional<std::pair<size_t, size_t>> places_of(const Tensor& tensor, const std::string& a,
                                                   const std::string& b) {
  const auto place = [&](const std::string& letter) {
    return std::find_if(tensor.axes.begin(), tensor.axes.end(),
                        [&](const Axis& x) { return x.name == letter; }) -
           tensor.axes.begin();
  };
  const auto count = static_cast<std::ptrdiff_t>(tensor.axes.size());
  if (place(a) == count || place(b) == count) return std::nullopt;
  return std::pair{static_cast<size_t>(place(a)), static_cast<size_t>(place(b))};
}

/// Element [.., i, .., j, ..] is what lay at [.., j, .., i, ..].
Tensor exchange_axes(const Tensor& x, size_t a, size_t b) {
  Tensor y = x;
  const std::vector<int64_t> strides = x.strides();
  const auto width = static_cast<size_t>(format(x.dtype).bytes);
  for (int64_t flat = 0; flat < x.size(); ++flat) {
    const int64_t i = flat / strides[a] % x.axes[a].size, j = flat / strides[b] % x.axes[b].size;
    const int64_t from = flat + (j - i) * strides[a] + (i - j) * strides[b];
    std::memcpy(y.data.data() + static_cast<size_t>(flat) * width,
                x.data.data() + static_cast<size_t>(from) * width, width);
  }
  return y;
}

using Names = std::vector<std::string>;

/// Those of the tensors in which an exchange of these letters changes bits.
Names changed_by(const TensorMap& tensors, const std::string& a, const std::string& b) {
  Names names;
  for (const auto& [name, tensor] : tensors)
    if (const auto at = places_of(tensor, a, b);
        at && exchange_axes(tensor, at->first, at->second).data != tensor.data)
      names.push_back(name);
  return names;
}

/// Pairs of letters whose axes have one size above 1 in some tensor, those of states first.
std::vector<std::pair<std::string, std::string>> equal_pairs(const TensorMap& inputs,
                                                             const TensorMap& expected) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto add = [&](const Tensor& x) {
    for (size_t i = 0; i < x.axes.size(); ++i)
      for (size_t j = i + 1; j < x.axes.size(); ++j) {
        if (x.axes[i].size != x.axes[j].size || x.axes[i].size < 2) continue;
        const std::pair pair{x.axes[i].name, x.axes[j].name};
        if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
      }
  };
  for (const bool states : {true, false})
    for (const TensorMap* tensors : {&inputs, &expected})
      for (const auto& [name, tensor] : *tensors)
        if (is_state(tensor) == states) add(tensor);
  return pairs;
}

bool agrees(const std::vector<OutputComparison>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputComparison& o) { return o.pass(); });
}

double largest_ratio(const std::vector<OutputComparison>& outputs) {
  double ratio = 0;
  for (const OutputComparison& o : outputs) ratio = std::max(ratio, o.max_ratio);
  return ratio;
}

Names names_of(const TensorMap& tensors) {
  Names names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

/// "initial_state=transposed"; empty where the layouts have no such order.
std::string layout_for(const AxisExchange& exchange, const TensorMap& inputs, const TensorMap& expected) {
  Names entries;
  for (const std::string& name : exchange.tensors) {
    const Tensor& x = inputs.contains(name) ? inputs.at(name) : expected.at(name);
    const auto at = places_of(x, exchange.a, exchange.b);
    const std::string_view layout = layout_of_exchange(x.axes, at->first, at->second);
    if (layout.empty()) return "";
    entries.push_back(fmt::format("{}={}", name, layout));
  }
  return fmt::format("{}", fmt::join(entries, ","));
}

/// "q, k: axes T and H".
std::string text_of(const AxisExchange& exchange) {
  return fmt::format("{}: axes {} and {}", fmt::join(exchange.tensors, ", "), exchange.a, exchange.b);
}

bool is_any_of(const AxisExchange& exchange, const TensorMap& tensors) {
  return std::any_of(exchange.tensors.begin(), exchange.tensors.end(),
                     [&](const std::string& name) { return tensors.contains(name); });
}

/// An exchange under which all expected outputs agree.
struct Fitting {
  AxisExchange exchange;
  double ratio;  ///< their largest error / bound then
};

Diagnosis diagnosis_of(const std::vector<Fitting>& fitting, const TensorMap& inputs,
                       const TensorMap& expected, double before) {
  const AxisExchange& exchange = fitting.front().exchange;
  const std::string layout = layout_for(exchange, inputs, expected),
                    outputs = fmt::format("{}", fmt::join(names_of(expected), ", "));
  Diagnosis d;
  d.cause = kTransposed;
  d.explanation = fmt::format("{} {} transposed: axes {} and {} exchanged; with that {} agree{}{}",
                              fmt::join(exchange.tensors, ", "), exchange.tensors.size() == 1 ? "is" : "are",
                              exchange.a, exchange.b, outputs, expected.size() == 1 ? "s" : "",
                              layout.empty() ? "" : "; give --layout " + layout);
  d.score = 1.0 / static_cast<double>(fitting.size());
  d.evidence.push_back(fmt::format("the largest error/bound of {} in the file falls from {:.4g} to {:.4g}",
                                   outputs, before, fitting.front().ratio));
  for (size_t i = 1; i < fitting.size(); ++i)
    d.against.push_back(fmt::format("another exchange fits as well: {} ({:.4g})",
                                    text_of(fitting[i].exchange), fitting[i].ratio));
  return d;
}

}  // namespace

std::vector<OutputComparison> compare_expected(const TensorMap& expected, const ReferenceResult& reference) {
  std::vector<OutputComparison> comparisons;
  for (const ReferenceOutput& output : reference.outputs)
    if (const auto held = expected.find(output.name); held != expected.end())
      comparisons.push_back(compare_output(held->second, stored_as(output, held->second.dtype)));
  return comparisons;
}

std::vector<AxisExchange> axis_exchanges(const TensorMap& inputs, const TensorMap& expected) {
  std::vector<AxisExchange> exchanges;
  for (const auto& [a, b] : equal_pairs(inputs, expected)) {
    const Names in = changed_by(inputs, a, b), out = changed_by(expected, a, b);
    Names all = in;
    all.insert(all.end(), out.begin(), out.end());
    for (const std::string& name : all) exchanges.push_back({{name}, a, b});
    if (in.size() > 1) exchanges.push_back({in, a, b});
    if (!in.empty() && !out.empty()) exchanges.push_back({all, a, b});
  }
  return exchanges;
}

TensorMap exchanged(TensorMap tensors, const AxisExchange& exchange) {
  for (const std::string& name : exchange.tensors)
    if (const auto found = tensors.find(name); found != tensors.end())
      if (const auto at = places_of(found->second, exchange.a, exchange.b))
        found->second = exchange_axes(found->second, at->first, at->second);
  return tensors;
}

std::optional<Diagnosis> transposed_tensors(const TensorMap& inputs, const TensorMap& expected,
                                            const ReferenceResult& reference,
                                            const std::function<ReferenceResult(const TensorMap&)>& evaluate,
                                            double seconds) {
  const std::vector<OutputComparison> as_is = compare_expected(expected, reference);
  if (agrees(as_is)) return std::nullopt;
  const double start = counted_seconds();
  std::vector<Fitting> fitting;
  const std::vector<AxisExchange> exchanges = axis_exchanges(inputs, expected);
  size_t tried = 0;
  for (const AxisExchange& exchange : exchanges) {
    if (counted_seconds() - start > seconds) break;
    ++tried;
    const TensorMap outputs = exchanged(expected, exchange);
    const std::vector<OutputComparison> then = compare_expected(
        outputs, is_any_of(exchange, inputs) ? evaluate(exchanged(inputs, exchange)) : reference);
    if (agrees(then)) fitting.push_back({exchange, largest_ratio(then)});
  }
  if (fitting.empty()) return std::nullopt;
  Diagnosis d = diagnosis_of(fitting, inputs, expected, largest_ratio(as_is));
  if (tried < exchanges.size())
    d.against.push_back(
        fmt::format("{} further exchanges were not tried for want of time", exchanges.size() - tried));
  return d;
}

}  // namespace assay
