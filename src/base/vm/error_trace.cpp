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

const std::vector<double>& half_values() {
  static const std::vector<double> made = [] {
    std::vector<double> values(1 << 16);
    for (uint32_t bits = 0; bits < values.size(); ++bits) values[bits] = assay::decode(Dtype::fp16, bits);
    return values;
  }();
  return made;
}

int arity_of(const Row& row) {
  int arity = 0;
  while (arity < 3 && row.sources[static_cast<size_t>(arity)] != ptx::Type::none) ++arity;
  return arity;
}

/// A conversion to a float of 8 bits or fewer, whose type is bits here: a rounding that no shadow follows.
bool is_narrowing(Flow flow, const Meaning& meaning) {
  using ptx::Type;
  const bool bits = meaning.result == Type::b8 || meaning.result == Type::b16 || meaning.result == Type::b32;
  return flow == Flow::conversion && ptx::is_float(meaning.sources[0]) &&
         (bits || (ptx::is_float(meaning.result) && meaning.result != meaning.sources[0]));
}

/// real_exponential.h: the logarithm's difference is good to 2^-45 of itself.
constexpr double kLogarithmRoundoff = 0x1p-44;

/// Of what is followed.
constexpr double kLargestBound = 0x1p+1000;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double half_value(uint32_t bits) {
  return half_values()[bits & 0xffff];
}

double half_of(ErrorKind kind, uint32_t bits) {
  return kind == ErrorKind::f16 ? half_value(bits) : std::bit_cast<float>(bits << 16);
}

template <int parts_count>
auto ErrorTrace<parts_count>::facts_of(const Code& code, const Op& op) const -> Facts {
  const Signature& signature = code.signature(op);
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  Facts f;
  using Route = typename Facts::Route;
  const bool floats =
      flow == Flow::arithmetic ||
      (flow == Flow::conversion && ptx::is_float(meaning.result) && ptx::is_float(meaning.sources[0]));
  const bool writes_value = op.d != no_slot && op.d_cell != Cell::mask;
  f.route = carries(signature)                                        ? Route::carry
            : flow == Flow::matrix                                    ? Route::matrix
            : flow == Flow::atomic                                    ? Route::atomic
            : flow == Flow::comparison && op.row->mask                ? Route::compare
            : !writes_value                                           ? Route::none
            : floats && op.row->real                                  ? Route::arithmetic
            : is_narrowing(flow, meaning)                             ? Route::lose
            : floats || flow == Flow::none || op.d_cell != Cell::word ? Route::end
                                                                      : Route::bits;
  if (f.route == Route::compare && !plan_.strict) f.route = Route::none;
  if (f.route == Route::arithmetic || f.route == Route::matrix)
    f.edge = edge_of(signature.form, meaning.result).kind;
  using ptx::Operation;
  const bool clamps = signature.form.saturates || signature.form.relu;
  for (const Operation operation : {Operation::add, Operation::sub, Operation::neg, Operation::cvt})
    if (signature.form.operation == operation && !clamps) f.slopes = Facts::Slopes::constant;
  for (const Operation operation : {Operation::mul, Operation::fma, Operation::mad})
    f.multiplies |= signature.form.operation == operation;
  if (f.multiplies && !clamps) f.slopes = Facts::Slopes::product;
  f.own_roundoff = signature.form.operation == Operation::lg2 ? kLogarithmRoundoff : kStepRoundoff;
  f.decides = signature.control != Control::none;
  f.decides |= flow == Flow::copy_bulk;
  for (const Access& access : signature.accesses)
    f.decides |= access.direction != Access::Direction::read || flow == Flow::copy_async;
  for (const Use& use : signature.writes) f.writes_predicates |= use.cell == Cell::mask;
  f.arity = arity_of(*op.row);
  for (const Operation operation : {Operation::add, Operation::sub, Operation::fma, Operation::mad})
    f.adds |= signature.form.operation == operation;
  return f;
}

