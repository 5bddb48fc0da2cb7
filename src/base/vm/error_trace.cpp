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

thread_local std::unique_ptr<ErrorTrace::Room> ErrorTrace::left_;

ErrorTrace::ErrorTrace(const ErrorPlan& plan)
    : plan_(plan),
      room_(left_ ? std::move(left_) : std::make_unique<Room>()),
      cells_(room_->cells),
      scratch_(room_->scratch),
      fragments_(room_->fragments) {}

ErrorTrace::~ErrorTrace() {
  constexpr size_t kMostLeft = size_t{1} << 30;  // of addresses; what was never touched takes no memory
  size_t bytes = 0;
  cells_.each_kept_array([&](const Cells& cells) { bytes += cells.bytes(); });
  if (bytes <= kMostLeft) left_ = std::move(room_);
}

/// The first `count` registers that it reads hold what they seem, in all lanes.
bool ErrorTrace::are_plain(const Warp& warp, const Facts& f, int count) const {
  const uint8_t* const plain = cells_.registers(warp.index).plain.data();
  bool all = f.all_known;
  for (int i = 0; i < count; ++i)
    for (uint32_t half = 0; half < f.reads[static_cast<size_t>(i)].halves; ++half)
      all &= plain[f.reads[static_cast<size_t>(i)].row + half] != 0;
  return all;
}

