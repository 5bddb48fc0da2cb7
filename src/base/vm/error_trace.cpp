#include "src/base/vm/error_trace.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"

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

/// A conversion to a float of 8 bits or fewer, which no shadow follows.
bool is_narrowing(Flow flow, const Meaning& meaning) {
  return flow == Flow::conversion && ptx::is_float(meaning.sources[0]) && ptx::is_float(meaning.result) &&
         meaning.result != meaning.sources[0];
}
/// Does nothing but the condition of selections read the predicate, and nothing else write it?
bool only_selects(const Code& code, const Op& compare) {
  if (compare.d2 != no_slot || compare.guarded || compare.boolean != BooleanOp::none) return false;
  for (const Op& op : code.ops) {
    const Signature& signature = code.signature(op);
    if (op.guarded && op.guard == compare.d) return false;
    if (&op == &compare) continue;
    for (const Use& written : signature.writes)
      if (written.slot == compare.d && written.cell == Cell::mask) return false;
    for (const Use& read : signature.reads)
      if (read.slot == compare.d && read.cell == Cell::mask &&
          (signature.flow() != Flow::select || op.row->result != ptx::Type::f32))
        return false;
  }
  return true;
}
bool compares_floats(Flow flow, const Meaning& meaning) {
  return flow == Flow::comparison && meaning.sources[1] == meaning.sources[0] &&
         (meaning.sources[0] == ptx::Type::f32 || meaning.sources[0] == ptx::Type::f64);
}

}  // namespace

double half_value(uint32_t bits) {
  return half_values()[bits & 0xffff];
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
            : plan_.strict && compares_floats(flow, meaning)          ? Route::compare
            : !writes_value                                           ? Route::none
            : floats && op.row->real                                  ? Route::arithmetic
            : plan_.strict && is_narrowing(flow, meaning)             ? Route::lose
            : floats || flow == Flow::none || op.d_cell != Cell::word ? Route::clear
                                                                      : Route::bits;
  if (f.route == Route::arithmetic || f.route == Route::matrix)
    f.edge = edge_of(signature.form, meaning.result).kind;
  f.arity = arity_of(*op.row);
  if (f.route == Route::compare) f.only_selects = only_selects(code, op);
  using ptx::Operation;
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
    for (const Op& op : code->ops) facts_.push_back(facts_of(*code, op));
    counts.roundings.assign(code->ops.size(), 0);
    counts.largest.assign(code->ops.size(), 0);
    counts.edges.assign(code->ops.size(), {});
    scratch_.reset(4 * 32, ErrorKind::none);
  }
  turned_.clear();
  cells_.begin_registers(block, ErrorKind::none);
  cells_.begin_local(block, ErrorKind::none);
  cells_.begin_shared(block, ErrorKind::none);
  for (const Warp& warp : block.warps)
    for (const auto& [slot, offset] : plan_.offsets) {
      Cells& cells = registers(warp);
      const size_t at = cell(slot, 0, 0);
      std::fill_n(&cells.kind[at], 32, ErrorKind::f32);
      std::fill_n(&cells.error[at], 32, offset);
      std::fill_n(&cells.bound[at], 32, std::fabs(offset));
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
    values[i] = kind == ErrorKind::f16 ? half_value(bits) : std::bit_cast<float>(bits << 16);
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
  const bool all = is_all(kinds, kind),
             may_widen = kind == ErrorKind::f32 && !is_all(kinds + 32, ErrorKind::none);
  to.be_exact();
  if (!all && !may_widen && is_all(kinds, ErrorKind::none)) return;
  if (all && in_place && parts_count == 0) {
    to.error = &cells.error[first], to.bound = &cells.bound[first], to.exact = false;
    return;
  }
  to.error = to.copied[0], to.bound = to.copied[1];
  for (size_t i = 0; i < 32; ++i) {
    const size_t at = cells.find(first + i, 32, kind, may_widen && (warp.word(slot)[i] & 0xffff) == 0);
    const bool here = at != SIZE_MAX;
    to.exact &= !here;
    to.copied[0][i] = here ? cells.error[at] : 0;
    to.copied[1][i] = here ? cells.bound[at] : 0;
    if constexpr (parts_count > 0) {
      if (here)
        std::copy_n(cells.parts.get() + at * parts_count, parts_count, to.parts[i]);
      else
        std::fill_n(to.parts[i], parts_count, 0.0f);
    }
  }
}

