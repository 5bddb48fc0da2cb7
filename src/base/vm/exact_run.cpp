// Exact outputs, and how far the program's rounded constants and ended series move them. A constant is a
// literal, an argument or a table that the plan brings, in fp32 and with more than kShortBits significant
// bits: it then stands for a number that fp32 does not hold (log2 e, 1/sqrt(K)). How much an element depends
// on it says a further pass with the constant kOffset of itself away: signed, so that what cancels in the
// formula cancels there too. Constants of the same bits are taken for the same number.
//
// A series that ends (Horner: (c7 y + c6) y + c5 begins one) leaves terms out, differently at each
// argument: a pass whose bounds follow what it may leave out, at most kLeftOut of its leading term, adds
// their sizes up along the slopes.
#include "src/base/vm/exact_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "src/base/vm/shadow_pass.h"

namespace assay::vm {
namespace {

/// Literals 0.0625, 1.5 * 2^23, 255 and 1e3 mean themselves; log2 e does not. Of arguments, which a host
/// computes, that is sure of few: 1 / sqrt(1311) rounds to 12 bits.
constexpr int kShortBits = 12, kShortArgumentBits = 3;
/// A literal is off by half a unit in the last place; the rounded product of two that are, as of the scale
/// with log2 e, by less than one and a half.
constexpr double kOffset = 1.5 * 0x1p-23;
/// Of one operation on shadows: local and slopes * errors are doubles, summed (Row::real).
constexpr double kShadowRoundoff = 0x1p-51;

bool is_longer(uint32_t bits, int most) {
  return std::isfinite(std::bit_cast<float>(bits)) && std::countr_zero(bits | 0x800000u) < 24 - most;
}
/// Bits that are no number of anybody's formula, as of masks and small integers, lie beyond 2^+-100.
bool is_inexact(uint32_t bits) {
  const float size = std::fabs(std::bit_cast<float>(bits));
  return size > 0x1p-100f && size < 0x1p100f && is_longer(bits, kShortBits);
}

/// Terms that follow c_n y^n: of e^y, |y| <= 0.35, 0.05 of it from n = 7 on; of log((1 + s) / (1 - s)),
/// s <= 1/3, 0.11; a minimax polynomial leaves less.
constexpr double kLeftOut = 0.125;

uint32_t without_sign(uint32_t bits) {
  return bits & 0x7fffffffu;
}

/// What is moved together: a number and its negative wherever they stand, or a table.
struct Constant {
  uint32_t bits = 0;  ///< without the sign
  const Tensor* table = nullptr;
};

std::optional<uint32_t> real_argument(const Argument& argument) {
  if (argument.content != Argument::Content::real || argument.bytes.size() != 4) return std::nullopt;
  uint32_t bits = 0;
  std::memcpy(&bits, argument.bytes.data(), sizeof bits);
  return bits;
}

/// Slots of immediates that an operation on f32, or a move of 32 bits, reads.
std::set<Slot> float_slots(const Code& code) {
  std::set<Slot> slots;
  for (const Op& op : code.ops)
    for (int k = 0; op.row && k < op.source_count && k < 3; ++k) {
      const ptx::Type type = op.row->sources[static_cast<size_t>(k)];
      if (type == ptx::Type::f32 || (op.row->flow == Flow::copy && type == ptx::Type::b32) ||
          op.row->flow == Flow::select)
        slots.insert(op.s[k]);
    }
  return slots;
}

std::vector<Constant> constants_of(const Program& program, const PreparedProgram& prepared) {
  std::set<uint32_t> known, arguments;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Code& code = prepared.code(i);
    const std::set<Slot> slots = float_slots(code);
    for (const Immediate& immediate : code.immediates)
      if (immediate.cell == Cell::word && slots.contains(immediate.slot))
        known.insert(without_sign(static_cast<uint32_t>(immediate.bits)));
    for (const Argument& argument : program.launches[i].arguments)
      if (const auto bits = real_argument(argument); bits && is_longer(*bits, kShortArgumentBits))
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

/// Registers that hold a literal: immediates, and what one move of an immediate writes and nothing else.
/// Those that fp32 does not hold, and all.
struct Literals {
  std::set<Slot> inexact, all;
};
Literals literals_of(const Code& code) {
  Literals found;
  for (const Immediate& immediate : code.immediates) {
    if (immediate.cell != Cell::word) continue;
    found.all.insert(immediate.slot);
    if (is_inexact(static_cast<uint32_t>(immediate.bits))) found.inexact.insert(immediate.slot);
  }
  std::map<Slot, int> writers;
  for (const Op& op : code.ops)
    for (const Use& written : code.signature(op).writes) ++writers[written.slot];
  for (const Op& op : code.ops) {
    if (!op.row || op.row->flow != Flow::copy || op.source_count != 1 || op.guarded || writers[op.d] != 1)
      continue;
    if (found.inexact.contains(op.s[0])) found.inexact.insert(op.d);
    if (found.all.contains(op.s[0])) found.all.insert(op.d);
  }
  return found;
}

/// A fused multiply-add of f32.
bool is_fused(const Op& op) {
  return op.row && op.row->result == ptx::Type::f32 && op.row->flow == Flow::arithmetic &&
         op.source_count == 3;
}

/// By op: kLeftOut where it begins a polynomial by Horner's rule: c_n y + c_{n-1} with literals, one of which
/// fp32 does not hold, and its result times y, plus a literal, behind it.
std::vector<double> series_of(const Code& code) {
  const Literals literals = literals_of(code);
  std::vector<double> share(code.ops.size());
  for (size_t i = 0; i < code.ops.size(); ++i) {
    const Op& op = code.ops[i];
    if (!is_fused(op) || literals.all.contains(op.s[0]) == literals.all.contains(op.s[1])) continue;
    const size_t literal = literals.all.contains(op.s[0]) ? 0 : 1;
    const Slot y = op.s[1 - literal];
    if (!literals.all.contains(op.s[2]) ||
        !(literals.inexact.contains(op.s[literal]) || literals.inexact.contains(op.s[2])))
      continue;
    const bool goes_on = std::any_of(
        code.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, code.ops.end(), [&](const Op& next) {
          return is_fused(next) && literals.all.contains(next.s[2]) &&
                 ((next.s[0] == op.d && next.s[1] == y) || (next.s[0] == y && next.s[1] == op.d));
        });
    if (goes_on) share[i] = kLeftOut;
  }
  return share;
}

double offset_of(uint32_t bits) {
  return kOffset * static_cast<double>(std::bit_cast<float>(bits));
}

void set_cell(ErrorMemory<0>& memory, ErrorMemory<0>::Area& area, uint64_t offset, double error) {
  const auto [cells, at] = memory.touch(area, offset);
  cells->kind[at] = ErrorKind::f32, cells->error[at] = error, cells->bound[at] = std::fabs(error);
}

/// Moves the constant wherever launch `i` has it.
void move_constant(const Program& program, const Constant& constant, size_t i, Pass<0>& pass,
                   ErrorPlan<0>& plan) {
  size_t hint = 0;
  if (constant.table) {
    if (i > 0) return;
    const uint64_t base = pass.places.at(constant.table->name);
    ErrorMemory<0>::Area& area = *pass.memory.find(base, hint);
    for (int64_t flat = 0; flat < constant.table->size(); ++flat)
      set_cell(pass.memory, area, base - area.base + 4 * static_cast<uint64_t>(flat),
               kOffset * constant.table->value(flat));
    return;
  }
  const auto is = [&](uint32_t bits) { return without_sign(bits) == constant.bits; };
  const Code& code = pass.prepared.code(i);
  for (const Immediate& immediate : code.immediates)
    if (immediate.cell == Cell::word && is(static_cast<uint32_t>(immediate.bits)))
      plan.offsets.emplace_back(immediate.slot, offset_of(static_cast<uint32_t>(immediate.bits)));
  ErrorMemory<0>::Area& area = *pass.memory.find(parameter_base, hint);
  const ptx::Function& entry = code.module->functions[static_cast<size_t>(code.entry)];
  for (size_t a = 0; a < program.launches[i].arguments.size(); ++a) {
    const auto offset = static_cast<uint64_t>(entry.parameters[a].offset);
    const auto [cells, at] = pass.memory.touch(area, offset);
    cells->kind[at] = ErrorKind::none;
    if (const auto bits = real_argument(program.launches[i].arguments[a]); bits && is(*bits))
      set_cell(pass.memory, area, offset, offset_of(*bits));
  }
}

}  // namespace

ExactRun run_exact(const Program& program, const TensorMap& inputs, const MachineOptions& machine) {
  const auto start = std::chrono::steady_clock::now();
  ExactRun result;
  const Pass<0> pass(program, inputs, machine, {.strict = true});
  uint64_t longest = 0;
  for (const OpErrors& launch : pass.launches) {
    result.turned += launch.turned, result.branches_turned += launch.branches_turned;
    longest += launch.longest;
  }
  for (const auto& [name, tensor] : pass.outputs) {
    if (!is_real(tensor.dtype)) continue;
    ExactOutput& out = result.outputs[name];
    pass.each_element(tensor, [&, &tensor = tensor](int64_t flat, size_t at, const ErrorCells<0>& cells) {
      const double value = tensor.value(flat);
      const bool shadowed = at != SIZE_MAX;
      out.value.push_back(std::isfinite(value) ? value + (shadowed ? cells.error[at] : 0)
                                               : std::numeric_limits<double>::quiet_NaN());
      out.slack.push_back(shadowed ? static_cast<double>(longest) * kShadowRoundoff * cells.bound[at] : 0);
    });
  }
  for (const Constant& constant : constants_of(program, pass.prepared)) {
    const Pass<0> moved(program, inputs, machine,
                        {.enter = [&](size_t i, Pass<0>& to,
                                      ErrorPlan<0>& plan) { move_constant(program, constant, i, to, plan); },
                         .strict = true});
    for (const auto& [name, tensor] : moved.outputs) {
      const auto out = result.outputs.find(name);
      if (out == result.outputs.end()) continue;
      moved.each_element(tensor, [&, &tensor = tensor](int64_t flat, size_t at, const ErrorCells<0>& cells) {
        const auto i = static_cast<size_t>(flat);
        const double error = at == SIZE_MAX ? 0 : cells.error[at];
        out->second.slack[i] += std::fabs(tensor.value(flat) + error - out->second.value[i]);
      });
    }
  }
  const auto has_series = [&](size_t i) {
    const std::vector<double> share = series_of(pass.prepared.code(i));
    return std::any_of(share.begin(), share.end(), [](double x) { return x > 0; });
  };
  bool any = false;
  for (size_t i = 0; i < program.launches.size(); ++i) any = any || has_series(i);
  if (any) {
    const Pass<0> ended(
        program, inputs, machine,
        {.enter = [](size_t i, Pass<0>& to,
                     ErrorPlan<0>& plan) { plan.inexact_share = series_of(to.prepared.code(i)); },
         .strict = true});
    for (const auto& [name, tensor] : ended.outputs)
      if (const auto out = result.outputs.find(name); out != result.outputs.end())
        ended.each_element(tensor, [&](int64_t flat, size_t at, const ErrorCells<0>& cells) {
          if (at != SIZE_MAX) out->second.slack[static_cast<size_t>(flat)] += cells.bound[at];
        });
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay::vm
