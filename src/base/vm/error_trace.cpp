#include "src/base/vm/error_trace.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/literals.h"

namespace assay::vm {
namespace {

/// A conversion to a float of 8 bits or fewer, whose type is bits here: a rounding that no shadow follows.
bool is_narrowing(Flow flow, const Meaning& meaning) {
  using ptx::Type;
  const bool bits = meaning.result == Type::b8 || meaning.result == Type::b16 || meaning.result == Type::b32;
  return flow == Flow::conversion && ptx::is_float(meaning.sources[0]) &&
         (bits || (ptx::is_float(meaning.result) && meaning.result != meaning.sources[0]));
}

/// real_exponential.h: the logarithm's difference is good to 2^-45 of itself.
constexpr double kLogarithmRoundoff = 0x1p-44;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void OpErrors::merge(const OpErrors& from) {
  ops.resize(std::max(ops.size(), from.ops.size()));
  for (size_t i = 0; i < from.ops.size(); ++i) {
    ops[i].roundings += from.ops[i].roundings;
    ops[i].largest = std::max(ops[i].largest, from.ops[i].largest);
    ops[i].edge.merge(from.ops[i].edge);
    ops[i].amplified.merge(from.ops[i].amplified);
  }
  if (from.first.op >= 0 && from.first.block < first.block) first = from.first;
  ended += from.ended, turned += from.turned, branches_turned += from.branches_turned;
  if (from.loss.op >= 0 && from.loss.block < loss.block) loss = from.loss;
}

double half_of(ErrorKind kind, uint32_t bits) {
  static const std::vector<double> of_fp16 = [] {
    std::vector<double> values(1 << 16);
    for (uint32_t i = 0; i < values.size(); ++i) values[i] = assay::decode(Dtype::fp16, i);
    return values;
  }();
  return kind == ErrorKind::f16 ? of_fp16[bits] : std::bit_cast<float>(bits << 16);
}

ErrorTrace::Facts ErrorTrace::facts_of(const Code& code, const Op& op) const {
  const Signature& signature = code.signature(op);
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  Facts f;
  const bool floats =
      flow == Flow::arithmetic ||
      (flow == Flow::conversion && ptx::is_float(meaning.result) && ptx::is_float(meaning.sources[0]));
  const bool writes_value = op.d != no_slot && op.d_cell != Cell::mask;
  struct Way {
    Step prepare, follow;
  };
  using T = ErrorTrace;
  const Way nothing{nullptr, nullptr}, ends{nullptr, &T::end},
      loses = plan_.strict ? Way{&T::prepare_exact_result, &T::lose} : ends,
      compares = plan_.strict ? Way{&T::prepare_exact_result, &T::compare} : nothing;
  const auto [prepare, follow] =
      carries(signature)     ? Way{flow == Flow::select ? &T::prepare_select : nullptr, &T::carry}
      : flow == Flow::matrix ? Way{&T::prepare_matrix, &T::matrix}
      : flow == Flow::atomic ? Way{nullptr, &T::atomic}
      : flow == Flow::comparison && op.row->mask                ? compares
      : !writes_value                                           ? nothing
      : floats && op.row->real                                  ? Way{&T::prepare_arithmetic, &T::arithmetic}
      : is_narrowing(flow, meaning)                             ? ends
      : floats || flow == Flow::none || op.d_cell != Cell::word ? loses
                                                                : Way{&T::prepare_bits, &T::bits};
  f.prepare = prepare, f.follow = follow;
  if (follow == Step(&T::arithmetic) || follow == Step(&T::matrix))
    f.edge = edge_of(signature.form, meaning.result).kind;
  using ptx::Operation;
  const bool clamps = signature.form.saturates || signature.form.relu;
  const Operation operation = signature.form.operation;
  const bool sums = operation == Operation::add || operation == Operation::sub,
             fuses = operation == Operation::fma || operation == Operation::mad;
  f.adds = sums || fuses, f.multiplies = operation == Operation::mul || fuses;
  const bool constant = sums || operation == Operation::neg || operation == Operation::cvt;
  if (!clamps && constant) f.slopes = Facts::Slopes::constant;
  if (!clamps && f.multiplies) f.slopes = Facts::Slopes::product;
  f.own_roundoff = operation == Operation::lg2 ? kLogarithmRoundoff : kStepRoundoff;
  f.decides = signature.control != Control::none;
  f.decides |= flow == Flow::copy_bulk;
  for (const Access& access : signature.accesses)
    f.decides |= access.direction != Access::Direction::read || flow == Flow::copy_async;
  while (f.arity < 3 && op.row->sources[static_cast<size_t>(f.arity)] != ptx::Type::none) ++f.arity;
  return f;
}

void ErrorTrace::begin_block(Block& block) {
  const Cells::Cell blank{ErrorKind::none, plan_.parts};
  block_ = &block;
  order_ = 0;
  const Code* code = block.context->code;
  if (code_ != code) {
    code_ = code;
    facts_.clear();
    shifters_ = shifters_of(*code);
    for (const Op& op : code->ops) facts_.push_back(facts_of(*code, op));
    if (plan_.counts()) counts.ops.assign(code->ops.size(), {}), recurrences_ = recurrences_of(*code);
    recurring_ = 0;
    for (size_t i = 0; i < recurrences_.size(); ++i) {
      Recurrence& r = recurrences_[i];
      if (facts_[i].follow != &ErrorTrace::arithmetic) r = {};
      if (r.returns()) r.number = recurring_++;
    }
    scratch_.reset(4 * 32, blank);
  }
  if (plan_.strict) unsure_.begin(block.warps.size(), *code);
  any_unsure_ = astray_ = false;
  returning_.assign(block.warps.size() * recurring_ * 2 * 32, {});
  cells_.begin(block, blank, blank);
  for (const Warp& warp : block.warps)
    for (const auto& [slot, offset, part] : plan_.offsets) {
      Cells& cells = registers(warp);
      const size_t at = cell(slot, 0, 0);
      std::fill_n(&cells.kind[at], 32, ErrorKind::f32);
      std::fill_n(&cells.kind[at + 32], 32, ErrorKind::tail);
      std::fill_n(&cells.error[at], 32, 0.0);
      std::fill_n(&cells.bound[at], 32, part < 0 ? std::fabs(offset) : 0.0);
      for (int p = 0; p < plan_.parts; ++p) {
        const double by = plan_.probes ? probe_factor(slot, p) : 1;
        std::fill_n(cells.part(p) + at, 32, plan_.probes || p == part ? by * offset : 0);
      }
    }
}

/// 32 machine values; of an f64 in a wide cell, else of a word's half.
void ErrorTrace::decode(const Warp& warp, Slot slot, int half, ErrorKind kind, double* values) {
  if (kind == ErrorKind::f64) {
    std::memcpy(values, warp.wide(slot), 32 * sizeof(double));
    return;
  }
  const uint32_t* words = warp.word(slot);
  if (kind == ErrorKind::f32) return lane_kit().widen_floats(values, words);
  for (int i = 0; i < 32; ++i) {
    const uint32_t bits = words[i] >> (16 * half);
    values[i] = half_of(kind, bits & 0xffff);
  }
}

/// The operand's values and shadows. `in_place`: errors and bounds may be read where they lie until the
/// result's are written.
void ErrorTrace::gather(Warp& warp, Slot slot, int half, ErrorKind kind, bool in_place, Operand& to) {
  decode(warp, slot, half, kind, to.value);
  const Cells& cells = registers(warp);
  const size_t first = cell(slot, half, 0);
  const ErrorKind* const kinds = &cells.kind[first];
  bool all = is_all(kinds, kind), none = is_all(kinds, ErrorKind::none);
  for (int i = 1; i < halves_of(kind); ++i) {
    all = all && is_all(kinds + 32 * i, ErrorKind::tail);
    none = none && is_all(kinds + 32 * i, ErrorKind::none);
  }
  to.be_exact();
  if (none) return;
  if (all && in_place) {
    to.error = &cells.error[first], to.bound = &cells.bound[first], to.exact = false;
    for (int p = 0; p < plan_.parts; ++p) to.part[p] = cells.part(p) + first;
    return;
  }
  to.error = to.copied[0], to.bound = to.copied[1];
  for (int p = 0; p < plan_.parts; ++p) to.part[p] = to.copied_parts[p];
  for (size_t i = 0; i < 32; ++i) {
    const bool high_alone = kind == ErrorKind::f32 && (warp.word(slot)[i] & 0xffff) == 0;
    const size_t at = cells.find(first + i, 32, kind, high_alone);
    const bool here = at < Cells::unfollowed, lost = at == Cells::unfollowed && plan_.strict;
    to.exact &= !here && !lost;
    to.copied[0][i] = here ? cells.error[at] : 0;
    to.copied[1][i] = here ? cells.bound[at] : lost ? kInfinity : 0;
    for (int p = 0; p < plan_.parts; ++p) to.copied_parts[p][i] = here ? cells.part(p)[at] : 0;
  }
}

std::optional<double> ErrorTrace::error_of(const Warp& warp, Slot slot, int half, ErrorKind kind, int lane) {
  const Cells& cells = cells_.registers(warp);
  const size_t at = cells.find(cell(slot, half, lane), 32, kind, (warp.word(slot)[lane] & 0xffff) == 0);
  return at >= Cells::unfollowed ? std::nullopt : std::optional(cells.error[at]);
}

/// All halves of a cell.
void ErrorTrace::mark(Warp& warp, const Use& written, ErrorKind kind, uint32_t mask) {
  const auto halves = static_cast<int>(bytes_of(written.cell)) / 2;
  if (halves == 0) return;
  ErrorKind* kinds = &registers(warp).kind[cell(written.slot, 0, 0)];
  if (mask == ~0u) {
    std::fill_n(kinds, 32 * halves, kind);
    return;
  }
  for (int half = 0; half < halves; ++half)
    each_lane(mask, [&](int lane) { kinds[32 * half + lane] = kind; });
}

void ErrorTrace::mark(Warp& warp, const Op& op, ErrorKind kind, uint32_t mask) {
  if (kind == ErrorKind::lost && mask) note_loss(op);
  for (const Use& written : code_->signature(op).writes) mark(warp, written, kind, mask);
}

void ErrorTrace::note_loss(const Op& op) {
  if (counts.loss.op < 0) counts.loss = {block_->linear, static_cast<int32_t>(op_index(op))};
}

// A packed row means the same on each half; a packed conversion (sources f32) takes its high half from source
// 0. There the first half of the result may overwrite what the second reads.
void ErrorTrace::prepare_arithmetic(Warp& warp, const Op& op, uint32_t) {
  const Row& row = *op.row;
  const bool single = !ptx::is_packed(row.result);
  for (size_t k = 0; k < static_cast<size_t>(facts(op).arity); ++k) {
    const ptx::Type type = row.sources[k];
    // Parts follow slopes at the exact operands, behind the result's own shadow (x = x * y).
    const bool in_place = single && !(plan_.parts > 0 && op.s[k] == op.d);
    gather(warp, op.s[k], 0, error_kind_of(type), in_place, operands_[k]);
    if (ptx::is_packed(type)) gather(warp, op.s[k], 1, error_kind_of(type), in_place, operands_[3 + k]);
  }
  const int8_t exact = plan_.exact_source.empty() ? -1 : plan_.exact_source[op_index(op)];
  if (exact >= 0) operands_[static_cast<size_t>(exact)].be_exact();
}

void ErrorTrace::note_argument(const Op& op, uint32_t mask) {
  const EdgeKind kind = facts(op).edge;
  if (!plan_.counts() || kind == EdgeKind::none || kind == EdgeKind::magnitude) return;
  const bool signed_argument = kind == EdgeKind::exponent || kind == EdgeKind::positive;
  const auto note = [&](const Operand& argument) {
    EdgeSeen& seen = counts.ops[op_index(op)].edge;
    lane_kit().value_range(argument.value, !signed_argument, mask, &seen.smallest, &seen.largest);
  };
  note(operands_[0]);
  if (ptx::is_packed(op.row->result)) note(operands_[ptx::is_packed(op.row->sources[0]) ? 3 : 1]);
}

void ErrorTrace::arithmetic(Warp& warp, const Op& op, uint32_t mask) {
  note_argument(op, mask);
  const Row& row = *op.row;
  const ErrorKind kind = error_kind_of(row.result);
  const auto arity = static_cast<size_t>(facts(op).arity);
  Result result;
  const auto of_half = [&](int half, int first, size_t count) {
    const Operand* const from = &operands_[static_cast<size_t>(first)];
    finish(warp, op, half, kind, Sources(std::array{from, from + 1, from + 2}).first(count), result, mask);
  };
  if (!ptx::is_packed(row.result)) {
    if (halves_of(kind) == 1) mark(warp, op, ErrorKind::none, mask);
    return of_half(0, 0, arity);
  }
  const bool packed = ptx::is_packed(row.sources[0]);
  for (int half = 0; half < 2; ++half) of_half(half, packed ? 3 * half : 1 - half, packed ? arity : 1);
}

/// x + 1.5 * 2^23 (fp64: 2^52) rounds x to an integer, which then selects a power of two, a branch, or the
/// part of x that is left: the value's own choice, as of any conversion to an integer, and no error. Without
/// this the shadow of expf, which rounds so, would lose the fraction that the choice leaves.
void ErrorTrace::round_to_integer(const Op& op, Sources from, Result& r) const {
  for (size_t k = from.size() == 3 ? 2 : 0; k < from.size(); ++k)
    for (int i = 0; op.s[k] != no_slot && shifters_.contains(op.s[k]) && i < 32; ++i) {
      if (from[k]->error[i] != 0 || from[k]->bound[i] != 0) continue;
      if (plan_.strict && !(r.bound[i] < kInfinity)) continue;
      r.error[i] = r.bound[i] = r.local[i] = 0, r.chosen |= 1u << i;
      for (size_t source = 0; source < from.size(); ++source) r.slope[source][i] = 0;
    }
}

/// The result's shadow: local rounding by Row::real, the operands' errors along its slopes.
void ErrorTrace::finish(Warp& warp, const Op& op, int half, ErrorKind kind, Sources from, Result& r,
                        uint32_t mask) {
  decode(warp, op.d, half, kind, r.value);
  RealStep step = r.step();
  for (size_t k = 0; k < from.size(); ++k)
    step.value[k] = from[k]->value, step.error[k] = from[k]->error, step.bound[k] = from[k]->bound;
  op.row->real(step);
  if (facts(op).adds && !shifters_.empty()) round_to_integer(op, from, r);
  if (plan_.strict) widen(op, from, r);
  if (plan_.counts()) note_amplified(warp, op, kind, from, r, mask);
  const uint32_t kept = keep(warp, op, op.d, half, kind, r, from, mask);
  if (plan_.parts > 0) carry_parts(warp, op, cell(op.d, half, 0), from, r, kept);
}

void ErrorTrace::note_amplified(const Warp& warp, const Op& op, ErrorKind kind, Sources from, const Result& r,
                                uint32_t mask) {
  Amplified& seen = counts.ops[op_index(op)].amplified;
  const Recurrence& recurrence = recurrences_[op_index(op)];
  const auto number = [&](size_t k) { return static_cast<size_t>(from[k] - operands_.data()); };
  Returning* returning =
      recurrence.returns()
          ? &returning_[((warp.index * recurring_ + recurrence.number) * 2 + number(0) / 3) * 32]
          : nullptr;
  each_lane(mask, [&](int lane) {
    const double exact = r.value[lane] + r.error[lane], size = std::fabs(exact);
    const double error = std::fabs(r.error[lane]) / size;
    if (!(error > 0) || !std::isfinite(error)) return;
    double largest = 0;
    bool returned = false;
    for (size_t k = 0; k < from.size(); ++k) {
      const double off = std::fabs(from[k]->error[lane]);
      if (!(off > 0)) continue;
      const double relative = off / std::fabs(from[k]->value[lane] + from[k]->error[lane]);
      if (relative > largest) largest = relative, returned = recurrence.sources >> number(k) % 3 & 1;
    }
    if (!(largest > 0) || !std::isfinite(error / largest)) return;
    seen.errors.add(error), seen.growths.add(error / largest);
    if (returning) {
      const double came = std::max(largest, unit_roundoff(dtype_of(kind)));
      const double made = std::fabs(r.error[lane] - r.local[lane]) / size;
      if (!returned) returning[lane] = {};
      seen.returns.add(returned ? returning[lane].next(came, made) : 1);
    }
    if (error <= seen.error) return;
    seen.error = error, seen.value = r.value[lane], seen.exact = exact, seen.block = block_->linear;
    seen.thread = warp.index * 32 + static_cast<uint32_t>(lane);
  });
}

/// The bound of a strict trace: what its operands' bounds become, and the step's own doubles.
void ErrorTrace::widen(const Op& op, Sources from, Result& r) const {
  lane_kit().widen_bounds(r.step(), facts(op).own_roundoff, kStepRoundoff);
  const double share = plan_.inexact_share.empty() ? 0 : plan_.inexact_share[op_index(op)];
  r.product = {from[0]->value, from[from.size() > 1 ? 1 : 0]->value};
  for (int i = 0; i < 32 && plan_.probes; ++i) {
    r.terms[i] = std::fabs(r.local[i]);
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k]->error[i] != 0) r.terms[i] += std::fabs(r.slope[k][i] * from[k]->error[i]);
  }
  if (share > 0)
    for (int i = 0; i < 32; ++i) r.bound[i] += share * std::fabs(r.product[0][i] * r.product[1][i]);
  // What is not lost has a bound, however far sizes grow; 0 times what is lost is 0.
  for (int i = 0; i < 32; ++i) {
    if (r.bound[i] < kInfinity) continue;
    const auto is_lost = [i](const Operand* x) { return std::isinf(x->bound[i]); };
    const auto is_zero = [i](const Operand* x) {
      return x->value[i] == 0 && x->error[i] == 0 && x->bound[i] == 0;
    };
    const bool lost = std::ranges::any_of(from, is_lost);
    if (!lost) r.bound[i] = kLargestBound;
    if (lost && facts(op).multiplies && (is_zero(from[0]) || is_zero(from[1])))
      r.bound[i] = from.size() == 3 ? from[2]->bound[i] : 0;
  }
}

