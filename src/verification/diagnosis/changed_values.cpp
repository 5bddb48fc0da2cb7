#include "src/verification/diagnosis/changed_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/verification/diagnosis/required_values.h"
#include "src/verification/diagnosis/slice_lines.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

/// Of a value, times what may stay of all: derivatives are those at the machine's values, which are rounded.
constexpr double kAgrees = 2;

}  // namespace

std::vector<ChangedValues> changed_values(const ExplainedLine& line, const WrongElements& behind) {
  std::vector<ChangedValues> found;
  if (!line.explains() || line.factor != 0) return found;
  std::map<std::string_view, ExplainedLine> by_operation;
  for (const uint32_t n : line.instances) by_operation[operation_of(behind.slice, n)].instances.push_back(n);
  for (auto& [operation, alone] : by_operation) {
    alone.enough = line.enough;
    behind.explain_by_values(alone);
    if (!alone.explains()) continue;
    std::vector<const std::vector<double>*> columns;
    for (const std::vector<double>& column : alone.moves) columns.push_back(&column);
    std::optional<std::vector<double>> changes = changes_needed(columns, behind.lacking);
    if (!changes) continue;
    ChangedValues values{alone.changed, {}, *std::move(changes), alone.instances, bits_of(alone)};
    for (const uint32_t n : alone.changed) values.now.push_back(number_of(behind.slice, n));
    values.agrees = kAgrees * line.enough;
    found.push_back(std::move(values));
  }
  return found;
}

bool are_undue(const ChangedValues& values) {
  for (size_t i = 0; i < values.now.size(); ++i)
    if (!(std::fabs(values.now[i] + values.changes[i]) <= values.agrees * std::fabs(values.now[i])))
      return false;
  const double bits = values.bits - std::log2(values.agrees) * static_cast<double>(values.now.size());
  return !values.now.empty() && bits >= thresholds::kBitsNeeded;
}

namespace {

/// What the statements made that wrote what the instances read from memory.
std::vector<double> written_alike(const std::vector<uint32_t>& instances, const vm::ValueSlice& slice) {
  const auto site_of = [&](uint32_t n) {
    const vm::SliceInstance& i = slice.instances[n];
    return std::tuple(i.module, i.function, i.instruction);
  };
  std::set<std::tuple<int32_t, int32_t, int32_t>> writers;
  for (const uint32_t n : instances) {
    const vm::SliceInstance& i = slice.instances[n];
    if (i.flow != vm::Flow::load || i.operand_count == 0) continue;
    if (const int32_t made_by = slice.operands[i.first_operand].made_by; made_by >= 0)
      writers.insert(site_of(static_cast<uint32_t>(made_by)));
  }
  std::vector<double> values;
  if (writers.empty()) return values;
  for (uint32_t n = 0; n < slice.instances.size(); ++n)
    if (writers.contains(site_of(n))) values.push_back(number_of(slice, n));
  return values;
}

}  // namespace

bool are_displaced(const ChangedValues& values, const vm::ValueSlice& slice,
                   const std::vector<const Tensor*>& inputs) {
  std::vector<double> own, of_inputs;
  std::set<int64_t> read;
  for (const uint32_t n : values.of_operation) {
    own.push_back(number_of(slice, n));
    if (const int64_t input = input_of(slice, n); input >= 0) read.insert(input >> 40);
  }
  for (size_t at = 0; at < inputs.size() && !read.empty(); ++at)
    for (int64_t i = 0; inputs[at] && i < inputs[at]->size(); ++i) {
      of_inputs.push_back(inputs[at]->value(i));
      if (read.contains(static_cast<int64_t>(at))) own.push_back(inputs[at]->value(i));
    }
  return become_others(values.now, values.changes, std::move(own)) ||
         become_others(values.now, values.changes, written_alike(values.of_operation, slice)) ||
         become_others(values.now, values.changes, std::move(of_inputs));
}

}  // namespace assay
