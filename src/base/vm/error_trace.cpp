#include "src/base/vm/error_trace.h"

#include <bit>
#include <cmath>
#include <cstring>

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

}  // namespace

double half_value(uint32_t bits) {
  return half_values()[bits & 0xffff];
}

template <int parts_count>
auto ErrorTrace<parts_count>::facts_of(const Code& code, const Op& op) -> Facts {
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
            : !writes_value                                           ? Route::none
            : floats && op.row->real                                  ? Route::arithmetic
            : floats || flow == Flow::none || op.d_cell != Cell::word ? Route::clear
                                                                      : Route::bits;
  if (f.route == Route::arithmetic || f.route == Route::matrix)
    f.edge = edge_of(signature.form, meaning.result).kind;
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
  cells_.begin_registers(block, ErrorKind::none);
  cells_.begin_local(block, ErrorKind::none);
  cells_.begin_shared(block, ErrorKind::none);
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

/// The operand's values and shadows. An f32 whose high half came from a bf16 has that one's shadow.
template <int parts_count>
void ErrorTrace<parts_count>::gather(Warp& warp, Slot slot, int half, ErrorKind kind, Operand& to) {
  decode(warp, slot, half, kind, to.value);
  Cells& cells = registers(warp);
  const size_t first = cell(slot, half, 0);
  const auto holds = [&](size_t at, ErrorKind wanted) {
    bool all = true, any = false;
    for (int i = 0; i < 32; ++i) {
      const bool here = cells.kind[at + static_cast<size_t>(i)] == wanted;
      all &= here, any |= here;
    }
    return std::pair{all, any};
  };
  const bool widened = kind == ErrorKind::f32 && holds(first + 32, ErrorKind::bf16).second;
  const auto [all, any] = holds(first, kind);
  to.exact = !any && !widened;
  if (to.exact) {
    std::fill_n(to.error, 32, 0.0);
    std::fill_n(to.bound, 32, 0.0);
    return;
  }
  if (all && parts_count == 0) {
    std::memcpy(to.error, &cells.error[first], sizeof to.error);
    std::memcpy(to.bound, &cells.bound[first], sizeof to.bound);
    return;
  }
  for (int i = 0; i < 32; ++i) {
    size_t at = first + static_cast<size_t>(i);
    bool here = cells.kind[at] == kind;
    if (!here && widened && cells.kind[at + 32] == ErrorKind::bf16 && (warp.word(slot)[i] & 0xffff) == 0)
      here = true, at += 32;
    to.error[i] = here ? cells.error[at] : 0;
    to.bound[i] = here ? cells.bound[at] : 0;
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
  const size_t at = cell(slot, half, lane);
  if (cells.kind[at] == kind) return cells.error[at];
  const bool widened = kind == ErrorKind::f32 && cells.kind[at + 32] == ErrorKind::bf16 &&
                       (warp.word(slot)[lane] & 0xffff) == 0;
  return widened ? std::optional(cells.error[at + 32]) : std::nullopt;
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

// A packed row means the same on each half; a packed conversion (sources f32) takes its high half from source
// 0.
template <int parts_count>
void ErrorTrace<parts_count>::prepare_arithmetic(Warp& warp, const Op& op) {
  const Row& row = *op.row;
  const int arity = arity_of(row);
  for (int k = 0; k < arity; ++k) {
    const ptx::Type type = row.sources[static_cast<size_t>(k)];
    gather(warp, op.s[k], 0, error_kind_of(type), operands_[static_cast<size_t>(k)]);
    if (ptx::is_packed(type))
      gather(warp, op.s[k], 1, error_kind_of(type), operands_[static_cast<size_t>(3 + k)]);
  }
}

template <int parts_count>
void ErrorTrace<parts_count>::note_argument(const Op& op, uint32_t mask) {
  const EdgeKind kind = facts(op).edge;
  if (parts_count > 0 || kind == EdgeKind::none || kind == EdgeKind::magnitude) return;
  const bool signed_argument = kind == EdgeKind::exponent || kind == EdgeKind::positive;
  for (const size_t which :
       {size_t{0},
        ptx::is_packed(op.row->result) ? size_t{ptx::is_packed(op.row->sources[0]) ? 3u : 1u} : size_t{0}}) {
    double value[32];
    for (int i = 0; i < 32; ++i)
      value[i] = signed_argument ? operands_[which].value[i] : std::fabs(operands_[which].value[i]);
    note_edge(op, value, mask);
  }
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
    finish(warp, op, 0, kind, arity_of(row), which, result, mask);
    return;
  }
  for (int half = 0; half < 2; ++half) {
    if (ptx::is_packed(row.sources[0])) {
      const int which[3] = {3 * half, 3 * half + 1, 3 * half + 2};
      finish(warp, op, half, kind, arity_of(row), which, result, mask);
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
    for (int i = 0; i < 32; ++i) {
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
  RealStep step{};
  const double* bounds[3] = {};
  step.result = r.value;
  step.local = r.local;
  for (int k = 0; k < arity; ++k) {
    const Operand& from = operands_[static_cast<size_t>(which[k])];
    step.value[k] = from.value, step.error[k] = from.error, step.slope[k] = r.slope[k];
    bounds[k] = from.bound;
  }
  op.row->real(step);
  lane_kit().combine_errors(step, arity, bounds, r.error, r.bound);
  if (facts(op).adds && (kind == ErrorKind::f32 || kind == ErrorKind::f64))
    round_to_integer(which, arity, kind, r);
  Cells& cells = registers(warp);
  const size_t first = cell(op.d, half, 0);
  bool finite = mask == ~0u;
  if (finite)
    for (int i = 0; i < 32; ++i) finite &= std::fabs(r.error[i]) <= 0x1.fffffffffffffp+1023;
  if (finite) {
    std::memcpy(&cells.error[first], r.error, sizeof r.error);
    std::memcpy(&cells.bound[first], r.bound, sizeof r.bound);
    std::fill_n(&cells.kind[first], 32, kind);
  } else {
    each_lane(mask, [&](int lane) {
      const size_t at = first + static_cast<size_t>(lane);
      const bool good = std::isfinite(r.error[lane]);
      if (!good) r.local[lane] = r.error[lane] = 0, ++counts.ended;
      cells.kind[at] = good ? kind : ErrorKind::none;
      cells.error[at] = r.error[lane], cells.bound[at] = r.bound[lane];
    });
  }
  if constexpr (parts_count > 0) {
    const int own = plan_.part_of_op[op_index(op)];
    each_lane(mask, [&](int lane) {
      float* to = &cells.parts[(first + static_cast<size_t>(lane)) * parts_count];
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
  note(warp, op, r, mask);
}

/// Smallest and largest of the active lanes' values. NaN counts for nothing.
template <int parts_count>
void ErrorTrace<parts_count>::note_edge(const Op& op, const double* value, uint32_t mask) {
  EdgeSeen& seen = counts.edges[op_index(op)];
  double smallest = seen.smallest, largest = seen.largest;
  for (int i = 0; i < 32; ++i) {
    const double x = mask >> i & 1 ? value[i] : std::nan("");
    smallest = x < smallest ? x : smallest;
    largest = x > largest ? x : largest;
  }
  seen.smallest = smallest, seen.largest = largest;
}

template <int parts_count>
void ErrorTrace<parts_count>::note(Warp& warp, const Op& op, const Result& r, uint32_t mask) {
  if constexpr (parts_count > 0) return;
  uint32_t rounded = 0, parted = 0;
  for (int i = 0; i < 32; ++i) {
    rounded |= static_cast<uint32_t>(r.local[i] != 0) << i;
    parted |=
        static_cast<uint32_t>(std::fabs(r.error[i]) > plan_.parting * std::fabs(r.value[i] + r.error[i]))
        << i;
  }
  rounded &= mask, parted &= mask;
  const size_t index = op_index(op);
  if (facts_[index].edge == EdgeKind::magnitude) {
    double size[32];
    for (int i = 0; i < 32; ++i) size[i] = std::fabs(r.value[i]);
    note_edge(op, size, mask);
  }
  counts.roundings[index] += static_cast<uint64_t>(std::popcount(rounded));
  double largest = counts.largest[index];
  each_lane(rounded, [&](int lane) {
    if (r.value[lane] != 0) largest = std::max(largest, std::fabs(r.local[lane] / r.value[lane]));
  });
  counts.largest[index] = largest;
  if (!parted || counts.first.op >= 0) return;
  const int lane = std::countr_zero(parted);
  counts.first = {block_->linear,
                  order_,
                  static_cast<int32_t>(index),
                  warp.index * 32 + static_cast<uint32_t>(lane),
                  r.value[lane],
                  r.error[lane]};
}

template <int parts_count>
void ErrorTrace<parts_count>::before(Warp& warp, const Op& op, uint32_t) {
  using Route = typename Facts::Route;
  const Route route = facts(op).route;
  if (route == Route::arithmetic) return prepare_arithmetic(warp, op);
  if (route == Route::bits) return prepare_bits(warp, op);
  if (route == Route::matrix) return prepare_matrix(warp, op);
}

template <int parts_count>
void ErrorTrace<parts_count>::after(Warp& warp, const Op& op, uint32_t mask) {
  ++order_;
  using Route = typename Facts::Route;
  switch (facts(op).route) {
    case Route::none:
      return;
    case Route::clear:
      return clear(warp, op, mask);
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
template class ErrorTrace<16>;

}  // namespace assay::vm
