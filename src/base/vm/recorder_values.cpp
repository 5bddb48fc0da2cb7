// Registers: arithmetic and everything that only carries bits between them.
#include <algorithm>
#include <bit>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/recorder.h"

namespace assay::vm {
namespace {

bool is_wide(ptx::Type t) {
  return cell_of(t) == Cell::wide;
}

uint64_t half_of(ptx::Type t, uint64_t bits, int half) {
  return ptx::is_packed(t) && half ? bits >> 16 : bits;
}

/// Quick test over a word cell: some active lane is not finite in format `t`.
bool any_nonfinite(ptx::Type t, const uint32_t* words, uint32_t mask) {
  const uint32_t exponent = t == ptx::Type::f32 || t == ptx::Type::tf32    ? 0x7f800000u
                            : t == ptx::Type::f16 || t == ptx::Type::f16x2 ? 0x7c00u
                                                                           : 0x7f80u;
  const bool both = ptx::is_packed(t);
  uint32_t found = 0;
  for (int lane = 0; lane < 32; lane++) {
    const uint32_t low = (words[lane] & exponent) == exponent,
                   high = (words[lane] >> 16 & exponent) == exponent;
    found |= (low | (both ? high : 0)) << lane;
  }
  return (found & mask) != 0;
}

}  // namespace

void Recorder::arithmetic(Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  const bool wide = known.wide_result;
  Dependence united[32];
  each_lane(mask, [&](int lane) {
    Dependence d = kNothing;
    for (int i = 0; i < op.source_count; i++)
      if ((known.word_sources | known.wide_sources) >> i & 1)
        d = run_->provenance.unite(d, dependence(warp, op.s[i], lane, known.wide_sources >> i & 1));
    united[lane] = d;
  });
  bool found = false;
  if (ptx::is_float(op.row->result)) {
    if (wide)
      each_lane(mask, [&](int lane) { found |= is_nonfinite(op.row->result, warp.wide(op.d)[lane]); });
    else
      found = any_nonfinite(op.row->result, warp.word(op.d), mask);
  }
  if (found) return log_results(warp, op, mask, united);
  each_lane(mask, [&](int lane) {
    ShadowCell* c = cells(warp, op.d, lane, wide);
    for (int half = 0; half < (wide ? 4 : 2); half++) c[half] = {0, united[lane]};
  });
}

void Recorder::log_results(Warp& warp, const Op& op, uint32_t mask, const Dependence* united) {
  const ptx::Type type = op.row->result;
  const bool wide = is_wide(type);
  each_lane(mask, [&](int lane) {
    const uint64_t result = wide ? warp.wide(op.d)[lane] : warp.word(op.d)[lane];
    Tag tags[2] = {0, 0};
    for (int half = 0; half < (ptx::is_packed(type) ? 2 : 1); half++)
      if (is_nonfinite(type, half_of(type, result, half)))
        tags[half] = log_result(warp, op, lane, half, united[lane]);
    ShadowCell* c = cells(warp, op.d, lane, wide);
    for (int half = 0; half < (wide ? 4 : 2); half++)
      c[half] = {ptx::is_packed(type) ? tags[half] : tags[0], united[lane]};
  });
}

/// Logs lane's result (its `half` of a packed one) with the source values that stood before the op.
Tag Recorder::log_result(Warp& warp, const Op& op, int lane, int half, Dependence united) {
  const ptx::Type type = op.row->result;
  LoggedEvent e = event_at(warp, op, lane);
  e.result_bits = half_of(type, is_wide(type) ? warp.wide(op.d)[lane] : warp.word(op.d)[lane], half);
  e.result_type = type;
  e.dependence = united;
  LoggedOperand operands[4];
  int count = 0;
  bool source_nan = false, source_infinite = false;
  for (int i = 0; i < op.source_count; i++) {
    const ptx::Type t = op.row->sources[i];
    if (op.s[i] == no_slot || !ptx::is_float(t)) continue;
    LoggedOperand& o = operands[count++];
    o.bits = half_of(t, before_[i][lane], half);
    o.type = t;
    o.position = static_cast<uint8_t>(i);
    o.dependence = dependence(warp, op.s[i], lane, is_wide(t));
    if (!is_nonfinite(t, o.bits)) continue;
    (is_nan(t, o.bits) ? source_nan : source_infinite) = true;
    o.tag = ptx::is_packed(t) ? cells(warp, op.s[i], lane)[half].tag : tag(warp, op.s[i], lane, is_wide(t));
  }
  e.born = is_nan(type, e.result_bits) ? !source_nan : !source_nan && !source_infinite;
  return log(e, operands, count);
}

// cvt.rn.bf16x2.f32 d, a, b: a goes to the high half, b to the low one.
void Recorder::packed_convert(Warp& warp, const Op& op, uint32_t mask) {
  const ptx::Type type = op.row->result;
  each_lane(mask, [&](int lane) {
    ShadowCell result[2];
    for (int half = 0; half < 2; half++) {
      const int i = 1 - half;
      const uint64_t bits = warp.word(op.d)[lane] >> (16 * half) & 0xffff;
      LoggedOperand o{before_[i][lane],
                      ptx::Type::f32,
                      static_cast<uint8_t>(i),
                      0,
                      0,
                      dependence(warp, op.s[i], lane, false)};
      result[half].dependence = o.dependence;
      if (!is_nonfinite(type, bits)) continue;
      LoggedEvent e = event_at(warp, op, lane);
      e.result_bits = bits;
      e.result_type = type;
      e.dependence = o.dependence;
      e.born = !is_nonfinite(ptx::Type::f32, o.bits);
      if (!e.born) o.tag = tag(warp, op.s[i], lane, false);
      result[half].tag = log(e, &o, 1);
    }
    ShadowCell* c = cells(warp, op.d, lane);
    c[0] = result[0], c[1] = result[1];
  });
}

void Recorder::clear(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.d_cell == Cell::wide;
  each_lane(mask, [&](int lane) {
    for (int half = 0; half < (wide ? 4 : 2); half++) cells(warp, op.d, lane, wide)[half] = {};
  });
}

void Recorder::move(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.d_cell == Cell::wide;
  each_lane(mask, [&](int lane) {
    const ShadowCell* from = cells(warp, op.s[0], lane, wide);
    ShadowCell* to = cells(warp, op.d, lane, wide);
    for (int half = 0; half < (wide ? 4 : 2); half++) to[half] = from[half];
  });
}

void Recorder::select(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.d_cell == Cell::wide;
  const uint32_t first = warp.mask(op.s[2]);
  const std::string& opcode = opcode_of(*code_, op);  // the row knows only the width
  const ptx::Type type = opcode.ends_with(".f32")   ? ptx::Type::f32
                         : opcode.ends_with(".f64") ? ptx::Type::f64
                                                    : ptx::Type::none;
  each_lane(mask, [&](int lane) {
    const int chosen = first >> lane & 1 ? 0 : 1;
    const ShadowCell* from = cells(warp, op.s[chosen], lane, wide);
    ShadowCell* to = cells(warp, op.d, lane, wide);
    for (int half = 0; half < (wide ? 4 : 2); half++) to[half] = from[half];
    // An infinity or NaN that no instruction made (a literal: logf(0), the special cases of a library) enters
    // here: the choice is where it can be seen, not the first use.
    const uint64_t bits = wide ? warp.wide(op.d)[lane] : warp.word(op.d)[lane];
    if (to[0].tag || type == ptx::Type::none || !is_nonfinite(type, bits)) return;
    LoggedEvent e = event_at(warp, op, lane);
    e.result_bits = bits;
    e.result_type = type;
    e.dependence = to[0].dependence;
    const LoggedOperand literal{bits, type, static_cast<uint8_t>(chosen), 0, 0, to[0].dependence};
    to[0].tag = log(e, &literal, 1);
    for (int half = 1; half < (wide ? 4 : 2); half++) to[half].tag = to[0].tag;
  });
}

// mov.b32 d, {lo, hi} and mov.b64 d, {..}: each element fills its share of the destination's halves.
void Recorder::pack(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = op.d_cell == Cell::wide;
  const int halves = wide ? 4 : 2, share = halves / op.slot_count;  // 0: bytes
  each_lane(mask, [&](int lane) {
    ShadowCell result[4];
    for (int half = 0; half < halves; half++) {
      if (share > 0) {
        result[half] = cells(warp, op.slots[half / share], lane)[half % share];
      } else {
        const ShadowCell a = cells(warp, op.slots[2 * half], lane)[0],
                         b = cells(warp, op.slots[2 * half + 1], lane)[0];
        result[half] = {a.tag ? a.tag : b.tag, run_->provenance.unite(a.dependence, b.dependence)};
      }
    }
    for (int half = 0; half < halves; half++) cells(warp, op.d, lane, wide)[half] = result[half];
  });
}

void Recorder::unpack(Warp& warp, const Op& op, uint32_t mask) {
  const bool wide = ptx::bytes_of(op.type) == 8;
  const int halves = wide ? 4 : 2, share = halves / op.slot_count;
  each_lane(mask, [&](int lane) {
    ShadowCell source[4];
    for (int half = 0; half < halves; half++) source[half] = cells(warp, op.s[0], lane, wide)[half];
    for (int element = 0; element < op.slot_count; element++) {
      if (op.slots[element] == no_slot) continue;  // "_"
      ShadowCell* to = cells(warp, op.slots[element], lane);
      to[0] = share > 0 ? source[element * share] : source[element / 2];
      to[1] = share > 1 ? source[element * share + 1] : ShadowCell{};
    }
  });
}

// PTX ISA, movmatrix: half `h` of lane l is element (2 (l mod 4) + h, l / 4) of the source, which lane
// 4 (2 (l mod 4) + h) + l / 8 holds in half (l / 4) mod 2.
void Recorder::move_matrix(Warp& warp, const Op& op) {
  ShadowCell moved[32][2];
  for (int lane = 0; lane < 32; lane++)
    for (int half = 0; half < 2; half++)
      moved[lane][half] = cells(warp, op.s[0], 4 * (2 * (lane % 4) + half) + lane / 8)[lane / 4 % 2];
  for (int lane = 0; lane < 32; lane++) std::copy_n(moved[lane], 2, cells(warp, op.d, lane));
}

void Recorder::shuffle(Warp& warp, const Op& op, uint32_t mask) {
  ShadowCell source[32][2];
  for (int lane = 0; lane < 32; lane++)
    for (int half = 0; half < 2; half++) source[lane][half] = cells(warp, op.s[0], lane)[half];
  each_lane(mask, [&](int lane) {
    ShadowCell* to = cells(warp, op.d, lane);
    for (int half = 0; half < 2; half++) to[half] = source[warp.lane_source[lane] & 31][half];
  });
}

// shl and shr by 16 move a half; any other distance mixes both.
void Recorder::shift_halves(Warp& warp, const Op& op, uint32_t mask) {
  if (facts(op).wide_result) return bits(warp, op, mask);
  const bool left = facts(op).bits == OpFacts::Bits::shift_left;
  each_lane(mask, [&](int lane) {
    const ShadowCell low = cells(warp, op.s[0], lane)[0], high = cells(warp, op.s[0], lane)[1];
    ShadowCell* to = cells(warp, op.d, lane);
    if (before_[1][lane] == 16) {
      to[0] = left ? ShadowCell{} : high;
      to[1] = left ? low : ShadowCell{};
    } else {
      to[0] = to[1] = {low.tag ? low.tag : high.tag, run_->provenance.unite(low.dependence, high.dependence)};
    }
  });
}

// Bit operations: and, or, xor and lop3 keep halves apart (and: a half masked away is gone), prmt moves
// bytes; the rest depends on every source bit. A result may be read as a float, so the first tag is kept.
// Most are integer arithmetic on values that depend on nothing.
void Recorder::bits(Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  each_lane(mask, [&](int lane) {
    uint32_t any = 0;
    for (int i = 0; i < op.source_count; i++) {
      if (!((known.word_sources | known.wide_sources) >> i & 1)) continue;
      const bool wide = known.wide_sources >> i & 1;
      const ShadowCell* c = cells(warp, op.s[i], lane, wide);
      for (int half = 0; half < (wide ? 4 : 2); half++) any |= c[half].tag | c[half].dependence;
    }
    ShadowCell result[4];  // the destination may be a source
    const int halves = known.wide_result ? 4 : 2;
    for (int half = 0; any && half < halves; half++) result[half] = bits_of_half(warp, op, known, lane, half);
    std::copy_n(result, halves, cells(warp, op.d, lane, known.wide_result));
  });
}

/// What half `to` of lane's result takes from the sources.
ShadowCell Recorder::bits_of_half(Warp& warp, const Op& op, const OpFacts& known, int lane, int to) {
  using Bits = OpFacts::Bits;
  const bool by_half = known.bits == Bits::by_half || known.bits == Bits::masking;
  ShadowCell result;
  for (int i = 0; i < op.source_count; i++) {
    if (!((known.word_sources | known.wide_sources) >> i & 1)) continue;
    const bool wide = known.wide_sources >> i & 1;
    const ShadowCell* c = cells(warp, op.s[i], lane, wide);
    for (int from = 0; from < (wide ? 4 : 2); from++) {
      if (by_half && from != to) continue;
      if (known.bits == Bits::masking && (before_[1 - i][lane] >> (16 * from) & 0xffff) == 0) continue;
      if (known.bits == Bits::permute) {
        const uint64_t selector = before_[2][lane] >> (8 * to);
        auto picks = [&](uint64_t nibble) {
          return i < 2 && static_cast<int>((nibble & 7) / 2) == 2 * i + from;
        };
        if (!picks(selector & 15) && !picks(selector >> 4 & 15)) continue;
      }
      if (!result.tag) result.tag = c[from].tag;
      result.dependence = run_->provenance.unite(result.dependence, c[from].dependence);
    }
  }
  return result;
}

}  // namespace assay::vm