template <int parts_count>
void ErrorTrace<parts_count>::begin_block(Block& block) {
  block_ = &block;
  order_ = 0;
  const Code* code = block.context->code;
  if (code_ != code) {
    code_ = code;
    facts_.clear();
    shifters_ = shifters_of(*code);
    for (const Op& op : code->ops) facts_.push_back(facts_of(*code, op));
    counts.roundings.assign(code->ops.size(), 0);
    counts.largest.assign(code->ops.size(), 0);
    counts.edges.assign(code->ops.size(), {});
    counts.amplified.assign(code->ops.size(), {});
    if (parts_count == 0 && !plan_.strict) recurrences_ = recurrences_of(*code);
    recurring_ = 0;
    for (size_t i = 0; i < recurrences_.size(); ++i) {
      Recurrence& r = recurrences_[i];
      if (facts_[i].route != Facts::Route::arithmetic) r = {};
      if (r.returns()) r.number = recurring_++;
    }
    scratch_.reset(4 * 32, ErrorKind::none);
  }
  unsure_.clear();
  astray_ = false;
  returning_.assign(block.warps.size() * recurring_ * 2 * 32, {});
  cells_.begin_registers(block, ErrorKind::none);
  cells_.begin_local(block, ErrorKind::none);
  cells_.begin_shared(block, ErrorKind::none);
  for (const Warp& warp : block.warps)
    for (const auto& [slot, offset, part] : plan_.offsets) {
      Cells& cells = registers(warp);
      const size_t at = cell(slot, 0, 0);
      std::fill_n(&cells.kind[at], 32, ErrorKind::f32);
      std::fill_n(&cells.kind[at + 32], 32, ErrorKind::tail);
      std::fill_n(&cells.error[at], 32, 0.0);
      std::fill_n(&cells.bound[at], 32, part < 0 ? std::fabs(offset) : 0.0);
      for (int p = 0; p < plan_.parts; ++p) {
        const double by = plan_.probes ? probe_factor(slot, plan_.first_probe + p) : 1;
        std::fill_n(cells.part(static_cast<size_t>(p)) + at, 32, plan_.probes || p == part ? by * offset : 0);
      }
    }
}

/// 32 machine values; of an f64 in a wide cell, else of a word's half.
template <int parts_count>
void ErrorTrace<parts_count>::decode(const Warp& warp, Slot slot, int half, ErrorKind kind, double* values) {
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
template <int parts_count>
void ErrorTrace<parts_count>::gather(Warp& warp, Slot slot, int half, ErrorKind kind, bool in_place,
                                     Operand& to) {
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
    for (size_t p = 0; p < parts_count; ++p) to.part[p] = cells.part(p) + first;
    return;
  }
  to.error = to.copied[0], to.bound = to.copied[1];
  for (size_t p = 0; p < parts_count; ++p) to.part[p] = to.copied_parts[p];
  for (size_t i = 0; i < 32; ++i) {
    const bool high_alone = kind == ErrorKind::f32 && (warp.word(slot)[i] & 0xffff) == 0;
    const size_t at = cells.find(first + i, 32, kind, high_alone);
    const bool here = at < Cells::unfollowed, lost = at == Cells::unfollowed && plan_.strict;
    to.exact &= !here && !lost;
    to.copied[0][i] = here ? cells.error[at] : 0;
    to.copied[1][i] = here ? cells.bound[at] : lost ? kInfinity : 0;
    for (size_t p = 0; p < parts_count; ++p) to.copied_parts[p][i] = here ? cells.part(p)[at] : 0;
  }
}

template <int parts_count>
std::optional<double> ErrorTrace<parts_count>::error_of(const Warp& warp, Slot slot, int half, ErrorKind kind,
                                                        int lane) {
  const Cells& cells = cells_.registers(warp);
  const size_t at = cells.find(cell(slot, half, lane), 32, kind, (warp.word(slot)[lane] & 0xffff) == 0);
  return at >= Cells::unfollowed ? std::nullopt : std::optional(cells.error[at]);
}

