#include "src/verification/diagnosis/causes/gate_span.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kSumTolerance = 0x1p-8;

/// Names of the operator's log decays.
std::set<std::string> log_decays(const Evidence& e) {
  std::set<std::string> names;
  if (!e.op) return names;
  for (const ArgumentSpec& a : e.op->inputs)
    if (a.role == Role::log_decay) names.emplace(a.name);
  return names;
}

int64_t axis_index(const Tensor& t, int64_t flat, std::string_view axis) {
  const std::vector<int64_t> index = t.index(flat);
  for (size_t i = 0; i < t.axes.size(); i++)
    if (t.axes[i].name == axis) return index[i];
  return 0;
}

/// First row and length of the sequence that holds `row`.
std::pair<int64_t, int64_t> sequence_of(const Case& c, int64_t row) {
  for (size_t i = 0; i + 1 < c.cu_seqlens.size(); i++)
    if (row >= c.cu_seqlens[i] && row < c.cu_seqlens[i + 1])
      return {c.cu_seqlens[i], c.cu_seqlens[i + 1] - c.cu_seqlens[i]};
  return {0, c.T};
}

/// Row of the output element, from its name: "o[b=0,t=17,...]"; -1 without a t.
int64_t row_of(const std::string& element) {
  for (const char* key : {"[t=", ",t="})
    if (const size_t at = element.find(key); at != std::string::npos)
      return std::stoll(element.substr(at + 3));
  return -1;
}

/// Whether all rows may be what the exponent is of: not where some of them fit it to its last digits, and
/// all do not.
bool fits_as_well(double all, double some, double exponent) {
  return all <= kSumTolerance * exponent && all <= 4 * some + 0x1p-18 * exponent;
}

}  // namespace

std::optional<GateSpan> gate_span(const Evidence& e) {
  if (!e.trace || !e.case_ || !e.inputs || e.trace->origin.kind != OriginKind::exp_overflow)
    return std::nullopt;
  const Origin& origin = e.trace->origin;
  if (origin.operands.empty()) return std::nullopt;
  const double exponent = e.trace->exponent.value_or(origin.operands[0].value) * kLn2;
  if (!(exponent > 0)) return std::nullopt;
  const std::set<std::string> gates = log_decays(e);
  // One channel at a time: the flat index with the row taken out names it.
  std::map<std::pair<std::string, int64_t>, std::map<int64_t, double>> channels;
  for (const auto& [input, flat] : e.trace->input_elements) {
    if (!gates.contains(input)) continue;
    const Tensor& gate = e.inputs->at(input);
    const int64_t row = axis_index(gate, flat, "T");
    std::vector<int64_t> index = gate.index(flat);
    for (size_t i = 0; i < gate.axes.size(); i++)
      if (gate.axes[i].name == "T") index[i] = 0;
    channels[{input, gate.offset(index)}][row] = gate.value(flat);
  }
  for (const auto& [channel, rows] : channels) {
    double sum = 0;
    int64_t previous = rows.rbegin()->first + 1;
    for (auto at = rows.rbegin(); at != rows.rend() && at->first == previous - 1; ++at) {
      sum -= at->second;
      previous = at->first;
      if (std::fabs(sum - exponent) > kSumTolerance * exponent) continue;
      const int64_t output_row = row_of(origin.element);
      const auto [start, length] = sequence_of(*e.case_, rows.rbegin()->first);
      double all = 0;
      for (const auto& [row, decay] : rows) all -= decay;
      return GateSpan{channel.first,
                      previous - start,
                      rows.rbegin()->first - start,
                      output_row < 0 ? length : output_row - start,
                      length,
                      exponent,
                      fits_as_well(std::fabs(all - exponent), std::fabs(sum - exponent), exponent)};
    }
  }
  return std::nullopt;
}

std::string rows_text(const GateSpan& span) {
  return span.first == span.last ? fmt::format("row {} of {}", span.first, span.gate)
                                 : fmt::format("rows {} to {} of {}", span.first, span.last, span.gate);
}

bool is_gradient(const Evidence& e) {
  if (!e.trace || e.trace->output.empty() || !e.op) return false;
  return std::none_of(e.op->outputs.begin(), e.op->outputs.end(),
                      [&](const ArgumentSpec& a) { return a.name == e.trace->output; });
}

}  // namespace assay
