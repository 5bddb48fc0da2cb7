// Sums of wgmma, after the wait: those that are not finite though what was added to was, and so were, or at
// least no NaN, the row of A and the column of B. Matrices are read from shared memory as the instruction
// reads them (PTX ISA, "Shared Memory Matrix Layout"; src/base/vm/matrix_descriptor.cpp).
#include <fmt/format.h>

#include "src/base/watch/segment.h"

namespace assay::watch {

using ptx::Type;
using Class = AddedRegisters::Class;

Segment::Candidates Segment::candidates(Item& item, Code& code) {
  Candidates made;
  item.made = added(Class::word);
  int number = 0;
  for (size_t i = 0; i < item.results.size(); ++i) {
    const int32_t reg = item.watched.results[i].operand->reg;
    const std::vector<Element> sums = elements(item.results[i], code);
    for (size_t half = 0; half < sums.size(); ++half, ++number) {
      if (number % 64 == 0) {
        made.nan.push_back(added(Class::wide)), made.infinite.push_back(added(Class::wide));
        code.line(fmt::format("mov.b64 {}, 0", made.nan.back()));
        code.line(fmt::format("mov.b64 {}, 0", made.infinite.back()));
      }
      const std::string nan = added(Class::predicate), infinite = added(Class::predicate),
                        scratch = added(Class::word);
      nan_born(nan, sums[half], {}, code);
      accumulators_.require_number(reg, static_cast<int>(half), nan, scratch, code);
      infinity_born(infinite, sums[half], {}, code);
      accumulators_.require_finite(reg, static_cast<int>(half), infinite, scratch, code);
      const uint64_t bit = uint64_t{1} << number % 64;
      code.line(fmt::format("@{0} or.b64 {1}, {1}, {2:#x}", nan, made.nan.back(), bit));
      code.line(fmt::format("@{0} or.b64 {1}, {1}, {2:#x}", infinite, made.infinite.back(), bit));
      code.line(fmt::format("@{} mov.b32 {}, {}", infinite, item.made, value(item.results[i]).name));
    }
  }
  return made;
}

/// Sets `nan` or `infinite` to 1 where an element, in the low bits of a word, is.
void Segment::find_special(const std::string& bits, vm::Element element, const std::string& nan,
                           const std::string& infinite, Code& code) {
  const vm::ElementFormat& format = vm::format_of(element);
  const uint32_t magnitudes = (1u << (format.bits - 1)) - 1 - ((1u << format.dropped_bits) - 1),
                 most = ((1u << format.exponent_bits) - 1) << (format.fraction_bits + format.dropped_bits);
  const std::string magnitude = added(Class::word), p = added(Class::predicate);
  code.line(fmt::format("and.b32 {}, {}, {:#x}", magnitude, bits, magnitudes));
  code.line(
      fmt::format("setp.gt.u32 {}, {}, {:#x}", p, magnitude, format.infinities ? most : magnitudes - 1));
  code.line(fmt::format("@{} mov.b32 {}, 1", p, nan));
  if (!format.infinities) return;
  code.line(fmt::format("setp.eq.u32 {}, {}, {:#x}", p, magnitude, most));
  code.line(fmt::format("@{} mov.b32 {}, 1", p, infinite));
}

/// Where element k of a line lies in shared memory.
std::string Segment::element_address(const std::string& descriptor, bool mn_major, vm::Element element,
                                     const std::string& line, const std::string& k, Code& code) {
  const auto word = [&](const std::string& instruction) {
    const std::string to = added(Class::word);
    code.line(fmt::format(fmt::runtime(instruction), to));
    return to;
  };
  const std::string low = added(Class::word), high = added(Class::word), flat = added(Class::predicate);
  code.line(fmt::format("mov.b64 {{{}, {}}}, {}", low, high, descriptor));
  const auto field = [&](const std::string& from, int at) {
    const std::string raw = word("bfe.u32 {}, " + from + fmt::format(", {}, 14", at));
    return word("shl.b32 {}, " + raw + ", 4");
  };
  const std::string start = field(low, 0), leading = field(low, 16), stride = field(high, 0),
                    base = word("bfe.u32 {}, " + high + ", 17, 3"),
                    kind = word("shr.u32 {}, " + high + ", 30");
  code.line(fmt::format("setp.eq.u32 {}, {}, 0", flat, kind));
  // Bytes of a swizzled line: 128, 64, 32 for 1, 2, 3; 16 where nothing is swizzled. Their pieces of 16.
  const std::string pieces_or_16 = word("mov.b32 {}, 16"),
                    swizzled = word("shr.u32 {}, " + pieces_or_16 + ", " + kind),
                    pieces = word("selp.b32 {}, 1, " + swizzled + ", " + flat),
                    line_bytes = word("shl.b32 {}, " + pieces + ", 4");
  // K-major: `line` is the row; MN-major: k is, and the row counts along it.
  const int shift = vm::format_of(element).bits == 32 ? 2 : vm::format_of(element).bits == 16 ? 1 : 0;
  const std::string along = word("shl.b32 {}, " + (mn_major ? line : k) + fmt::format(", {}", shift)),
                    piece = word("shr.u32 {}, " + along + ", 4"),
                    inside = word("and.b32 {}, " + along + ", 15");
  const std::string& across = mn_major ? k : line;
  const std::string in_atom = word("and.b32 {}, " + across + ", 7"),
                    atom = word("shr.u32 {}, " + across + ", 3");
  const std::string by_atom =
      mn_major ? word("selp.b32 {}, " + leading + ", " + stride + ", " + flat) : stride;
  std::string offset;
  if (mn_major) {
    const std::string mask = word("sub.u32 {}, " + pieces + ", 1"),
                      in_line = word("and.b32 {}, " + piece + ", " + mask),
                      at = word("shl.b32 {}, " + in_line + ", 4"),
                      turns = word("div.u32 {}, " + piece + ", " + pieces),
                      by_turn = word("selp.b32 {}, " + stride + ", " + leading + ", " + flat);
    offset = word("mad.lo.u32 {}, " + turns + ", " + by_turn + ", " + at);
  } else {
    const std::string by_piece = word("selp.b32 {}, " + leading + ", 16, " + flat);
    offset = word("mul.lo.u32 {}, " + piece + ", " + by_piece);
  }
  const std::string in_lines = word("mad.lo.u32 {}, " + in_atom + ", " + line_bytes + ", " + start),
                    in_atoms = word("mad.lo.u32 {}, " + atom + ", " + by_atom + ", " + in_lines),
                    plain = word("add.u32 {}, " + in_atoms + ", " + offset);
  const std::string row = word("shr.u32 {}, " + plain + ", 7"),
                    moved = word("sub.u32 {}, " + row + ", " + base),
                    mask = word("sub.u32 {}, " + pieces + ", 1"),
                    turn = word("and.b32 {}, " + moved + ", " + mask),
                    bits = word("shl.b32 {}, " + turn + ", 4"),
                    place = word("xor.b32 {}, " + plain + ", " + bits);
  return word("add.u32 {}, " + place + ", " + inside);
}

/// Of A in registers, for each lane's two rows: bit 0, 2: NaN in row g, g + 8; bit 1, 3: infinities.
std::string Segment::flags_of_rows(const Multiplication& wgmma, Code& code) {
  const std::string flags = added(Class::word), element = added(Class::word), nan = added(Class::word),
                    infinite = added(Class::word), other = added(Class::word);
  code.line(fmt::format("mov.b32 {}, 0", flags));
  const int bits = vm::format_of(wgmma.watched.a_element).bits;
  for (size_t r = 0; r < wgmma.watched.sources.size(); ++r) {
    const auto reg = static_cast<size_t>(wgmma.watched.sources[r].operand->reg);
    code.line(fmt::format("mov.b32 {}, 0", nan));
    code.line(fmt::format("mov.b32 {}, 0", infinite));
    for (int at = 0; at < 32; at += bits) {
      code.line(fmt::format("shr.u32 {}, {}, {}", element, function_.registers[reg].name, at));
      find_special(element, wgmma.watched.a_element, nan, infinite, code);
    }
    const int row = 2 * (r % 2);
    code.line(fmt::format("mad.lo.u32 {0}, {1}, 2, {2}", other, infinite, nan));
    code.line(fmt::format("shl.b32 {0}, {0}, {1}", other, row));
    code.line(fmt::format("or.b32 {0}, {0}, {1}", flags, other));
  }
  for (const int lanes : {1, 2}) {
    code.line(fmt::format("shfl.sync.bfly.b32 {}, {}, {}, 31, -1", other, flags, lanes));
    code.line(fmt::format("or.b32 {0}, {0}, {1}", flags, other));
  }
  return flags;
}

/// Element e of a lane: row g + 8 (e / 2 mod 2) of its warp's 16, column 8 (e / 4) + 2 t + e mod 2. Leaves
/// e / 2 mod 2 in `e`.
void Segment::place_element(const std::string& e, const std::string& row, const std::string& column,
                            Code& code) {
  const std::string t = added(Class::word), k = added(Class::word), bits = added(Class::word);
  const auto line = [&](const std::string& text) { code.line(text); };
  line(fmt::format("mov.u32 {}, %laneid", t));
  line(fmt::format("shr.u32 {}, {}, 2", row, t));
  line(fmt::format("and.b32 {0}, {0}, 3", t));
  line(fmt::format("shr.u32 {}, {}, 2", column, e));
  line(fmt::format("shl.b32 {0}, {0}, 3", column));
  line(fmt::format("mad.lo.u32 {0}, {1}, 2, {0}", column, t));
  line(fmt::format("and.b32 {}, {}, 1", t, e));
  line(fmt::format("add.u32 {0}, {0}, {1}", column, t));
  line(fmt::format("bfe.u32 {0}, {0}, 1, 1", e));
  line(fmt::format("mad.lo.u32 {0}, {1}, 8, {0}", row, e));
  line(fmt::format("mov.u32 {}, %tid.z", t));
  line(fmt::format("mov.u32 {}, %ntid.y", k));
  line(fmt::format("mov.u32 {}, %tid.y", bits));
  line(fmt::format("mad.lo.u32 {0}, {0}, {1}, {2}", t, k, bits));
  line(fmt::format("mov.u32 {}, %ntid.x", k));
  line(fmt::format("mov.u32 {}, %tid.x", bits));
  line(fmt::format("mad.lo.u32 {0}, {0}, {1}, {2}", t, k, bits));
  line(fmt::format("bfe.u32 {0}, {0}, 5, 2", t));
  line(fmt::format("mad.lo.u32 {0}, {1}, 16, {0}", row, t));
}

/// Takes out of a word of candidates those whose row or column holds NaN or infinities.
void Segment::reject_word(const Multiplication& wgmma, const Candidates& candidates, size_t number,
                          const std::string& rows, const std::string& name, Code& code) {
  const WatchedInstruction& w = wgmma.watched;
  const std::string rest = added(Class::wide), bit = added(Class::wide), e = added(Class::word),
                    row = added(Class::word), column = added(Class::word), t = added(Class::word),
                    k = added(Class::word), bits = added(Class::word), nan = added(Class::word),
                    infinite = added(Class::word), p = added(Class::predicate);
  const auto line = [&](const std::string& text) { code.line(text); };
  line(fmt::format("or.b64 {}, {}, {}", rest, candidates.nan[number], candidates.infinite[number]));
  code.label(name + "_next");
  line(fmt::format("setp.eq.b64 {}, {}, 0", p, rest));
  line(fmt::format("@{} bra {}_done", p, name));
  line(fmt::format("bfind.u64 {}, {}", e, rest));
  line(fmt::format("mov.b64 {}, 1", bit));
  line(fmt::format("shl.b64 {0}, {0}, {1}", bit, e));
  line(fmt::format("xor.b64 {0}, {0}, {1}", rest, bit));
  line(fmt::format("add.u32 {0}, {0}, {1}", e, 64 * number));
  place_element(e, row, column, code);
  line(fmt::format("mov.b32 {}, 0", nan));
  line(fmt::format("mov.b32 {}, 0", infinite));
  if (!rows.empty()) {
    line(fmt::format("shl.b32 {0}, {0}, 1", e));
    line(fmt::format("shr.u32 {}, {}, {}", t, rows, e));
    line(fmt::format("and.b32 {}, {}, 1", nan, t));
    line(fmt::format("bfe.u32 {}, {}, 1, 1", infinite, t));
  }
  const std::vector<ptx::Operand>& operands = wgmma.instruction->operands;
  const auto transposed = [&](size_t i) { return i < operands.size() && operands[i].bits == 1; };
  const bool in_registers = !rows.empty(), halves = vm::format_of(w.a_element).bits == 16;
  const bool a_by_column = halves && !in_registers && transposed(6),
             b_by_row = halves && transposed(in_registers ? 6 : 7);
  line(fmt::format("mov.b32 {}, 0", k));
  code.label(name + "_k");
  const auto look = [&](const std::string& descriptor, bool mn_major, vm::Element element,
                        const std::string& at) {
    const std::string address = element_address(descriptor, mn_major, element, at, k, code);
    const int width = vm::format_of(element).bits;
    line(fmt::format("ld.shared.u{} {}, [{}]", width, bits, address));
    find_special(bits, element, nan, infinite, code);
  };
  if (!in_registers) look(wgmma.a, a_by_column, w.a_element, row);
  look(wgmma.b, b_by_row, w.b_element, column);
  line(fmt::format("add.u32 {0}, {0}, 1", k));
  line(fmt::format("setp.lt.u32 {}, {}, {}", p, k, 256 / vm::format_of(w.b_element).bits));
  line(fmt::format("@{} bra {}_k", p, name));
  line(fmt::format("not.b64 {0}, {0}", bit));
  line(fmt::format("or.b32 {}, {}, {}", t, nan, infinite));
  line(fmt::format("setp.ne.u32 {}, {}, 0", p, t));
  line(fmt::format("@{0} and.b64 {1}, {1}, {2}", p, candidates.infinite[number], bit));
  line(fmt::format("setp.ne.u32 {}, {}, 0", p, nan));
  line(fmt::format("@{0} and.b64 {1}, {1}, {2}", p, candidates.nan[number], bit));
  line(fmt::format("bra {}_next", name));
  code.label(name + "_done");
}

void Segment::births_of_sums(Item& item, const std::string& name, int number, Code& code) {
  const Candidates left = candidates(item, code);
  std::vector<std::string> rows;  // while the whole warp is here
  for (const Multiplication& wgmma : item.group)
    rows.push_back(wgmma.a.empty() ? flags_of_rows(wgmma, code) : "");
  for (size_t w = 0; w < item.group.size(); ++w)
    for (size_t word = 0; word < left.nan.size(); ++word)
      reject_word(item.group[w], left, word, rows[w], fmt::format("{}_sums{}_{}_{}", name, number, w, word),
                  code);
  const std::string nan = added(Class::predicate), infinite = added(Class::predicate),
                    all = added(Class::wide);
  for (const auto& [p, words] : {std::pair{nan, &left.nan}, std::pair{infinite, &left.infinite}}) {
    code.line(fmt::format("mov.b64 {}, {}", all, words->front()));
    for (size_t i = 1; i < words->size(); ++i)
      code.line(fmt::format("or.b64 {0}, {0}, {1}", all, (*words)[i]));
    code.line(fmt::format("setp.ne.b64 {}, {}, 0", p, all));
  }
  mark(item, number, nan, infinite, code);
}

}  // namespace assay::watch
