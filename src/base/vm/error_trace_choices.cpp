// What a strict trace knows of choices: which results exact operands leave as they are, which comparisons
// they turn, and what then comes of selections and guards.
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_word(const Op& op, int source) {
  return cell_of(op.row->sources[static_cast<size_t>(source)]) == Cell::word;
}

}  // namespace

/// Lanes in which the register is not what it seems.
uint32_t ErrorTrace::not_plain(const Warp& warp, const Use& read, uint32_t mask) {
  if (read.cell == Cell::none || read.cell == Cell::mask) return 0;
  const Cells& cells = registers(warp);
  const size_t first = cell(read.slot, 0, 0);
  const ErrorKind* const kinds = &cells.kind[first];
  uint32_t found = 0;
  for (uint32_t half = 0; half < bytes_of(read.cell) / 2; ++half) {
    if (cells.plain[first / Cells::kRow + half] || is_all(kinds + 32 * half, ErrorKind::none)) continue;
    for (uint32_t lane = 0; lane < 32; ++lane)
      found |= static_cast<uint32_t>(kinds[32 * half + lane] != ErrorKind::none) << lane;
  }
  return found & mask;
}
uint32_t ErrorTrace::not_plain(const Warp& warp, const Op& op, uint32_t mask) {
  if (const Facts& f = facts(op); are_plain(warp, f, f.read_count)) return 0;
  uint32_t found = 0;
  for (const Use& read : code_->signature(op).reads) found |= not_plain(warp, read, mask);
  return found;
}

/// What the register of a source would hold if its values were exact, rounded once, and `step` places of its
/// format further where they are not the machine's; nothing where one of them is not followed.
std::optional<uint64_t> ErrorTrace::exact_bits(const Warp& warp, const Op& op, int source, int lane,
                                               int step) {
  const Slot slot = op.s[source];
  const Cells& cells = registers(warp);
  const size_t first = cell(slot, 0, lane);
  const auto of = [&](size_t at, Dtype dtype, uint64_t bits) {
    bool exact = cells.error[at] == 0 && cells.bound[at] == 0;
    for (int p = 0; p < plan_.parts; ++p) exact = exact && cells.part(p)[at] == 0;
    if (exact) return bits;
    return encode(dtype, assay::decode(dtype, bits) + cells.error[at]) + static_cast<uint64_t>(step);
  };
  if (!is_word(op, source)) {
    const size_t at = cells.find(first, 32, ErrorKind::f64, false);
    if (at == Cells::unfollowed) return std::nullopt;
    const uint64_t bits = warp.wide(slot)[lane];
    return at == Cells::exact ? bits : of(at, Dtype::fp64, bits);
  }
  const uint32_t word = warp.word(slot)[lane];
  if (cells.find(first, 32, ErrorKind::f32, false) == first) return of(first, Dtype::fp32, word);
  uint64_t made = word;
  for (int half = 0; half < 2; ++half) {
    const size_t at = cell(slot, half, lane);
    if (cells.kind[at] == ErrorKind::none) continue;
    if (!is_shadowed(cells.kind[at]) || halves_of(cells.kind[at]) != 1) return std::nullopt;
    const uint64_t bits = of(at, dtype_of(cells.kind[at]), word >> (16 * half) & 0xffff) & 0xffff;
    made = (made & ~(uint64_t{0xffff} << (16 * half))) | bits << (16 * half);
  }
  return made;
}

/// Its sources, of lanes in `asked` the exact ones; clears lanes of `known` where they are not.
SourceBits ErrorTrace::exact_sources(const Warp& warp, const Op& op, uint32_t asked, int step,
                                     SourceBits sources, uint32_t& known) {
  for (int k = 0; k < op.source_count; ++k) {
    const Cell cell = op.s[k] == no_slot ? Cell::none : cell_of(op.row->sources[static_cast<size_t>(k)]);
    if (cell == Cell::mask || cell == Cell::none) continue;
    each_lane(asked, [&](int lane) {
      const auto bits = exact_bits(warp, op, k, lane, step);
      if (bits)
        sources.value[static_cast<size_t>(k)][static_cast<size_t>(lane)] = *bits;
      else
        known &= ~(1u << lane);
    });
  }
  return sources;
}

