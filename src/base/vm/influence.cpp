#include "src/base/vm/influence.h"

#include <algorithm>

#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

Cell source_cell(const Op& op, int i) {
  return op.s[i] == no_slot ? Cell::none : cell_of(op.row->sources[static_cast<size_t>(i)]);
}

bool moves_bits(const Op& op, const Signature& signature) {
  if (!op.lanes || op.d_cell == Cell::mask) return false;
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  if (flow == Flow::conversion)
    return !signature.form.saturates && !ptx::is_float(meaning.result) && !ptx::is_float(meaning.sources[0]);
  return flow == Flow::logic || flow == Flow::shift || flow == Flow::permute;
}

/// The first source that says where bits go instead of going itself; of lop3 the table.
int first_control(ptx::Operation operation) {
  using ptx::Operation;
  switch (operation) {
    case Operation::shl:
    case Operation::shr:
    case Operation::bfe:
      return 1;
    case Operation::shf:
    case Operation::prmt:
    case Operation::bfi:
      return 2;
    default:
      return 3;
  }
}

/// Of what does not move bits: it is in the form.
uint64_t influence_by_form(const Signature& signature, int i, uint64_t bits) {
  constexpr uint64_t low = 0xffff, high = 0xffff0000, all = ~uint64_t{0};
  if (!bits) return 0;
  const ptx::Type result = signature.meaning->result,
                  from = signature.meaning->sources[static_cast<size_t>(i)];
  const bool integers = signature.flow() == Flow::integer && signature.form.packed;
  if (integers || (ptx::is_packed(result) && ptx::is_packed(from)))
    return (bits & low ? low : 0) | (bits & high ? high : 0);
  // cvt.rn.bf16x2.f32 d, a, b: a goes to the high half.
  if (ptx::is_packed(result) && from == ptx::Type::f32 && i < 2) return i == 0 ? high : low;
  return all;
}

}  // namespace

void read_lanes(const Warp& warp, Slot slot, bool wide, LaneBits& bits) {
  if (wide)
    std::copy_n(warp.wide(slot), 32, bits.begin());
  else
    std::copy_n(warp.word(slot), 32, bits.begin());
}

SourceBits::SourceBits(const Warp& warp, const Op& op) {
  for (int i = 0; i < op.source_count; ++i) {
    const Cell cell = source_cell(op, i);
    LaneBits& bits = value[static_cast<size_t>(i)];
    if (cell == Cell::word || cell == Cell::wide) read_lanes(warp, op.s[i], cell == Cell::wide, bits);
    if (cell == Cell::mask) bits[0] = warp.mask(op.s[i]);
  }
}

LaneBits result_of(const Op& op, const SourceBits& sources) {
  alignas(64) uint32_t words[4][32];
  const void* cells[4] = {};
  for (int i = 0; i < op.source_count; ++i) {
    const LaneBits& source = sources.value[static_cast<size_t>(i)];
    const Cell cell = source_cell(op, i);
    if (cell != Cell::wide) std::copy_n(source.begin(), 32, words[i]);
    if (cell != Cell::none)
      cells[i] = cell == Cell::wide ? static_cast<const void*>(source.data()) : words[i];
  }
  LaneBits made{};
  alignas(64) uint32_t made_words[32];
  if (op.row->mask) {
    const uint32_t mask = op.row->mask(cells[0], cells[1]);
    for (size_t lane = 0; lane < 32; ++lane) made[lane] = mask >> lane & 1;
    return made;
  }
  const bool wide = op.d_cell == Cell::wide;
  op.lanes(wide ? static_cast<void*>(made.data()) : made_words, cells[0], cells[1], cells[2], cells[3]);
  if (!wide) std::copy_n(made_words, 32, made.begin());
  return made;
}

LaneBits influence(const Op& op, const Signature& signature, const SourceBits& sources, int i,
                   const LaneBits& bits) {
  LaneBits reached{};
  const int control = first_control(signature.form.operation);
  if (!moves_bits(op, signature) || i >= control) {
    for (size_t lane = 0; lane < 32; ++lane) reached[lane] = influence_by_form(signature, i, bits[lane]);
    return reached;
  }
  // Open bits of the others are tried as zeros and as ones, in every combination.
  const auto is_open = [&](int k) {
    const LaneBits& open = sources.open[static_cast<size_t>(k)];
    return k != i && std::any_of(open.begin(), open.end(), [](uint64_t b) { return b != 0; });
  };
  const int travelling = std::min<int>(control, op.source_count);
  for (int ones = 0; ones < 1 << travelling; ++ones) {
    SourceBits tried = sources;
    bool repeats = false;
    for (int k = 0; k < travelling; ++k) {
      const bool one = ones >> k & 1;
      repeats |= one && !is_open(k);
      const LaneBits& open = sources.open[static_cast<size_t>(k)];
      LaneBits& value = tried.value[static_cast<size_t>(k)];
      for (size_t lane = 0; k != i && lane < 32; ++lane)
        value[lane] = one ? value[lane] | open[lane] : value[lane] & ~open[lane];
    }
    if (repeats) continue;
    const LaneBits plain = result_of(op, tried);
    for (size_t lane = 0; lane < 32; ++lane) tried.value[static_cast<size_t>(i)][lane] ^= bits[lane];
    const LaneBits inverted = result_of(op, tried);
    for (size_t lane = 0; lane < 32; ++lane) reached[lane] |= plain[lane] ^ inverted[lane];
  }
  for (int k = control; k < op.source_count; ++k)
    for (size_t lane = 0; lane < 32; ++lane)
      if (sources.open[static_cast<size_t>(k)][lane] && bits[lane]) reached[lane] = ~uint64_t{0};
  return reached;
}

HalfInfluence half_influence(const Code& code, const Op& op) {
  SourceBits sources;
  for (LaneBits& open : sources.open) open.fill(~uint64_t{0});
  for (const Immediate& literal : code.immediates)
    for (size_t i = 0; i < op.source_count; ++i)
      if (literal.slot == op.s[i]) sources.value[i].fill(literal.bits), sources.open[i] = {};
  HalfInfluence reach{};
  for (size_t i = 0; i < op.source_count; ++i)
    for (size_t from = 0; from < 4; ++from) {
      LaneBits half;
      half.fill(uint64_t{0xffff} << 16 * from);
      const uint64_t reached = influence(op, code.signature(op), sources, static_cast<int>(i), half)[0];
      for (int to = 0; to < 4; ++to)
        if (reached >> 16 * to & 0xffff) reach[i][from] |= 1 << to;
    }
  return reach;
}

}  // namespace assay::vm