/// All halves of a cell.
template <int parts_count>
void ErrorTrace<parts_count>::mark(Warp& warp, const Use& written, ErrorKind kind, uint32_t mask) {
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

template <int parts_count>
void ErrorTrace<parts_count>::mark(Warp& warp, const Op& op, ErrorKind kind, uint32_t mask) {
  if (kind == ErrorKind::lost && mask) note_loss(op);
  for (const Use& written : code_->signature(op).writes) mark(warp, written, kind, mask);
}

template <int parts_count>
void ErrorTrace<parts_count>::note_loss(const Op& op) {
  if (counts.loss.op < 0) counts.loss = {block_->linear, static_cast<int32_t>(op_index(op))};
}

// A packed row means the same on each half; a packed conversion (sources f32) takes its high half from source
// 0. There the first half of the result may overwrite what the second reads.
template <int parts_count>
void ErrorTrace<parts_count>::prepare_arithmetic(Warp& warp, const Op& op) {
  const Row& row = *op.row;
  const bool in_place = !ptx::is_packed(row.result);
  for (size_t k = 0; k < static_cast<size_t>(facts(op).arity); ++k) {
    const ptx::Type type = row.sources[k];
    gather(warp, op.s[k], 0, error_kind_of(type), in_place, operands_[k]);
    if (ptx::is_packed(type)) gather(warp, op.s[k], 1, error_kind_of(type), in_place, operands_[3 + k]);
  }
  const int8_t exact = plan_.exact_source.empty() ? -1 : plan_.exact_source[op_index(op)];
  if (exact >= 0) operands_[static_cast<size_t>(exact)].be_exact();
}

template <int parts_count>
void ErrorTrace<parts_count>::note_argument(const Op& op, uint32_t mask) {
  const EdgeKind kind = facts(op).edge;
  if (parts_count > 0 || kind == EdgeKind::none || kind == EdgeKind::magnitude) return;
  const bool signed_argument = kind == EdgeKind::exponent || kind == EdgeKind::positive;
  const auto note = [&](const Operand& argument) {
    EdgeSeen& seen = counts.edges[op_index(op)];
    lane_kit().value_range(argument.value, !signed_argument, mask, &seen.smallest, &seen.largest);
  };
  note(operands_[0]);
  if (ptx::is_packed(op.row->result)) note(operands_[ptx::is_packed(op.row->sources[0]) ? 3 : 1]);
}

template <int parts_count>
void ErrorTrace<parts_count>::arithmetic(Warp& warp, const Op& op, uint32_t mask) {
  note_argument(op, mask);
  const Row& row = *op.row;
  const ErrorKind kind = error_kind_of(row.result);
  Result result;
  if (!ptx::is_packed(row.result)) {
    const int which[3] = {0, 1, 2};
    if (halves_of(kind) == 1) mark(warp, op, ErrorKind::none, mask);
    finish(warp, op, 0, kind, facts(op).arity, which, result, mask);
    return;
  }
  for (int half = 0; half < 2; ++half) {
    if (ptx::is_packed(row.sources[0])) {
      const int which[3] = {3 * half, 3 * half + 1, 3 * half + 2};
      finish(warp, op, half, kind, facts(op).arity, which, result, mask);
    } else {
      const int which[3] = {1 - half, 0, 0};
      finish(warp, op, half, kind, 1, which, result, mask);
    }
  }
}

/// x + 1.5 * 2^23 (fp64: 2^52) rounds x to an integer, which then selects a power of two, a branch, or the
/// part of x that is left: the value's own choice, as of any conversion to an integer, and no error. Without
/// this the shadow of expf, which rounds so, would lose the fraction that the choice leaves.
template <int parts_count>
void ErrorTrace<parts_count>::round_to_integer(const Op& op, const int* which, int arity, Result& r) const {
  for (int k = arity == 3 ? 2 : 0; k < arity; ++k) {
    const Operand& addend = operands_[static_cast<size_t>(which[k])];
    for (int i = 0; op.s[k] != no_slot && shifters_.contains(op.s[k]) && i < 32; ++i) {
      if (addend.error[i] != 0 || addend.bound[i] != 0) continue;
      if (plan_.strict && !(r.bound[i] < kInfinity)) continue;
      r.error[i] = r.bound[i] = r.local[i] = 0, r.chosen |= 1u << i;
      for (int source = 0; source < arity; ++source) r.slope[source][i] = 0;
    }
  }
}

/// The result's shadow: local rounding by Row::real, the operands' errors along its slopes.
template <int parts_count>
void ErrorTrace<parts_count>::finish(Warp& warp, const Op& op, int half, ErrorKind kind, int arity,
                                     const int* which, Result& r, uint32_t mask) {
  decode(warp, op.d, half, kind, r.value);
  RealStep step = r.step();
  for (int k = 0; k < arity; ++k) {
    const Operand& from = operands_[static_cast<size_t>(which[k])];
    step.value[k] = from.value, step.error[k] = from.error, step.bound[k] = from.bound;
  }
  op.row->real(step);
  if (facts(op).adds && !shifters_.empty()) round_to_integer(op, which, arity, r);
  if (plan_.strict) widen(op, arity, which, r);
  if (parts_count == 0 && !plan_.strict) note_amplified(warp, op, kind, arity, which, r, mask);
  const uint32_t kept = keep(warp, op, op.d, half, kind, r, {which, static_cast<size_t>(arity)}, mask);
  if constexpr (parts_count > 0) carry_parts(warp, op, cell(op.d, half, 0), arity, which, r, kept);
}

template <int parts_count>
void ErrorTrace<parts_count>::note_amplified(const Warp& warp, const Op& op, ErrorKind kind, int arity,
                                             const int* which, const Result& r, uint32_t mask) {
  Amplified& seen = counts.amplified[op_index(op)];
  const Recurrence& recurrence = recurrences_[op_index(op)];
  const size_t half = static_cast<size_t>(which[0]) / 3;  // operands_: three per half
  Returning* returning = recurrence.returns()
                             ? &returning_[((warp.index * recurring_ + recurrence.number) * 2 + half) * 32]
                             : nullptr;
  each_lane(mask, [&](int lane) {
    const double exact = r.value[lane] + r.error[lane], size = std::fabs(exact);
    const double error = std::fabs(r.error[lane]) / size;
    if (!(error > 0) || !std::isfinite(error)) return;
    double largest = 0;
    bool returned = false;
    for (int k = 0; k < arity; ++k) {
      const Operand& operand = operands_[static_cast<size_t>(which[k])];
      const double off = std::fabs(operand.error[lane]);
      if (!(off > 0)) continue;
      const double relative = off / std::fabs(operand.value[lane] + operand.error[lane]);
      if (relative > largest) largest = relative, returned = recurrence.sources >> which[k] % 3 & 1;
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
template <int parts_count>
void ErrorTrace<parts_count>::widen(const Op& op, int arity, const int* which, Result& r) const {
  const auto operand = [&](int k) -> const Operand& { return operands_[static_cast<size_t>(which[k])]; };
  const double own = facts(op).own_roundoff;
  lane_kit().widen_bounds(r.step(), own, kStepRoundoff);
  const double share = plan_.inexact_share.empty() ? 0 : plan_.inexact_share[op_index(op)];
  r.product = {operand(0).value, operand(arity > 1 ? 1 : 0).value};
  for (int i = 0; i < 32 && plan_.probes; ++i) {
    r.terms[i] = std::fabs(r.local[i]);
    for (int k = 0; k < arity; ++k)
      if (operand(k).error[i] != 0) r.terms[i] += std::fabs(r.slope[k][i] * operand(k).error[i]);
  }
  if (share > 0)
    for (int i = 0; i < 32; ++i) r.bound[i] += share * std::fabs(r.product[0][i] * r.product[1][i]);
  // What is not lost has a bound, however far sizes grow; 0 times what is lost is 0.
  for (int i = 0; i < 32; ++i) {
    if (r.bound[i] < kInfinity) continue;
    bool lost = false;
    for (int k = 0; k < arity; ++k) lost |= std::isinf(operand(k).bound[i]);
    if (!lost) r.bound[i] = kLargestBound;
    if (!lost || !facts(op).multiplies) continue;
    const auto is_zero = [&](int k) {
      const Operand& x = operand(k);
      return x.value[i] == 0 && x.error[i] == 0 && x.bound[i] == 0;
    };
    if (is_zero(0) || is_zero(1)) r.bound[i] = arity == 3 ? operand(2).bound[i] : 0;
  }
}

/// Writes the shadows of a result and counts what it did; returns the lanes that have one. Those that are not
/// finite end: where the machine's value is not, and no operand's (`which`) was, exact numbers might be.
template <int parts_count>
uint32_t ErrorTrace<parts_count>::keep(Warp& warp, const Op& op, Slot slot, int half, ErrorKind kind,
                                       Result& r, std::span<const int> which, uint32_t mask) {
  const size_t index = op_index(op), first = cell(slot, half, 0);
  const ErrorMasks masks = lane_kit().error_masks(r.step(), plan_.parting, counts.largest[index]);
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
      const bool inherited = std::any_of(which.begin(), which.end(), [&](int k) {
        return !std::isfinite(operands_[static_cast<size_t>(k)].value[lane]);
      });
      const bool lost = !here && plan_.strict && (std::isfinite(r.value[lane]) || !inherited);
      if (lost) note_loss(op);
      if (!here) r.local[lane] = r.error[lane] = 0, ++counts.ended;
      cells.kind[at] = here ? kind : lost ? ErrorKind::lost : ErrorKind::none;
      for (int i = 1; i < halves; ++i)
        cells.kind[at + 32 * static_cast<size_t>(i)] = here ? ErrorKind::tail : cells.kind[at];
      cells.error[at] = r.error[lane], cells.bound[at] = r.bound[lane];
    });
  }
  if constexpr (parts_count > 0) return kept;
  EdgeSeen& seen = counts.edges[index];
  if (facts_[index].edge == EdgeKind::magnitude)
    lane_kit().value_range(r.value, true, mask, &seen.smallest, &seen.largest);
  const uint32_t rounded = kept & masks.rounded, parted = kept & masks.parted;
  counts.roundings[index] += static_cast<uint64_t>(std::popcount(rounded));
  each_lane(rounded & masks.large, [&](int lane) {
    if (r.value[lane] != 0)
      counts.largest[index] = std::max(counts.largest[index], std::fabs(r.local[lane] / r.value[lane]));
  });
  if (!parted || counts.first.op >= 0) return kept;
  const int lane = std::countr_zero(parted);
  const uint32_t thread = warp.number * 32 + static_cast<uint32_t>(lane);
  counts.first = {linear_of_block(warp), order_,       static_cast<int32_t>(index), thread,
                  r.value[lane],         r.error[lane]};
  return kept;
}

template <int parts_count>
void ErrorTrace<parts_count>::before(Warp& warp, const Op& op, uint32_t mask) {
  using Route = typename Facts::Route;
  const Facts& f = facts(op);
  if (!unsure_.empty()) note_predicates(warp, op);
  if (plan_.strict && (f.decides || f.route == Route::carry)) note_addresses(warp, op, mask);
  switch (f.route) {
    case Route::arithmetic:
      return prepare_arithmetic(warp, op);
    case Route::bits:
      return prepare_bits(warp, op, mask);
    case Route::matrix:
      return prepare_matrix(warp, op);
    case Route::end:
    case Route::compare:
      if (plan_.strict) prepare_exact_result(warp, op, mask);
      return;
    case Route::carry:
      if (read_unsure_ && op.row->flow == Flow::select) prepare_select(warp, op, mask);
      return;
    default:
      return;
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::after(Warp& warp, const Op& op, uint32_t mask) {
  ++order_;
  follow(warp, op, mask);
  if (astray_ || misplaced_ || !unsure_.empty()) follow_predicates(warp, op, mask);
}

template <int parts_count>
void ErrorTrace<parts_count>::follow(Warp& warp, const Op& op, uint32_t mask) {
  using Route = typename Facts::Route;
  switch (facts(op).route) {
    case Route::none:
      return;
    case Route::end:
      return plan_.strict ? lose(warp, op, mask) : mark(warp, op, ErrorKind::none, mask);
    case Route::lose:
      return mark(warp, op, plan_.strict ? ErrorKind::lost : ErrorKind::none, mask);
    case Route::compare:
      return compare(warp, op, mask);
    case Route::carry:
      return carry(warp, op, mask);
    case Route::arithmetic:
      return arithmetic(warp, op, mask);
    case Route::bits:
      return bits(warp, op, mask);
    case Route::atomic:
      return atomic(warp, op, mask);
    case Route::matrix:
      return matrix(warp, op);
  }
}

template class ErrorTrace<0>;
template class ErrorTrace<kExactParts>;
template class ErrorTrace<16>;

}  // namespace assay::vm
