// Registers: arithmetic and everything that only carries bits between them.
#include <algorithm>
#include <bit>

#include "src/base/vm/each_lane.h"
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

void Recorder::keep_sources(const Warp& warp, const Op& op, uint32_t) {
  const OpFacts& known = facts(op);
  each_lane(known.sources(), [&](int i) {
    if (known.is_wide(i))
      std::copy_n(warp.wide(op.s[i]), 32, before_[i].begin());
    else
      std::copy_n(warp.word(op.s[i]), 32, before_[i].begin());
  });
}

// A conversion that packs two floats (cvt.rn.bf16x2.f32 d, a, b: a to the high half, b to the low one) makes
// each half of its own source.
void Recorder::arithmetic(const Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  const ptx::Type type = op.row->result;
  const bool packed = ptx::is_packed(type), narrows = packed && op.row->sources[0] == ptx::Type::f32;
  bool logs = ptx::is_float(type);
  if (logs && !known.wide_result) logs = any_nonfinite(type, warp.word(op.d), mask);
  each_lane(mask, [&](int lane) {
    ProvenanceCell made[2];
    for (int half = 0; half < (packed ? 2 : 1); half++) {
      const uint32_t sources = narrows ? known.sources() & 2u >> half : known.sources();
      if (half == 0 || narrows)
        each_lane(sources, [&](int i) {
          const Dependence source = united(warp, op.s[i], 0, known.is_wide(i) ? 4 : 2, lane).dependence;
          made[half].dependence = run_->provenance.unite(made[half].dependence, source);
        });
      else
        made[half].dependence = made[0].dependence;
      if (logs) made[half].tag = log_result(warp, op, lane, half, sources, made[half].dependence);
    }
    for (int half = 0; half < known.halves(); half++) cell(warp, op.d, half, lane) = made[packed ? half : 0];
  });
}

/// Logs lane's result (its `half` of a packed one) with the source values that stood before the op; 0: it is
/// finite.
Tag Recorder::log_result(const Warp& warp, const Op& op, int lane, int half, uint32_t sources,
                         Dependence united_sources) {
  const ptx::Type type = op.row->result;
  const uint64_t bits = is_wide(type) ? warp.wide(op.d)[lane] : warp.word(op.d)[lane];
  const LoggedEvent e = event_at(warp, op, lane, type, half_of(type, bits, half), united_sources);
  if (!is_nonfinite(type, e.result_bits)) return 0;
  LoggedOperand operands[4];
  int count = 0;
  each_lane(sources, [&](int i) {
    const ptx::Type t = op.row->sources[i];
    if (!ptx::is_float(t)) return;
    const ProvenanceCell whole = united(warp, op.s[i], 0, is_wide(t) ? 4 : 2, lane);
    operands[count++] = {half_of(t, before_[i][lane], half),
                         t,
                         static_cast<uint8_t>(i),
                         0,
                         ptx::is_packed(t) ? cell(warp, op.s[i], half, lane).tag : whole.tag,
                         whole.dependence};
  });
  return log(e, operands, count);
}

// An infinity or NaN that no instruction made (a literal: logf(0), the special cases of a library) enters
// where it is chosen: the choice is where it can be seen, not the first use.
void Recorder::log_chosen(const Warp& warp, const Op& op, uint32_t mask) {
  const ptx::Type type = signature(op).form.type();  // the row knows only the width
  if (!ptx::is_float(type)) return;
  each_lane(mask, [&](int lane) {
    const ProvenanceCell chosen = cell(warp, op.d, 0, lane);
    const uint64_t bits = is_wide(type) ? warp.wide(op.d)[lane] : warp.word(op.d)[lane];
    if (chosen.tag || !is_nonfinite(type, bits)) return;
    const auto position = static_cast<uint8_t>(warp.mask(op.s[2]) >> lane & 1 ? 0 : 1);
    LoggedOperand literal{bits, type, position, 0, 0, chosen.dependence};
    const Tag tag = log(event_at(warp, op, lane, type, bits, chosen.dependence), &literal, 1);
    for (int half = 0; half < facts(op).halves(); half++) cell(warp, op.d, half, lane).tag = tag;
  });
}

// Bit operations: and, or, xor and lop3 keep halves apart (and: a half masked away is gone), prmt moves
// bytes, shifts of a word by 16 move a half; the rest depends on every source bit. A result may be read as a
// float, so the first tag is kept. Most are integer arithmetic on values that depend on nothing.
void Recorder::bits(const Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  each_lane(mask, [&](int lane) {
    uint32_t any = 0;
    each_lane(known.sources(), [&](int i) {
      for (int half = 0; half < (known.is_wide(i) ? 4 : 2); half++) {
        const ProvenanceCell& c = cell(warp, op.s[i], half, lane);
        any |= c.tag | c.dependence;
      }
    });
    ProvenanceCell result[4];  // the destination may be a source
    for (int half = 0; any && half < known.halves(); half++)
      result[half] = bits_of_half(warp, op, known, lane, half);
    for (int half = 0; half < known.halves(); half++) cell(warp, op.d, half, lane) = result[half];
  });
}

/// What half `to` of lane's result takes from the sources.
ProvenanceCell Recorder::bits_of_half(const Warp& warp, const Op& op, const OpFacts& known, int lane,
                                      int to) {
  using Bits = OpFacts::Bits;
  const bool by_half = known.bits == Bits::by_half || known.bits == Bits::masking;
  const bool shifts =
      (known.bits == Bits::shift_left || known.bits == Bits::shift_right) && !known.wide_result;
  const int step = known.bits == Bits::shift_left ? 1 : -1;
  ProvenanceCell result;
  each_lane(known.sources(), [&](int i) {
    if (shifts && i > 0) return;
    for (int from = 0; from < (known.is_wide(i) ? 4 : 2); from++) {
      if (by_half && from != to) continue;
      if (shifts && before_[1][lane] == 16 && from + step != to) continue;
      if (known.bits == Bits::masking && (before_[1 - i][lane] >> (16 * from) & 0xffff) == 0) continue;
      if (known.bits == Bits::permute) {
        const uint64_t selector = before_[2][lane] >> (8 * to);
        auto picks = [&](uint64_t nibble) {
          return i < 2 && static_cast<int>((nibble & 7) / 2) == 2 * i + from;
        };
        if (!picks(selector & 15) && !picks(selector >> 4 & 15)) continue;
      }
      result = unite(result, cell(warp, op.s[i], from, lane));
    }
  });
  return result;
}

}  // namespace assay::vm