template <int parts_count>
std::optional<double> ErrorTrace<parts_count>::error_of(const Warp& warp, Slot slot, int half, ErrorKind kind,
                                                        int lane) {
  const Cells& cells = cells_.registers(warp);
  const size_t at = cells.find(cell(slot, half, lane), 32, kind, (warp.word(slot)[lane] & 0xffff) == 0);
  return at == SIZE_MAX ? std::nullopt : std::optional(cells.error[at]);
}

template <int parts_count>
void ErrorTrace<parts_count>::clear(Warp& warp, Slot slot, int halves, uint32_t mask) {
  ErrorKind* kinds = &registers(warp).kind[cell(slot, 0, 0)];
  if (mask == ~0u) {
    std::fill_n(kinds, 32 * halves, ErrorKind::none);
    return;
  }
  for (int half = 0; half < halves; ++half)
    each_lane(mask, [&](int lane) { kinds[32 * half + lane] = ErrorKind::none; });
}

template <int parts_count>
void ErrorTrace<parts_count>::clear(Warp& warp, const Op& op, uint32_t mask) {
  for (const Use& written : code_->signature(op).writes)
    clear(warp, written.slot, static_cast<int>(bytes_of(written.cell)) / 2, mask);
}

/// No shadow follows the word that begins there, though it came of rounded ones.
template <int parts_count>
void ErrorTrace<parts_count>::lose(Cells& cells, size_t at) {
  cells.kind[at] = ErrorKind::f32, cells.error[at] = 0;
  cells.bound[at] = std::numeric_limits<double>::infinity();
}

template <int parts_count>
void ErrorTrace<parts_count>::lose(Warp& warp, const Op& op, uint32_t mask) {
  clear(warp, op, mask);
  if (op.d == no_slot || op.d_cell != Cell::word) return;
  each_lane(mask, [&](int lane) { lose(registers(warp), cell(op.d, 0, lane)); });
}

/// Counts lanes whose operands lie in another order than their exact counterparts.
template <int parts_count>
void ErrorTrace<parts_count>::compare(Warp& warp, const Op& op, uint32_t mask) {
  Operand &a = operands_[0], &b = operands_[1];
  const ErrorKind kind = error_kind_of(op.row->sources[0]);
  gather(warp, op.s[0], 0, kind, true, a);
  gather(warp, op.s[1], 0, kind, true, b);
  uint32_t turned = 0;
  const auto order = [](double x) { return (x > 0) - (x < 0); };
  if (!a.exact || !b.exact)
    each_lane(mask, [&](int lane) {
      const double apart = a.value[lane] - b.value[lane];
      if (!std::isfinite(apart)) return;
      const bool other = order(apart) != order(apart + (a.error[lane] - b.error[lane]));
      turned |= static_cast<uint32_t>(other) << lane;
    });
  const auto count = static_cast<uint64_t>(std::popcount(turned));
  counts.turned += count;
  if (facts(op).only_selects)
    turned_[{warp.index, op.d}] = (turned_[{warp.index, op.d}] & ~mask) | turned;
  else
    counts.branches_turned += count;
}

