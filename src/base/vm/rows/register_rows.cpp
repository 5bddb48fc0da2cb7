// Packing and unpacking moves, arithmetic with the carry flag (PTX ISA 9.7.9.2, 9.7.2).
#include <type_traits>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// Op::element_bytes of each element; a 64-bit element makes its cells wide.
bool pack(Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t width = 8u * op.element_bytes;
  const bool wide_element = width == 64;
  const uint64_t keep = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  uint64_t result[32];
  each_lane(mask, [&](int lane) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < op.slot_count; ++i) {
      const uint64_t element = wide_element ? warp.wide(op.slots[i])[lane] : warp.word(op.slots[i])[lane];
      value |= (element & keep) << (width * i);
    }
    result[lane] = value;
  });
  each_lane(mask, [&](int lane) {
    if (op.d_cell == Cell::wide)
      warp.wide(op.d)[lane] = result[lane];
    else
      warp.word(op.d)[lane] = static_cast<uint32_t>(result[lane]);
  });
  return true;
}

bool unpack(Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t width = 8u * op.element_bytes;
  const uint64_t keep = (uint64_t{1} << width) - 1;
  const bool wide = ptx::bytes_of(op.type) == 8;
  uint64_t source[32];
  each_lane(mask,
            [&](int lane) { source[lane] = wide ? warp.wide(op.s[0])[lane] : warp.word(op.s[0])[lane]; });
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    uint32_t* d = warp.word(op.slots[i]);
    each_lane(mask, [&](int lane) { d[lane] = static_cast<uint32_t>((source[lane] >> (width * i)) & keep); });
  }
  return true;
}

Type element_type(Decoder& decoder, const ptx::Instruction& instruction, Op& op, size_t elements) {
  op.type =
      *ptx::type_named(decoder.parts(instruction)[1].substr(0, decoder.parts(instruction)[1].find(' ')));
  const int bytes = ptx::bytes_of(op.type);
  if ((elements != 2 && elements != 4) || bytes % static_cast<int>(elements))
    decoder.fail(instruction, "has a vector of a wrong length");
  op.element_bytes = static_cast<uint8_t>(bytes / static_cast<int>(elements));
  return op.element_bytes == 4 ? Type::b32 : op.element_bytes == 2 ? Type::b16 : Type::b8;
}

void decode_pack(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<Operand>& elements = instruction.operands[1].elements;
  const Type element = element_type(decoder, instruction, op, elements.size());
  op.d = decoder.destination(instruction.operands[0], op.type);
  op.d_cell = cell_of(op.type);
  std::vector<Slot> slots;
  for (const Operand& each : elements) slots.push_back(decoder.source(each, element));
  decoder.set_slots(op, slots);
}

void decode_unpack(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<Operand>& elements = instruction.operands[0].elements;
  const Type element = element_type(decoder, instruction, op, elements.size());
  op.s[0] = decoder.source(instruction.operands[1], op.type);
  op.source_count = 1;
  op.immediate = 1;
  op.d_cell = Cell::none;
  std::vector<Slot> slots;
  for (const Operand& each : elements) slots.push_back(decoder.destination(each, element));
  decoder.set_slots(op, slots, slots.size());
}

/// mov.b128 of a register, {d, d'} or {a, b}: two moves of 64 bits (PTX ISA 9.7.9.3 and 9.7.9.4, "mov").
void decode_pair_move(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  const auto halves = [&](const Operand& operand, bool written) -> std::array<Slot, 2> {
    if (operand.kind != Operand::Kind::vector) return decoder.register_pair(operand);
    if (operand.elements.size() != 2) decoder.fail(instruction, "has a vector of a wrong length");
    const auto half = [&](size_t i) {
      return written ? decoder.destination(operand.elements[i], Type::b64)
                     : decoder.source(operand.elements[i], Type::b64);
    };
    return {half(0), half(1)};
  };
  const std::array<Slot, 2> to = halves(instruction.operands[0], true),
                            from = halves(instruction.operands[1], false);
  op.row = find_row("mov.b64");
  op.kind = op.row->kind, op.lanes = op.row->lanes;
  op.d_cell = Cell::wide;
  op.source_count = 1;
  op.d = to[0], op.s[0] = from[0];
  decoder.emit(op);
  op.d = to[1], op.s[0] = from[1];
}