/// Before the op runs: the lanes in which it gives the same on exact operands, and next to them: else its
/// result holds something of what was rounded.
void ErrorTrace::prepare_exact_result(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t known = not_plain(warp, op, mask);
  unchanged_ = mask & ~known;
  if (!known || (!op.lanes && !op.row->mask)) return;
  const uint32_t asked = known;
  const SourceBits machine(warp, op);
  const LaneBits plain = result_of(op, machine);
  for (const int step : {0, 1, -1}) {
    const LaneBits exact = result_of(op, exact_sources(warp, op, asked, step, machine, known));
    for (size_t lane = 0; lane < 32; ++lane)
      if (plain[lane] != exact[lane]) known &= ~(1u << lane);
  }
  unchanged_ |= known;
}

/// Of an op that no shadow passes.
void ErrorTrace::lose(Warp& warp, const Op& op, uint32_t mask) {
  mark(warp, op, ErrorKind::none, mask & unchanged_);
  mark(warp, op, ErrorKind::lost, mask & ~unchanged_);
}

/// Lanes in which the order of the exact operands decides otherwise than the machine's, or might: numbers
/// that the machine has alike leave many a comparison as it is, whichever is the larger one.
uint32_t ErrorTrace::turned_lanes(const Op& op, ErrorKind kind, const Operand& a, const Operand& b,
                                  uint32_t mask) const {
  if (a.exact && b.exact) return 0;
  uint32_t lost = 0;
  alignas(64) std::byte machine[256] = {}, exact[256] = {}, zeros[256] = {};
  const size_t bytes = kind == ErrorKind::f64 ? sizeof(double) : sizeof(uint32_t);
  const auto put_order = [&](std::byte* to, int lane, double x) {
    const uint64_t bits = encode(dtype_of(kind), (x > 0) - (x < 0));
    std::memcpy(to + bytes * static_cast<size_t>(lane), &bits, bytes);
  };
  each_lane(mask, [&](int lane) {
    const double apart = a.value[lane] - b.value[lane];
    if (std::isinf(a.bound[lane] + b.bound[lane])) lost |= 1u << lane;
    if (!std::isfinite(apart)) return;
    put_order(machine, lane, apart), put_order(exact, lane, apart + (a.error[lane] - b.error[lane]));
  });
  return lost | (mask & (op.row->mask(machine, zeros) ^ op.row->mask(exact, zeros)));
}

/// Floats by their exact difference, all else by bits.
void ErrorTrace::compare(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t turned = mask & ~unchanged_;
  const ErrorKind kind = error_kind_of(op.row->sources[0]);
  if (kind != ErrorKind::none && op.row->sources[1] == op.row->sources[0]) {
    gather(warp, op.s[0], 0, kind, true, mask, operands_[0]);
    gather(warp, op.s[1], 0, kind, true, mask, operands_[1]);
    turned = turned_lanes(op, kind, operands_[0], operands_[1], mask);
  }
  counts.turned += static_cast<uint64_t>(std::popcount(turned));
  for (const Use& written : code_->signature(op).writes) {
    if (written.cell != Cell::mask) continue;
    uint32_t& unsure = unsure_(warp, written.slot);
    unsure = (unsure & ~mask) | turned | (op.boolean == BooleanOp::none ? 0 : read_unsure_ & mask);
    any_unsure_ |= unsure != 0;
  }
}

/// An op under a guard that exact operands may turn: lanes that do not run it might have.
void ErrorTrace::guarded(Warp& warp, const Op& op, uint32_t active) {
  const uint32_t unsure = any_unsure_ ? unsure_(warp, op.guard) & active : 0;
  if (!unsure) return;
  if (facts(op).decides) return go_astray(unsure);
  const uint32_t runs = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
  guard_unsure_ = unsure & runs;
  lose_results(warp, op, unsure & ~runs);
}

void ErrorTrace::note_predicates(const Warp& warp, const Op& op) {
  for (const Use& read : code_->signature(op).reads)
    if (read.cell == Cell::mask && read.purpose != Purpose::guard) read_unsure_ |= unsure_(warp, read.slot);
}

/// Registers that say where an op reads or goes.
void ErrorTrace::note_addresses(Warp& warp, const Op& op, uint32_t mask) {
  const Signature& signature = code_->signature(op);
  for (size_t i = 0; i < signature.reads.size(); ++i)
    if (says_where(signature, i)) misplaced_ |= not_plain(warp, signature.reads[i], mask);
  if (misplaced_ && facts(op).decides) go_astray(misplaced_);
}

