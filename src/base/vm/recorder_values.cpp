// Registers: arithmetic and everything that only carries bits between them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/recorder.h"

namespace assay::vm {
namespace {

constexpr uint64_t half_bits = 0xffff;

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
  each_lane(known.sources, [&](int i) { read_lanes(warp, op.s[i], known.halves[i] == 4, before_[i]); });
}

/// What half `half` of an arithmetic result takes from a source.
ProvenanceCell Recorder::arriving(const Warp& warp, const Op& op, int source, int lane, int half) {
  ProvenanceCell all;
  for (int from = 0; from < facts(op).halves[static_cast<size_t>(source)]; ++from)
    if (facts(op).reaches(source, from, half)) all = unite(all, cell(warp, op.s[source], from, lane));
  return all;
}

namespace {

/// The factor that makes no difference, as the other one is zero and it is finite; -1: both count.
int idle_factor(uint64_t first, uint64_t second) {
  const auto x = std::bit_cast<float>(static_cast<uint32_t>(first)),
             y = std::bit_cast<float>(static_cast<uint32_t>(second));
  if (x == 0 && std::isfinite(y)) return 1;
  return y == 0 && std::isfinite(x) ? 0 : -1;
}

}  // namespace

void Recorder::arithmetic(const Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  const ptx::Type type = op.row->result;
  const bool packed = ptx::is_packed(type);
  bool logs = ptx::is_float(type);
  if (logs && known.result_halves == 2) logs = any_nonfinite(type, warp.word(op.d), mask);
  each_lane(mask, [&](int lane) {
    ProvenanceCell made[2];
    const int idle = known.multiplies ? idle_factor(before_[0][lane], before_[1][lane]) : -1;
    for (int half = 0; half < (packed ? 2 : 1); half++) {
      each_lane(known.sources, [&](int i) {
        if (i == idle) return;
        const Dependence source = arriving(warp, op, i, lane, half).dependence;
        made[half].dependence = run_->provenance.unite(made[half].dependence, source);
      });
      if (logs) made[half].tag = log_result(warp, op, lane, half, made[half].dependence);
    }
    for (int half = 0; half < known.result_halves; half++)
      cell(warp, op.d, half, lane) = made[packed ? half : 0];
  });
}

/// Logs lane's result (its `half` of a packed one) with the source values that stood before the op; 0: it is
/// finite.
Tag Recorder::log_result(const Warp& warp, const Op& op, int lane, int half, Dependence united) {
  const ptx::Type type = op.row->result;
  const uint64_t bits = is_wide(type) ? warp.wide(op.d)[lane] : warp.word(op.d)[lane];
  const LoggedEvent e = event_at(warp, op, lane, type, half_of(type, bits, half), united);
  if (!is_nonfinite(type, e.result_bits)) return 0;
  LoggedOperand operands[4];
  int count = 0;
  each_lane(facts(op).sources, [&](int i) {
    const ptx::Type t = op.row->sources[i];
    if (!ptx::is_float(t) || !(facts(op).reaches(i, 0, half) || facts(op).reaches(i, 1, half))) return;
    operands[count++] = operand(half_of(t, before_[i][lane], half), t, i, arriving(warp, op, i, lane, half));
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
    LoggedOperand literal = operand(bits, type, warp.mask(op.s[2]) >> lane & 1 ? 0 : 1, chosen);
    const Tag tag = log(event_at(warp, op, lane, type, bits, chosen.dependence), &literal, 1);
    for (int half = 0; half < facts(op).result_halves; half++) cell(warp, op.d, half, lane).tag = tag;
  });
}

// What is no arithmetic on floats: most is integer arithmetic on values that depend on nothing. A result may
// be read as a float, so the first tag is kept.
void Recorder::bits(const Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  std::optional<SourceBits> sources;
  LaneBits reached[4][4];  // by source and half, of those that carry something
  uint32_t carrying[4][4] = {};
  each_lane(known.sources, [&](int i) {
    for (int from = 0; from < known.halves[i]; ++from) {
      each_lane(mask, [&](int lane) {
        const ProvenanceCell& c = cell(warp, op.s[i], from, lane);
        carrying[i][from] |= static_cast<uint32_t>((c.tag | c.dependence) != 0) << lane;
      });
      if (!carrying[i][from]) continue;
      if (!sources) sources.emplace(warp, op);
      LaneBits half;
      half.fill(half_bits << 16 * from);
      reached[i][from] = influence(op, signature(op), *sources, i, half);
    }
  });
  each_lane(mask, [&](int lane) {
    ProvenanceCell result[4];  // the destination may be a source
    for (int to = 0; sources && to < known.result_halves; ++to)
      each_lane(known.sources, [&](int i) {
        for (int from = 0; from < known.halves[i]; ++from)
          if ((carrying[i][from] >> lane & 1) && (reached[i][from][lane] >> 16 * to & half_bits))
            result[to] = unite(result[to], cell(warp, op.s[i], from, lane));
      });
    for (int half = 0; half < known.result_halves; half++) cell(warp, op.d, half, lane) = result[half];
  });
}

}  // namespace assay::vm
