// Exact outputs, and how far the program's rounded constants and ended series move them. A constant is a
// literal, an argument or a table that the plan brings, in fp32 and with more than kShortBits significant
// bits: it then stands for a number that fp32 does not hold (log2 e, 1/sqrt(K)). How much an element depends
// on it says a part of its shadow, which begins as kOffset of the constant and is carried along the slopes,
// with its sign, so that what cancels in the formula cancels there too. Constants of the same bits are taken
// for the same number.
//
// Polynomials that stand for a function (literals.h) leave terms out, differently at each argument, and have
// many constants whose rounding is of little weight: all that enters the shadow's bound, without signs.
#include "src/base/vm/exact_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "src/base/program/source_place.h"
#include "src/base/vm/literals.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/shadow_pass.h"
#include "src/base/vm/shadow_text.h"

namespace assay::vm {
namespace {

/// Of arguments, which a host computes, it is sure of few that they mean themselves: 1 / sqrt(1311) rounds to
/// 12 bits.
constexpr int kShortArgumentBits = 3;
/// A literal is off by half a unit in the last place; the rounded product of two that are, as of the scale
/// with log2 e, by less than one and a half.
constexpr double kOffset = 1.5 * 0x1p-23;

uint32_t without_sign(uint32_t bits) {
  return bits & 0x7fffffffu;
}

/// What is moved together: a number and its negative wherever they stand, or a table.
struct Constant {
  uint32_t bits = 0;  ///< without the sign
  const Tensor* table = nullptr;
};

/// The bits of a float; nothing of one that says what it stands for.
std::optional<uint32_t> real_argument(const Argument& argument) {
  if (argument.content != Argument::Content::real || argument.bytes.size() != 4 || argument.rounded_from)
    return std::nullopt;
  uint32_t bits = 0;
  std::memcpy(&bits, argument.bytes.data(), sizeof bits);
  return bits;
}

/// Those whose rounding is followed with its sign.
std::vector<Constant> constants_of(const Program& program, const PreparedProgram& prepared) {
  std::set<uint32_t> known, arguments;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Code& code = prepared.code(i);
    const ShadowText& text = shadow_text(code);
    for (const Immediate& immediate : code.immediates)
      if (immediate.cell == Cell::word && text.is_float[immediate.slot] &&
          !literals_of(code).of_series.contains(immediate.slot))
        known.insert(without_sign(static_cast<uint32_t>(immediate.bits)));
    for (const Argument& argument : program.launches[i].arguments)
      if (const auto bits = real_argument(argument); bits && has_more_bits(*bits, kShortArgumentBits))
        arguments.insert(without_sign(*bits));
  }
  std::vector<Constant> constants;
  for (const uint32_t bits : known)
    if (is_inexact(bits)) arguments.insert(bits);
  for (const uint32_t bits : arguments) constants.push_back({bits, nullptr});
  for (const Tensor& table : program.constants)
    if (table.dtype == Dtype::fp32) constants.push_back({0, &table});
  return constants;
}

double offset_of(uint32_t bits) {
  return kOffset * static_cast<double>(std::bit_cast<float>(bits));
}

/// Constants whose rounding is followed at once: a shadow costs more than its parts.
constexpr int kParts = kMostParts;
using Cells = ErrorCells;

/// A float in memory or among the parameters, as a number `error` away, or as one whose rounding begins
/// `part`.
void set_cell(Pass& pass, ErrorMemory::Area& area, uint64_t offset, double error, int part = -1) {
  for (uint64_t half = 0; half < 2; ++half) {
    const auto [cells, at] = pass.memory.touch(area, offset + 2 * half);
    cells->begin_to_hold();
    cells->kind[at] = half ? ErrorKind::tail : ErrorKind::f32;
    cells->error[at] = part < 0 ? error : 0;
    cells->bound[at] = 0;
    for (int p = 0; p < cells->parts; ++p) cells->part(p)[at] = p == part ? error : 0;
  }
}

/// Lets the constant begin its part wherever launch `i` has it.
void follow_constant(const Program& program, const Constant& constant, int part, size_t i,
                     const Literals& literals, Pass& pass, ErrorPlan& plan) {
  size_t hint = 0;
  if (constant.table) {
    if (i > 0) return;
    const uint64_t base = pass.places.at(constant.table->name);
    auto& area = *pass.memory.find(base, hint);
    for (int64_t flat = 0; flat < constant.table->size(); ++flat)
      set_cell(pass, area, base - area.base + 4 * static_cast<uint64_t>(flat),
               kOffset * constant.table->value(flat), part);
    return;
  }
  const auto is = [&](uint32_t bits) { return without_sign(bits) == constant.bits; };
  const Code& code = pass.prepared.code(i);
  for (const Immediate& immediate : code.immediates)
    if (const auto bits = static_cast<uint32_t>(immediate.bits);
        immediate.cell == Cell::word && is(bits) && !literals.of_series.contains(immediate.slot))
      plan.offsets.push_back({immediate.slot, offset_of(bits), part});
  auto& area = *pass.memory.find(parameter_base, hint);
  const ptx::Function& entry = code.module->functions[static_cast<size_t>(code.entry)];
  for (size_t a = 0; a < program.launches[i].arguments.size(); ++a)
    if (const auto bits = real_argument(program.launches[i].arguments[a]); bits && is(*bits))
      set_cell(pass, area, static_cast<uint64_t>(entry.parameters[a].offset), offset_of(*bits), part);
}

/// Parameters of launch `i` that say what they stand for are that; those of the launch before have no
/// shadows.
void set_parameters(const Program& program, size_t i, Pass& pass) {
  size_t hint = 0;
  const Code& code = pass.prepared.code(i);
  auto& area = *pass.memory.find(parameter_base, hint);
  const ptx::Function& entry = code.module->functions[static_cast<size_t>(code.entry)];
  for (const ptx::Parameter& parameter : entry.parameters)
    for (uint64_t byte = 0; byte < static_cast<uint64_t>(parameter.bytes); byte += 2) {
      const auto [cells, at] = pass.memory.touch(area, static_cast<uint64_t>(parameter.offset) + byte);
      cells->kind[at] = ErrorKind::none;
    }
  for (size_t a = 0; a < program.launches[i].arguments.size(); ++a) {
    const Argument& argument = program.launches[i].arguments[a];
    if (const auto value = real_of(argument); value && argument.rounded_from && std::isfinite(*value))
      set_cell(pass, area, static_cast<uint64_t>(entry.parameters[a].offset),
               *argument.rounded_from - *value);
  }
}

/// One run: constants from `first` on, as many as there are parts; series and the shadow's own rounding.
Pass pass_of(const Program& program, const TensorMap& inputs, const MachineOptions& machine,
             const std::vector<Constant>& constants, size_t first) {
  const size_t count = std::min<size_t>(constants.size() - first, kParts);
  const auto enter = [&](size_t i, Pass& pass, ErrorPlan& plan) {
    const Code& code = pass.prepared.code(i);
    const Literals& literals = literals_of(code);
    set_parameters(program, i, pass);
    for (size_t k = 0; k < count; ++k)
      follow_constant(program, constants[first + k], static_cast<int>(k), i, literals, pass, plan);
    for (const Immediate& immediate : code.immediates)
      if (const auto bits = static_cast<uint32_t>(immediate.bits);
          immediate.cell == Cell::word && is_inexact(bits) && literals.of_series.contains(immediate.slot))
        plan.offsets.push_back({immediate.slot, offset_of(bits), -1});
    plan.inexact_share = literals.left_out, plan.exact_source = literals.exact_source;
  };
  return Pass(program, inputs, machine, {.enter = enter, .strict = true, .parts = static_cast<int>(count)});
}

/// Of the probes by chance: they stand for a sum of errors of unknown sign, each at most as large. That the
/// largest of seven is below an eighth of their standard deviation, where few errors or many add up, has
/// probability 0.1^7; what a series leaves out is mostly less than a third of what is allowed for it.
constexpr int kProbes = 7;
constexpr double kProbeFactor = 8;
static_assert(kProbes < kMostParts);

/// The same with probes, where bounds that add up without signs say little: a delta rule's states multiply by
/// matrices of norm 1 whose entries' sizes do not.
Pass probes_of(const Program& program, const TensorMap& inputs, const MachineOptions& machine) {
  const auto enter = [&](size_t i, Pass& pass, ErrorPlan& plan) {
    const Literals& literals = literals_of(pass.prepared.code(i));
    set_parameters(program, i, pass);
    for (const Immediate& immediate : pass.prepared.code(i).immediates)
      if (const auto bits = static_cast<uint32_t>(immediate.bits);
          immediate.cell == Cell::word && is_inexact(bits) && literals.of_series.contains(immediate.slot))
        plan.offsets.push_back({immediate.slot, offset_of(bits), -1});
    plan.inexact_share = literals.left_out, plan.exact_source = literals.exact_source, plan.probes = true;
  };
  return Pass(program, inputs, machine, {.enter = enter, .strict = true, .parts = kProbes + 1});
}

/// Is what signs do not lessen more than this share of the output's size somewhere?
constexpr double kWide = 0x1p-19;

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += std::isfinite(x) ? x * x : 0;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

bool is_wide(const std::vector<double>& unsigned_slack, const std::vector<double>& value) {
  const double most = kWide * root_mean_square(value);
  return std::any_of(unsigned_slack.begin(), unsigned_slack.end(),
                     [&](double slack) { return std::isfinite(slack) && slack > most; });
}

/// Bounds without signs of those outputs for which they are wide, by probes.
void narrow(const Program& program, const TensorMap& inputs, const MachineOptions& machine,
            const ExactRun& run, std::map<std::string, std::vector<double>>& without_signs) {
  std::map<std::string, std::vector<double>> first, largest;  // probe 0, the others
  for (const auto& [name, out] : run.outputs)
    if (is_wide(without_signs[name], out.value))
      first[name].resize(out.value.size()), largest[name].resize(out.value.size());
  if (first.empty()) return;
  const Pass pass = probes_of(program, inputs, machine);
  for (const auto& [name, tensor] : pass.outputs) {
    if (!first.contains(name)) continue;
    pass.each_element(tensor, [&, &name = name](int64_t flat, size_t at, const Cells& cells) {
      for (int p = 0; p <= kProbes && at < Cells::unfollowed; ++p) {
        double& known = (p == 0 ? first : largest)[name][static_cast<size_t>(flat)];
        known = std::fmax(known, std::fabs(cells.part(p)[at]));
      }
    });
  }
  for (const auto& [name, coherent] : first)
    for (size_t i = 0; i < coherent.size(); ++i) {
      double& slack = without_signs[name][i];
      if (std::isfinite(slack)) slack = std::fmin(slack, coherent[i] + kProbeFactor * largest[name][i]);
    }
}

}  // namespace