/// By a comparison that exact operands turn the program on real numbers selects the other operand.
template <int parts_count>
void ErrorTrace<parts_count>::prepare_select(Warp& warp, const Op& op) {
  select_turned_ = 0;
  const auto found = turned_.find({warp.index, op.s[2]});
  if (found == turned_.end() || !found->second) return;
  Operand &a = operands_[0], &b = operands_[1];
  gather(warp, op.s[0], 0, ErrorKind::f32, true, a);
  gather(warp, op.s[1], 0, ErrorKind::f32, true, b);
  select_turned_ = found->second;
  each_lane(found->second, [&](int lane) {
    const auto i = static_cast<size_t>(lane);
    other_[i] = warp.mask(op.s[2]) >> lane & 1 ? b.value[i] + b.error[i] : a.value[i] + a.error[i];
  });
}
template <int parts_count>
void ErrorTrace<parts_count>::note_select(Warp& warp, const Op& op, uint32_t mask) {
  Cells& cells = registers(warp);
  each_lane(mask & select_turned_, [&](int lane) {
    const size_t at = cell(op.d, 0, lane);
    const double error = other_[static_cast<size_t>(lane)] - std::bit_cast<float>(warp.word(op.d)[lane]);
    if (cells.kind[at] == ErrorKind::none) cells.bound[at] = 0;
    cells.kind[at] = ErrorKind::f32, cells.error[at] = error;
    cells.bound[at] += plan_.inexact_share.empty() ? std::fabs(error) : 0;
  });
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
    clear(warp, op.d, op.d_cell == Cell::wide ? 4 : 2, mask);
    finish(warp, op, 0, kind, facts(op).arity, which, result, mask);
    return;
  }
  for (int half = 0; half < 2; ++half) {
    if (ptx::is_packed(row.sources[0])) {
      const int which[3] = {3 * half, 3 * half + 1, 3 * half + 2};
      finish(warp, op, half, kind, facts(op).arity, which, result, mask);
    } else {
      const int which[1] = {1 - half};
      finish(warp, op, half, kind, 1, which, result, mask);
    }
  }
}