/// add.cc, addc{.cc}, sub.cc, subc{.cc}: bit 0 of Op::immediate reads the carry, bit 1 writes it, bit 2
/// subtracts.
template <class T>
bool carry_add(Warp& warp, const Op& op, uint32_t mask) {
  const bool reads = op.immediate & 1, writes = op.immediate & 2, subtracts = op.immediate & 4;
  auto cell = [&](Slot slot) { return reinterpret_cast<T*>(warp.file + slot); };
  uint32_t carries = 0;
  each_lane(mask, [&](int lane) {
    const T a = cell(op.s[0])[lane],
            b = subtracts ? static_cast<T>(~cell(op.s[1])[lane]) : cell(op.s[1])[lane];
    // Subtraction adds the complement; the flag then means "no borrow" inside and "borrow" in the register.
    const T in = reads ? ((warp.carry >> lane) & 1) ^ (subtracts ? 1 : 0) : (subtracts ? 1 : 0);
    const auto sum = static_cast<unsigned __int128>(a) + b + in;
    cell(op.d)[lane] = static_cast<T>(sum);
    const uint32_t out = static_cast<uint32_t>(sum >> (8 * sizeof(T))) & 1;
    carries |= (out ^ (subtracts ? 1u : 0u)) << lane;
  });
  if (writes) warp.carry = (warp.carry & ~mask) | carries;
  return true;
}

template <class T, bool high>
bool carry_multiply(Warp& warp, const Op& op, uint32_t mask) {
  const bool reads = op.immediate & 1, writes = op.immediate & 2;
  auto cell = [&](Slot slot) { return reinterpret_cast<T*>(warp.file + slot); };
  uint32_t carries = 0;
  each_lane(mask, [&](int lane) {
    using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    using Half = std::make_unsigned_t<T>;
    const Product product = static_cast<Product>(cell(op.s[0])[lane]) * cell(op.s[1])[lane];
    const auto half = static_cast<Half>(high ? product >> (8 * sizeof(T)) : product);
    const auto sum = static_cast<unsigned __int128>(half) + static_cast<Half>(cell(op.s[2])[lane]) +
                     (reads ? (warp.carry >> lane) & 1 : 0);
    cell(op.d)[lane] = static_cast<T>(sum);
    carries |= (static_cast<uint32_t>(sum >> (8 * sizeof(T))) & 1) << lane;
  });
  if (writes) warp.carry = (warp.carry & ~mask) | carries;
  return true;
}

void decode_carry(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  op.type = *ptx::type_named(words.back());
  op.immediate = (words[0].back() == 'c' ? 1 : 0) | (instruction.form.carry_out ? 2 : 0) |
                 (words[0].starts_with("sub") ? 4 : 0);
  const size_t sources = words[0].starts_with("mad") ? 3 : 2;
  decoder.expect_operands(instruction, 1 + sources, 1 + sources);
  op.d = decoder.destination(instruction.operands[0], op.type);
  for (size_t i = 0; i < sources; ++i) op.s[i] = decoder.source(instruction.operands[1 + i], op.type);
  op.d_cell = cell_of(op.type);
  op.source_count = static_cast<uint8_t>(sources);
}

bool zero(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) { warp.wide(op.d)[lane] = 0; });
  return true;
}
void decode_policy(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  op.d = decoder.destination(instruction.operands.at(0), Type::b64);
  op.d_cell = Cell::wide;
}

}  // namespace

void add_register_rows(std::vector<Row>& rows) {
  add_warp_row(rows, "mov.{b16,b32,u32,s32,b64,u64,s64,f64} pack", {.flow = Flow::pack}, pack, decode_pack);
  add_warp_row(rows, "mov.{b16,b32,u32,s32,b64,u64,s64,f64} unpack", {.flow = Flow::unpack}, unpack,
               decode_unpack);
  add_warp_row(rows, "mov.b128{, pack, unpack}", {.flow = Flow::copy, .operands = {Role::write, Role::read}},
               nullptr, decode_pair_move);
  const auto add = [&](const char* pattern, WarpFunction function) {
    add_warp_row(rows, pattern, {.flow = Flow::integer}, function, decode_carry);
  };
  add("{add.cc,addc,addc.cc,sub.cc,subc,subc.cc}.{u32,s32}", carry_add<uint32_t>);
  add("{add.cc,addc,addc.cc,sub.cc,subc,subc.cc}.{u64,s64}", carry_add<uint64_t>);
  add("{mad.lo.cc,madc.lo,madc.lo.cc}.{u32,s32}", carry_multiply<uint32_t, false>);
  add("{mad.hi.cc,madc.hi,madc.hi.cc}.u32", carry_multiply<uint32_t, true>);
  add("{mad.lo.cc,madc.lo,madc.lo.cc}.{u64,s64}", carry_multiply<uint64_t, false>);
  add("{mad.hi.cc,madc.hi,madc.hi.cc}.u64", carry_multiply<uint64_t, true>);
  add("{mad.hi.cc,madc.hi,madc.hi.cc}.s32", carry_multiply<int32_t, true>);
  add("{mad.hi.cc,madc.hi,madc.hi.cc}.s64", carry_multiply<int64_t, true>);
  // What the cache does with lines changes no value.
  for (const char* pattern : {"createpolicy.{fractional,range,range.global}.L2::{evict_first,evict_last,"
                              "evict_normal,evict_unchanged}"
                              "{,.L2::evict_first,.L2::evict_unchanged}.b64",
                              "createpolicy.cvt.L2.b64"})
    add_warp_row(rows, pattern, {.flow = Flow::integer}, zero, decode_policy);
}

}  // namespace assay::vm