ExactRun run_exact(const Program& program, const TensorMap& inputs, const MachineOptions& machine) {
  const auto start = std::chrono::steady_clock::now();
  ExactRun result;
  const std::vector<Constant> constants = constants_of(program, PreparedProgram(program, inputs, machine));
  std::map<std::string, std::vector<double>> without_signs;
  for (size_t first = 0; first == 0 || first < constants.size(); first += kParts) {
    const Pass pass = pass_of(program, inputs, machine, constants, first);
    const size_t count = std::min<size_t>(constants.size() - first, kParts);
    for (size_t i = 0; i < pass.launches.size() && first == 0; ++i) {
      const OpErrors& launch = pass.launches[i];
      result.turned += launch.turned, result.branches_turned += launch.branches_turned;
      if (launch.loss.op < 0 || !result.loss.empty()) continue;
      const Code& code = pass.prepared.code(i);
      const Op& op = code.ops[static_cast<size_t>(launch.loss.op)];
      result.loss = fmt::format("{} at {}", opcode_of(code, op), source_place(where(code, op)));
    }
    for (const auto& [name, tensor] : pass.outputs) {
      if (!is_real(tensor.dtype)) continue;
      ExactOutput& out = result.outputs[name];
      std::vector<double>& unsigned_bounds = without_signs[name];
      pass.each_element(tensor, [&, &tensor = tensor](int64_t flat, size_t at, const Cells& cells) {
        const double value = tensor.value(flat);
        const bool shadowed = at < Cells::unfollowed;
        if (first == 0) {
          out.value.push_back(std::isfinite(value) ? value + (shadowed ? cells.error[at] : 0)
                                                   : std::numeric_limits<double>::quiet_NaN());
          out.slack.push_back(0);
          unsigned_bounds.push_back(shadowed             ? cells.bound[at]
                                    : at == Cells::exact ? 0
                                                         : std::numeric_limits<double>::infinity());
        }
        for (int p = 0; shadowed && p < static_cast<int>(count); ++p)
          out.slack[static_cast<size_t>(flat)] += std::fabs(cells.part(p)[at]);
      });
    }
  }
  narrow(program, inputs, machine, result, without_signs);
  for (auto& [name, out] : result.outputs)
    for (size_t i = 0; i < out.slack.size(); ++i) out.slack[i] += without_signs[name][i];
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay::vm