/// By a comparison that exact operands turn, the program on real numbers selects the other operand.
void ErrorTrace::prepare_select(Warp& warp, const Op& op, uint32_t mask) {
  selected_ = 0;
  if (!read_unsure_) return;
  other_kind_ = error_kind_of(op.row->result);
  if (other_kind_ == ErrorKind::none && op.d_cell == Cell::word)
    for (const Slot slot : {op.s[0], op.s[1]})
      for (int lane = 0; lane < 32; ++lane)
        if (is_shadowed(registers(warp).kind[cell(slot, 0, lane)]))
          other_kind_ = registers(warp).kind[cell(slot, 0, lane)];
  if (other_kind_ == ErrorKind::none || ptx::is_packed(op.row->result) || halves_of(other_kind_) == 4) return;
  for (size_t k = 0; k < 2; ++k) gather(warp, op.s[k], 0, other_kind_, false, ~0u, operands_[k]);
  each_lane(mask & read_unsure_, [&](int lane) {
    const bool upper =
        halves_of(other_kind_) == 1 && (registers(warp).kind[cell(op.s[0], 1, lane)] != ErrorKind::none ||
                                        registers(warp).kind[cell(op.s[1], 1, lane)] != ErrorKind::none);
    if (!upper && std::isfinite(other_operand(warp, op, lane).bound[lane])) selected_ |= 1u << lane;
  });
}
void ErrorTrace::note_select(Warp& warp, const Op& op, uint32_t mask) {
  Cells& cells = registers(warp);
  alignas(64) double values[32];
  if (selected_) decode(warp, op.d, 0, other_kind_, values);
  mark(warp, op, ErrorKind::lost, mask & ~selected_);
  for (int half = 0; half < 2; ++half) cells.touch_row(cell(op.d, half, 0));
  each_lane(mask & selected_, [&](int lane) {
    const Operand& other = other_operand(warp, op, lane);
    const size_t at = cell(op.d, 0, lane);
    for (int half = 0; half < 2; ++half) cells.kind[cell(op.d, half, lane)] = ErrorKind::none;
    for (int half = 1; half < halves_of(other_kind_); ++half)
      cells.kind[cell(op.d, half, lane)] = ErrorKind::tail;
    cells.kind[at] = other_kind_, cells.bound[at] = other.bound[lane];
    cells.error[at] = (other.value[lane] - values[lane]) + other.error[lane];
    for (int p = 0; p < plan_.parts; ++p) cells.part(p)[at] = other.part[p][lane];
  });
}

/// Whatever it writes to registers.
void ErrorTrace::lose_results(Warp& warp, const Op& op, uint32_t lanes) {
  if (!lanes) return;
  mark(warp, op, ErrorKind::lost, lanes);
  for (const Use& written : code_->signature(op).writes)
    if (written.cell == Cell::mask) unsure_(warp, written.slot) |= lanes, any_unsure_ = true;
}

/// Behind an op: what unsure predicates and lost addresses make of its results.
void ErrorTrace::follow_predicates(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  const uint32_t guard = std::exchange(guard_unsure_, 0), read = std::exchange(read_unsure_, 0),
                 misplaced = std::exchange(misplaced_, 0);
  const Flow flow = code_->signature(op).flow();
  const bool compares = f.follow == &ErrorTrace::compare;
  for (const Use& written : code_->signature(op).writes)
    if (written.cell == Cell::mask && !compares) unsure_(warp, written.slot) &= ~mask;
  if (astray_) return lose_results(warp, op, ~0u);
  const bool selects = flow == Flow::select && f.follow == &ErrorTrace::carry;
  if (selects && read) note_select(warp, op, mask & read);
  const uint32_t from_predicates = selects || compares ? 0 : mask & read;
  lose_results(warp, op, guard | misplaced | (flow == Flow::vote && read ? mask : from_predicates));
}

void ErrorTrace::go_astray(uint32_t lanes) {
  if (!astray_) counts.branches_turned += static_cast<uint64_t>(std::popcount(lanes));
  astray_ = true;
}

}  // namespace assay::vm
