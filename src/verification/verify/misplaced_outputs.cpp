#include "src/verification/verify/misplaced_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "src/base/vm/value_slice.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/index_maker.h"
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

/// Where what is right of wrong elements stands, and of how many of them.
struct Held {
  std::string output;
  size_t found = 0, wrong = 0;
};

/// Of most wrong elements among `values`, ascending; none where no chance is ruled out, a number that is
/// wanted several times being one. What is stored past an output's end is in none.
std::optional<Held> held_elsewhere(const std::vector<double>& should, const std::vector<bool>& is_wrong,
                                   const std::vector<Value>& values) {
  std::vector<double> wanted;
  std::map<std::string, size_t> outputs;
  Held held;
  for (size_t i = 0; i < should.size(); ++i) {
    if (!is_wrong[i]) continue;
    ++held.wrong;
    const double near = kSame * std::fabs(should[i]);
    const auto found = std::lower_bound(values.begin(), values.end(), should[i] - near,
                                        [](const Value& v, double x) { return v.number < x; });
    if (near == 0 || found == values.end() || found->number > should[i] + near) continue;
    ++held.found, wanted.push_back(should[i]);
    if (++outputs[found->output] > outputs[held.output]) held.output = found->output;
  }
  std::sort(wanted.begin(), wanted.end());
  size_t several = wanted.empty() ? 0 : 1;
  for (size_t i = 1; i < wanted.size(); ++i)
    several += wanted[i] - wanted[i - 1] > kSame * std::fabs(wanted[i]);
  const double of_one = -std::log2(2 * kSame * static_cast<double>(std::max<size_t>(1, values.size())));
  if (2 * held.found <= held.wrong || of_one * static_cast<double>(several) < thresholds::kSurelyNoChance)
    return std::nullopt;
  return held;
}

}  // namespace

std::vector<SuspectLine> lines_of_misplaced(const TellingCase& told, const vm::MachineOptions& machine) {
  std::vector<Value> values;  // of elements that are wrong: what is right is where it belongs
  for (const Tensor& output : told.wrong) {
    const std::vector<bool> is_wrong = told.wrong_elements(output.name);
    const std::vector<double>& is = told.exact.at(output.name);
    for (size_t i = 0; i < is.size(); ++i)
      if (is_wrong[i] && std::isfinite(is[i])) values.push_back({is[i], output.name});
  }
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return a.number < b.number; });
  std::vector<SuspectLine> lines;
  const SourceText source(told.program.name);
  for (const Tensor& output : told.wrong) {
    const std::vector<bool> is_wrong = told.wrong_elements(output.name);
    const auto held = held_elsewhere(told.expected.at(output.name), is_wrong, values);
    if (!held) continue;
    const auto first = std::find(is_wrong.begin(), is_wrong.end(), true) - is_wrong.begin();
    const vm::ValueSlice slice =
        vm::slice_value(told.program, told.inputs, machine, output.name, first, {.instances = 64});
    if (slice.roots.empty() || slice.roots[0] < 0) continue;
    const vm::SliceInstance& store = slice.instances[static_cast<size_t>(slice.roots[0])];
    const ptx::Module& module = *slice.modules[static_cast<size_t>(store.module)];
    const SuspectLine line{
        link_of(module, store.function, store.instruction, source),
        fmt::format("of {} wrong elements of {} that it stores the right values of {} are there, {}",
                    held->wrong, output.name, held->found,
                    held->output == output.name ? "at other places" : "in " + held->output)};
    lines.push_back(line);
    if (held->output != output.name) continue;
    auto maker = index_maker(module, store.function, store.instruction, source);
    if (!maker) maker = address_maker(module, store.function, store.instruction, source);
    if (maker) lines.push_back({*std::move(maker), fmt::format("it says where {} is stored", output.name)});
  }
  return lines;
}

}  // namespace assay
