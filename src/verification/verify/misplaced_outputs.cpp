#include "src/verification/verify/misplaced_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/base/vm/value_slice.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

/// Of a value.
constexpr double kSame = 0x1p-20;

struct Value {
  double number = 0;
  std::string output;
};

/// What is right of wrong elements, where each of them has it in another place; empty: no chance is ruled
/// out.
std::optional<std::string> holder_of(const std::vector<double>& should, const std::vector<bool>& is_wrong,
                                     const std::vector<Value>& values) {
  double bits = 0;
  std::optional<std::string> holder;
  for (size_t i = 0; i < should.size(); ++i) {
    if (!is_wrong[i]) continue;
    const double near = kSame * std::fabs(should[i]);
    const auto found = std::lower_bound(values.begin(), values.end(), should[i] - near,
                                        [](const Value& v, double x) { return v.number < x; });
    if (near == 0 || found == values.end() || found->number > should[i] + near) return std::nullopt;
    bits += -std::log2(2 * kSame * static_cast<double>(values.size()));
    holder = found->output;
  }
  return bits >= thresholds::kSurelyNoChance ? holder : std::nullopt;
}

}  // namespace

std::vector<SuspectLine> lines_of_misplaced(const TellingCase& told, const vm::MachineOptions& machine) {
  std::vector<Value> values;
  for (const auto& [name, is] : told.exact)
    for (const double x : is)
      if (std::isfinite(x)) values.push_back({x, name});
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return a.number < b.number; });
  std::vector<SuspectLine> lines;
  const SourceText source(told.program.name);
  for (const Tensor& output : told.wrong) {
    const std::vector<bool> is_wrong = told.wrong_elements(output.name);
    const auto holder = holder_of(told.expected.at(output.name), is_wrong, values);
    if (!holder) continue;
    const auto first = std::find(is_wrong.begin(), is_wrong.end(), true) - is_wrong.begin();
    const vm::ValueSlice slice =
        vm::slice_value(told.program, told.inputs, machine, output.name, first, {.instances = 64});
    if (slice.roots.empty() || slice.roots[0] < 0) continue;
    const vm::SliceInstance& store = slice.instances[static_cast<size_t>(slice.roots[0])];
    const ptx::Module& module = *slice.modules[static_cast<size_t>(store.module)];
    const SuspectLine line{
        link_of(module, store.function, store.instruction, source),
        *holder == output.name
            ? fmt::format("it stores {}, whose right values are all there, at other places", output.name)
            : fmt::format("it stores {}, whose right values are all in {}", output.name, *holder)};
    lines.push_back(line);
    if (*holder != output.name) continue;
    if (auto maker = address_maker(module, store.function, store.instruction, source))
      lines.push_back({*std::move(maker), fmt::format("it says where line {} stores", line.at.where.line)});
  }
  return lines;
}

}  // namespace assay