/// Writes the shadows of a result and counts what it did; returns the lanes that have one. Those that are not
/// finite end: where the machine's value is not, and no operand's was, exact numbers might be.
uint32_t ErrorTrace::keep(Warp& warp, const Op& op, Slot slot, int half, ErrorKind kind, Result& r,
                          Sources from, uint32_t mask) {
  const size_t index = op_index(op), first = cell(slot, half, 0);
  OpErrors::OfOp* const counted = plan_.counts() ? &counts.ops[index] : nullptr;
  const ErrorMasks masks = lane_kit().error_masks(r.step(), plan_.parting, counted ? counted->largest : 0);
  const uint32_t finite = masks.finite & (plan_.strict ? masks.bounded : ~0u), kept = mask & finite;
  Cells& cells = registers(warp);
  const int halves = halves_of(kind);
  if (kept == ~0u) {
    std::memcpy(&cells.error[first], r.error, sizeof r.error);
    std::memcpy(&cells.bound[first], r.bound, sizeof r.bound);
    std::fill_n(&cells.kind[first], 32, kind);
    std::fill_n(&cells.kind[first + 32], 32 * (halves - 1), ErrorKind::tail);
  } else {
    each_lane(mask, [&](int lane) {
      const size_t at = first + static_cast<size_t>(lane);
      const bool here = finite >> lane & 1;
      const bool inherited =
          std::ranges::any_of(from, [&](const Operand* x) { return !std::isfinite(x->value[lane]); });
      const bool lost = !here && plan_.strict && (std::isfinite(r.value[lane]) || !inherited);
      if (lost) note_loss(op);
      if (!here) r.local[lane] = r.error[lane] = 0, ++counts.ended;
      cells.kind[at] = here ? kind : lost ? ErrorKind::lost : ErrorKind::none;
      for (int i = 1; i < halves; ++i)
        cells.kind[at + 32 * static_cast<size_t>(i)] = here ? ErrorKind::tail : cells.kind[at];
      cells.error[at] = r.error[lane], cells.bound[at] = r.bound[lane];
    });
  }
  if (!counted) return kept;
  OpErrors::OfOp& seen = *counted;
  if (facts_[index].edge == EdgeKind::magnitude)
    lane_kit().value_range(r.value, true, mask, &seen.edge.smallest, &seen.edge.largest);
  const uint32_t rounded = kept & masks.rounded, parted = kept & masks.parted;
  seen.roundings += static_cast<uint64_t>(std::popcount(rounded));
  each_lane(rounded & masks.large, [&](int lane) {
    if (r.value[lane] != 0) seen.largest = std::max(seen.largest, std::fabs(r.local[lane] / r.value[lane]));
  });
  if (!parted || counts.first.op >= 0) return kept;
  const int lane = std::countr_zero(parted);
  const uint32_t thread = warp.number * 32 + static_cast<uint32_t>(lane);
  counts.first = {linear_of_block(warp), order_,       static_cast<int32_t>(index), thread,
                  r.value[lane],         r.error[lane]};
  return kept;
}

/// Of a result that no shadow reaches, whatever its operands are.
void ErrorTrace::end(Warp& warp, const Op& op, uint32_t mask) {
  mark(warp, op, plan_.strict ? ErrorKind::lost : ErrorKind::none, mask);
}

void ErrorTrace::before(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  if (any_unsure_) note_predicates(warp, op);
  if (plan_.strict && (f.decides || f.follow == &ErrorTrace::carry)) note_addresses(warp, op, mask);
  if (f.prepare) (this->*f.prepare)(warp, op, mask);
}

void ErrorTrace::after(Warp& warp, const Op& op, uint32_t mask) {
  ++order_;
  if (const Step follow = facts(op).follow) (this->*follow)(warp, op, mask);
  if (astray_ || misplaced_ || any_unsure_) follow_predicates(warp, op, mask);
}

}  // namespace assay::vm