/// x + 1.5 * 2^23 (fp64: 2^52) rounds x to an integer, which then selects a power of two, a branch, or the
/// part of x that is left: the value's own choice, as of any conversion to an integer, and no error. Without
/// this the shadow of expf, which rounds so, would lose the fraction that the choice leaves.
template <int parts_count>
void ErrorTrace<parts_count>::round_to_integer(const int* which, int arity, ErrorKind kind, Result& r) const {
  const double least = kind == ErrorKind::f64 ? 0x1.8p52 : 0x1.8p23, most = least + 0x1p11;
  for (int k = arity == 3 ? 2 : 0; k < arity; ++k) {
    const Operand& addend = operands_[static_cast<size_t>(which[k])];
    bool any = false;
    for (const double x : addend.value) any |= std::fabs(x) >= least && std::fabs(x) <= most;
    for (int i = 0; any && i < 32; ++i) {
      const double size = std::fabs(addend.value[i]);
      if (size < least || size > most || addend.error[i] != 0 || addend.bound[i] != 0) continue;
      r.error[i] = r.bound[i] = r.local[i] = 0;
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
  if (facts(op).adds && (kind == ErrorKind::f32 || kind == ErrorKind::f64))
    round_to_integer(which, arity, kind, r);
  if (!plan_.inexact_share.empty() && plan_.inexact_share[op_index(op)] > 0)
    for (int i = 0; i < 32; ++i)
      r.bound[i] += plan_.inexact_share[op_index(op)] * std::fabs(step.value[0][i] * step.value[1][i]);
  keep(warp, op, op.d, half, kind, r, mask);
  if constexpr (parts_count > 0) {
    const int own = plan_.part_of_op[op_index(op)];
    each_lane(mask, [&](int lane) {
      float* to = &registers(warp).parts[cell(op.d, half, lane) * parts_count];
      float sum[parts_count] = {};
      for (int k = 0; k < arity; ++k) {
        const Operand& from = operands_[static_cast<size_t>(which[k])];
        if (from.exact || from.bound[lane] == 0) continue;
        const auto slope = static_cast<float>(r.slope[k][lane]);
        if (!std::isfinite(slope)) continue;
        for (int p = 0; p < parts_count; ++p) sum[p] += slope * from.parts[lane][p];
      }
      if (own >= 0) sum[own] += static_cast<float>(r.local[lane]);
      std::copy_n(sum, parts_count, to);
    });
  }
}

/// Writes the shadows of a result and counts what it did. Those that are not finite end.
template <int parts_count>
void ErrorTrace<parts_count>::keep(Warp& warp, const Op& op, Slot slot, int half, ErrorKind kind, Result& r,
                                   uint32_t mask) {
  const size_t index = op_index(op), first = cell(slot, half, 0);
  if (!plan_.inexact_share.empty())
    for (int i = 0; i < 32; ++i) r.bound[i] = std::fmax(r.bound[i] - std::fabs(r.local[i]), 0);
  const ErrorMasks masks = lane_kit().error_masks(r.step(), plan_.parting, counts.largest[index]);
  Cells& cells = registers(warp);
  if ((mask & masks.finite) == ~0u) {
    std::memcpy(&cells.error[first], r.error, sizeof r.error);
    std::memcpy(&cells.bound[first], r.bound, sizeof r.bound);
    std::fill_n(&cells.kind[first], 32, kind);
  } else {
    each_lane(mask, [&](int lane) {
      const size_t at = first + static_cast<size_t>(lane);
      const bool finite = masks.finite >> lane & 1;
      if (!finite) r.local[lane] = r.error[lane] = 0, ++counts.ended;
      cells.kind[at] = finite ? kind : ErrorKind::none;
      cells.error[at] = r.error[lane], cells.bound[at] = r.bound[lane];
    });
  }
  if constexpr (parts_count > 0) return;
  EdgeSeen& seen = counts.edges[index];
  if (facts_[index].edge == EdgeKind::magnitude)
    lane_kit().value_range(r.value, true, mask, &seen.smallest, &seen.largest);
  const uint32_t kept = mask & masks.finite, rounded = kept & masks.rounded, parted = kept & masks.parted;
  counts.roundings[index] += static_cast<uint64_t>(std::popcount(rounded));
  each_lane(rounded & masks.large, [&](int lane) {
    if (r.value[lane] != 0)
      counts.largest[index] = std::max(counts.largest[index], std::fabs(r.local[lane] / r.value[lane]));
  });
  if (!parted || counts.first.op >= 0) return;
  const int lane = std::countr_zero(parted);
  const uint32_t thread = warp.index * 32 + static_cast<uint32_t>(lane);
  counts.first = {block_->linear, order_, static_cast<int32_t>(index), thread, r.value[lane], r.error[lane]};
}
template <int parts_count>
void ErrorTrace<parts_count>::before(Warp& warp, const Op& op, uint32_t) {
  using Route = typename Facts::Route;
  const Route route = facts(op).route;
  if (route == Route::arithmetic) return prepare_arithmetic(warp, op);
  if (route == Route::bits) return prepare_bits(warp, op);
  if (route == Route::matrix) return prepare_matrix(warp, op);
  if (!turned_.empty() && op.row->flow == Flow::select && op.row->result == ptx::Type::f32)
    prepare_select(warp, op);
}

template <int parts_count>
void ErrorTrace<parts_count>::after(Warp& warp, const Op& op, uint32_t mask) {
  counts.longest = std::max(counts.longest, ++order_);
  using Route = typename Facts::Route;
  switch (facts(op).route) {
    case Route::none:
      return;
    case Route::clear:
      return clear(warp, op, mask);
    case Route::lose:
      return lose(warp, op, mask);
    case Route::compare:
      return compare(warp, op, mask);
    case Route::carry:
      carry(warp, op, mask);
      if (!turned_.empty() && op.row->flow == Flow::select && op.row->result == ptx::Type::f32)
        note_select(warp, op, mask);
      return;
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
template class ErrorTrace<16>;

}  // namespace assay::vm