void ErrorTrace::begin_block(Block& block) {
  const Cells::Cell blank{ErrorKind::none, plan_.parts};
  block_ = &block;
  order_ = 0;
  const Code* code = block.context->code;
  if (code_ != code) {
    code_ = code;
    facts_.clear();
    shifters_ = &shifters_of(*code);
    for (const Op& op : code->ops) facts_.push_back(facts_of(*code, op));
    if (plan_.counts()) {
      counts.ops.assign(code->ops.size(), {});
      recurrences_ = recurrences_of(*code);
    }
    recurring_ = 0;
    for (size_t i = 0; i < recurrences_.size(); ++i) {
      Recurrence& r = recurrences_[i];
      if (facts_[i].follow != &ErrorTrace::arithmetic) r = {};
      if (r.returns()) r.number = recurring_++;
    }
    scratch_.reset(4 * 32, blank);
    scratch_.begin_to_hold();
  }
  if (plan_.strict) unsure_.begin(block.warps.size(), *code);
  any_unsure_ = astray_ = false;
  returning_.resize(block.warps.size() * recurring_ * 2);
  for (ReturningRow& row : returning_) row.begin();
  cells_.begin_alike(block, blank);
  for (const Warp& warp : block.warps) registers(warp).begin_rows();
  for (const Warp& warp : block.warps)
    for (const auto& [slot, offset, part] : plan_.offsets) {
      Cells& cells = registers(warp);
      const size_t at = cell(slot, 0, 0);
      for (int half = 0; half < 2; ++half) cells.touch_row(cell(slot, half, 0));
      std::fill_n(&cells.kind[at], 32, ErrorKind::f32);
      std::fill_n(&cells.kind[at + 32], 32, ErrorKind::tail);
      std::fill_n(&cells.error[at], 32, 0.0);
      std::fill_n(&cells.bound[at], 32, part < 0 ? std::fabs(offset) : 0.0);
      for (int p = 0; p < plan_.parts; ++p) {
        const double by = plan_.probes && p > 0 ? probe_factor(slot, p) : 1;
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

/// Those of the lanes in `mask` of a row.
bool ErrorTrace::are(uint32_t mask, const ErrorKind* kinds, ErrorKind kind) {
  if (mask != lanes_) {
    lanes_ = mask;
    uint8_t bytes[32];
    for (uint32_t lane = 0; lane < 32; ++lane) bytes[lane] = (mask >> lane & 1) ? 0xff : 0;
    std::memcpy(lane_bytes_, bytes, sizeof lane_bytes_);
  }
  uint64_t words[4], others = 0;
  std::memcpy(words, kinds, sizeof words);
  const uint64_t wanted = 0x0101010101010101u * static_cast<uint64_t>(kind);
  for (size_t i = 0; i < 4; ++i) others |= (words[i] ^ wanted) & lane_bytes_[i];
  return others == 0;
}

/// The operand's values and shadows in `mask`; other lanes hold anything. `in_place`: errors and bounds may
/// be read where they lie until the result's are written.
void ErrorTrace::gather(Warp& warp, Slot slot, int half, ErrorKind kind, bool in_place, uint32_t mask,
                        Operand& to) {
  decode(warp, slot, half, kind, to.value);
  to.be_exact(plan_.parts);
  const Cells& cells = registers(warp);
  const size_t first = cell(slot, half, 0), row = first / Cells::kRow;
  const auto halves = static_cast<size_t>(halves_of(kind));
  const auto is_plain = [](uint8_t plain) { return plain != 0; };
  if (std::all_of(&cells.plain[row], &cells.plain[row] + halves, is_plain)) return;
  const ErrorKind* const kinds = &cells.kind[first];
  const bool all = are(mask, kinds, kind);
  const auto rest_are = [&](ErrorKind wanted) {
    for (size_t i = 1; i < halves; ++i)
      if (!are(mask, kinds + 32 * i, wanted)) return false;
    return true;
  };
  const bool whole = all && rest_are(ErrorKind::tail);
  if (!all && are(mask, kinds, ErrorKind::none) && rest_are(ErrorKind::none)) return;
  for (size_t i = 0; i < halves; ++i) to.parted |= cells.parted[row + i];
  to.parted &= (1u << plan_.parts) - 1;
  if (whole) {
    to.parted &= cells.parted[row];
    to.error = &cells.error[first], to.bound = &cells.bound[first], to.exact = false;
    for (int p = 0; p < plan_.parts; ++p) to.part[p] = cells.part(p) + first;
    if (!in_place) to.copy();
    return;
  }
  to.error = to.copied[0], to.bound = to.copied[1];
  size_t at[32];
  for (size_t i = 0; i < 32; ++i) {
    const bool high_alone = kind == ErrorKind::f32 && (warp.word(slot)[i] & 0xffff) == 0;
    at[i] = cells.find(first + i, 32, kind, high_alone);
    const bool here = at[i] < Cells::unfollowed, lost = at[i] == Cells::unfollowed && plan_.strict;
    to.exact &= !here && !lost;
    to.copied[0][i] = here ? cells.error[at[i]] : 0;
    to.copied[1][i] = here ? cells.bound[at[i]] : lost ? kInfinity : 0;
  }
  for (uint32_t parts = to.parted; parts; parts &= parts - 1) {
    const int p = std::countr_zero(parts);
    to.part[p] = to.copied_parts[p];
    for (size_t i = 0; i < 32; ++i)
      to.copied_parts[p][i] = at[i] < Cells::unfollowed ? cells.part(p)[at[i]] : 0;
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
  Cells& cells = registers(warp);
  for (int half = 0; half < halves; ++half) {
    const size_t first = cell(written.slot, half, 0);
    uint8_t& plain = cells.plain[first / Cells::kRow];
    if (plain && kind == ErrorKind::none) continue;
    plain = mask == ~0u && kind == ErrorKind::none;
    if (mask == ~0u)
      std::fill_n(&cells.kind[first], 32, kind);
    else
      each_lane(mask, [&](int lane) { cells.kind[first + static_cast<size_t>(lane)] = kind; });
  }
}

void ErrorTrace::mark(Warp& warp, const Op& op, ErrorKind kind, uint32_t mask) {
  if (!mask) return;
  if (kind == ErrorKind::lost) note_loss(op);
  if (const Facts::ReadRows& one = facts(op).written; kind == ErrorKind::none && one.halves > 0) {
    const uint8_t* const plain = &registers(warp).plain[one.row];
    if (std::all_of(plain, plain + one.halves, [](uint8_t known) { return known != 0; })) return;
  }
  for (const Use& written : code_->signature(op).writes) mark(warp, written, kind, mask);
}

void ErrorTrace::note_loss(const Op& op) {
  if (counts.loss.op < 0) counts.loss = {block_->linear, static_cast<int32_t>(op_index(op))};
}

// A packed row means the same on each half; a packed conversion (sources f32) takes its high half from source
// 0. There the first half of the result may overwrite what the second reads.
void ErrorTrace::prepare_arithmetic(Warp& warp, const Op& op, uint32_t mask) {
  const Row& row = *op.row;
  const bool single = !ptx::is_packed(row.result);
  for (size_t k = 0; k < static_cast<size_t>(facts(op).arity); ++k) {
    const ptx::Type type = row.sources[k];
    // Parts follow slopes at the exact operands, behind the result's own shadow (x = x * y).
    const bool in_place = single && !(plan_.parts > 0 && op.s[k] == op.d);
    gather(warp, op.s[k], 0, error_kind_of(type), in_place, mask, operands_[k]);
    if (ptx::is_packed(type)) gather(warp, op.s[k], 1, error_kind_of(type), in_place, mask, operands_[3 + k]);
  }
  const int8_t exact = plan_.exact_source.empty() ? -1 : plan_.exact_source[op_index(op)];
  if (exact >= 0) operands_[static_cast<size_t>(exact)].be_exact(plan_.parts);
}

void ErrorTrace::note_argument(const Op& op, uint32_t mask) {
  const EdgeKind kind = facts(op).edge;
  if (!plan_.counts() || kind == EdgeKind::none || kind == EdgeKind::magnitude) return;
  const bool signed_argument = kind == EdgeKind::exponent || kind == EdgeKind::positive;
  const auto note = [&](const Operand& argument) {
    EdgeSeen& seen = counts.ops[op_index(op)].edge;
    kit_.value_range(argument.value, !signed_argument, mask, &seen.smallest, &seen.largest);
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
  const bool wide = op.row->result == ptx::Type::f64;
  for (size_t k = from.size() == 3 ? 2 : 0; k < from.size(); ++k) {
    const bool known = op.s[k] != no_slot && shifters_->contains(op.s[k]);
    for (int i = 0; (known || plan_.shifters_by_value) && i < 32; ++i) {
      if (!known && !rounds_to_integer(from[k]->value[i], wide)) continue;
      if (from[k]->error[i] != 0 || from[k]->bound[i] != 0) continue;
      if (plan_.strict && !(r.bound[i] < kInfinity)) continue;
      r.error[i] = r.bound[i] = r.local[i] = 0, r.chosen |= 1u << i;
      for (size_t source = 0; source < from.size(); ++source) r.slope[source][i] = 0;
    }
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
  if (facts(op).adds && (plan_.shifters_by_value || !shifters_->empty())) round_to_integer(op, from, r);
  if (plan_.strict) widen(op, from, r, mask);
  if (plan_.counts()) note_amplified(warp, op, kind, from, r, mask);
  const uint32_t kept = keep(warp, op, op.d, half, kind, r, from, mask);
  if (plan_.parts > 0) carry_parts(warp, op, cell(op.d, half, 0), from, r, kept);
}

void ErrorTrace::note_amplified(const Warp& warp, const Op& op, ErrorKind kind, Sources from, const Result& r,
                                uint32_t mask) {
  Amplified& seen = counts.ops[op_index(op)].amplified;
  const Recurrence& recurrence = recurrences_[op_index(op)];
  const auto number = [&](size_t k) { return static_cast<size_t>(from[k] - operands_.data()); };
  ErrorGrowth g;
  const double *values[3], *errors[3];
  int rounded = 0;
  uint32_t came_back = 0;  // bit k: the k-th of these is one that the instruction made
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k]->exact) continue;
    values[rounded] = from[k]->value, errors[rounded] = from[k]->error;
    came_back |= (recurrence.sources >> number(k) % 3 & 1u) << rounded++;
  }
  if (rounded == 0) return;
  shadow_kit_.measure_growth(g, mask, r.value, r.error, rounded, values, errors);
  shadow_kit_.count_binades(seen.errors.counts.data(), g.error_binade, g.counts);
  shadow_kit_.count_binades(seen.growths.counts.data(), g.growth_binade, g.counts);
  if (recurrence.returns()) {
    ReturningRow& returning = returning_[(warp.index * recurring_ + recurrence.number) * 2 + number(0) / 3];
    alignas(64) uint64_t binade[32];
    shadow_kit_.follow_returns(returning, g, came_back, unit_roundoff(dtype_of(kind)), r.value, r.error,
                               r.local, binade);
    shadow_kit_.count_binades(seen.returns.counts.data(), binade, g.counts);
  }
  if (g.largest <= seen.error) return;
  for (size_t i = 0; i < 32; ++i) {
    if (!g.counts[i] || g.error[i] <= seen.error) continue;
    seen.error = g.error[i], seen.value = r.value[i], seen.exact = r.value[i] + r.error[i];
    seen.block = block_->linear, seen.thread = warp.index * 32 + static_cast<uint32_t>(i);
  }
}

/// The bound of a strict trace: what its operands' bounds become, and the step's own doubles.
void ErrorTrace::widen(const Op& op, Sources from, Result& r, uint32_t mask) const {
  const double share = plan_.inexact_share.empty() ? 0 : plan_.inexact_share[op_index(op)];
  r.product = {from[0]->value, from[from.size() > 1 ? 1 : 0]->value};
  const bool infinite =
      kit_.widen_bounds(r.step(), facts(op).own_roundoff, kStepRoundoff, share, r.product[0], r.product[1]);
  if (plan_.probes) {
    const double *slopes[3], *errors[3];
    for (size_t k = 0; k < from.size(); ++k) slopes[k] = r.slope[k], errors[k] = from[k]->error;
    shadow_kit_.sizes_of_terms(r.terms, r.local, static_cast<int>(from.size()), slopes, errors);
  }
  if (infinite) limit(op, from, r, mask);
}

/// What is not lost has a bound, however far sizes grow; 0 times what is lost is 0.
void ErrorTrace::limit(const Op& op, Sources from, Result& r, uint32_t mask) const {
  each_lane(mask, [&](int i) {
    if (r.bound[i] < kInfinity) return;
    const auto is_lost = [i](const Operand* x) { return std::isinf(x->bound[i]); };
    const auto is_zero = [i](const Operand* x) {
      return x->value[i] == 0 && x->error[i] == 0 && x->bound[i] == 0;
    };
    const bool lost = std::ranges::any_of(from, is_lost);
    if (!lost) r.bound[i] = kLargestBound;
    if (lost && facts(op).multiplies && (is_zero(from[0]) || is_zero(from[1])))
      r.bound[i] = from.size() == 3 ? from[2]->bound[i] : 0;
  });
}

/// Writes the shadows of a result and counts what it did; returns the lanes that have one. Those that are not
/// finite end: where the machine's value is not, and no operand's was, exact numbers might be.
uint32_t ErrorTrace::keep(Warp& warp, const Op& op, Slot slot, int half, ErrorKind kind, Result& r,
                          Sources from, uint32_t mask) {
  const size_t index = op_index(op), first = cell(slot, half, 0);
  OpErrors::OfOp* const counted = plan_.counts() ? &counts.ops[index] : nullptr;
  ErrorMasks masks{};
  if (counted)
    masks = kit_.error_masks(r.step(), plan_.parting, counted->largest);
  else
    masks.finite = kit_.finite_lanes(r.error, plan_.strict ? r.bound : nullptr);
  const uint32_t finite = masks.finite, kept = mask & finite;
  Cells& cells = registers(warp);
  const int halves = halves_of(kind);
  std::fill_n(&cells.plain[first / Cells::kRow], halves, uint8_t{0});
  if (kept == ~0u) {
    std::memcpy(&cells.error[first], r.error, sizeof r.error);
    std::memcpy(&cells.bound[first], r.bound, sizeof r.bound);
    std::fill_n(&cells.kind[first], 32, kind);
    std::fill_n(&cells.kind[first + 32], 32 * (halves - 1), ErrorKind::tail);
  } else if (kept == mask) {
    kit_.blend_wide(&cells.error[first], r.error, mask), kit_.blend_wide(&cells.bound[first], r.bound, mask);
    if (!are(mask, &cells.kind[first], kind))
      each_lane(mask, [&](int lane) { cells.kind[first + static_cast<size_t>(lane)] = kind; });
    for (size_t row = first + 32; row < first + 32 * static_cast<size_t>(halves); row += 32)
      if (!are(mask, &cells.kind[row], ErrorKind::tail))
        each_lane(mask, [&](int lane) { cells.kind[row + static_cast<size_t>(lane)] = ErrorKind::tail; });
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
    kit_.value_range(r.value, true, mask, &seen.edge.smallest, &seen.edge.largest);
  const uint32_t rounded = kept & masks.rounded, parted = kept & masks.parted;
  seen.roundings += lanes_in(rounded);
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
  if (plan_.strict && (f.decides || f.follow == &ErrorTrace::carry) && !are_plain(warp, f, f.place_count))
    note_addresses(warp, op, mask);
  if (f.prepare) (this->*f.prepare)(warp, op, mask);
}

void ErrorTrace::after(Warp& warp, const Op& op, uint32_t mask) {
  ++order_;
  if (const Step follow = facts(op).follow) (this->*follow)(warp, op, mask);
  if (astray_ || misplaced_ || any_unsure_) follow_predicates(warp, op, mask);
}

}  // namespace assay::vm
