// Instructions that become comparisons of their own. setp of two halves at once (PTX ISA 9.7.7, "setp" for
// half precision): p is the low half's, q the high half's result; the low comparison reads the low bits of
// the packed register. set with a predicate (PTX ISA 9.7.6, "set"): setp, then a selection. lop3 with one
// (PTX ISA 9.7.8, "lop3"): the logic, then setp of its result.
#include <algorithm>
#include <utility>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

Operand number(uint64_t bits) {
  Operand made;
  made.kind = Operand::Kind::immediate;
  made.bits = bits;
  return made;
}

/// The op as a lane row of another form, without what a comparison has.
Op as_lanes(const Op& user, const std::string& form, Slot d) {
  Op made = user;
  made.row = find_row(form);
  made.kind = made.row->kind, made.lanes = made.row->lanes;
  made.d_cell = cell_of(made.row->result);
  made.d = d, made.d2 = no_slot;
  made.boolean = BooleanOp::none, made.third_negated = false;
  std::fill(std::begin(made.s), std::end(made.s), no_slot);
  return made;
}

/// Emits the shift that brings the high half down; returns its cell.
Slot high_half(Decoder& decoder, const Op& user, Slot packed) {
  Op shift = as_lanes(user, "shr.u32", decoder.new_cell(Cell::word));
  shift.s[0] = packed;
  shift.s[1] = decoder.source(number(16), Type::u32);
  shift.source_count = 2;
  decoder.emit(shift);
  return shift.d;
}

void decode_packed(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.compare_operands(instruction, *op.row, op);
  if (op.d2 == no_slot) decoder.fail(instruction, "needs two predicates, p|q");
  if (op.boolean != BooleanOp::none && op.s[2] == op.d2)
    decoder.fail(instruction, "the predicate it combines with must not be its second result");
  std::string scalar = spelling_of(instruction.opcode);
  scalar.resize(scalar.size() - 2);  // f16x2 -> f16
  Op high = op;
  high.row = op.row = find_row(scalar);
  high.s[0] = high_half(decoder, op, op.s[0]);
  high.s[1] = high_half(decoder, op, op.s[1]);
  high.d = op.d2;
  high.d2 = op.d2 = no_slot;
  decoder.emit(high);
}

BooleanOp boolean_of(const std::string& word) {
  return word == "and" ? BooleanOp::land : word == "or" ? BooleanOp::lor : BooleanOp::lxor;
}

/// {!}c, which a comparison is combined with.
void combine(Decoder& decoder, Operand predicate, const std::string& word, Op& compare) {
  compare.boolean = boolean_of(word);
  compare.third_negated = std::exchange(predicate.negated, false);
  compare.s[2] = decoder.source(predicate, Type::pred);
  compare.source_count = 3;
}

/// The comparison of a set, and the value of its result where that holds; both to cells of their own.
Op emitted_compare(Decoder& decoder, const ptx::Instruction& instruction, const std::string& form, Slot a,
                   Slot b, const Op& op) {
  Op compare = as_lanes(op, form, decoder.new_cell(Cell::mask));
  compare.s[0] = a, compare.s[1] = b;
  combine(decoder, instruction.operands[3], decoder.parts(instruction)[2], compare);
  decoder.emit(compare);
  return compare;
}
Op selection(Decoder& decoder, const Op& op, const Op& compare, const char* form, uint64_t yes, Slot d) {
  Op made = as_lanes(op, form, d);
  const Type type = made.row->result;
  made.s[0] = decoder.source(number(yes), type), made.s[1] = decoder.source(number(0), type);
  made.s[2] = compare.d;
  made.source_count = 3;
  return made;
}

uint64_t yes_of(Type type) {
  switch (type) {
    case Type::f32:
      return 0x3f800000u;
    case Type::f16:
    case Type::f16x2:
      return 0x3c00u;
    case Type::bf16:
    case Type::bf16x2:
      return 0x3f80u;
    default:
      return 0xffffffffu;
  }
}

/// set.cmp.bool{.ftz}.dtype.stype d, a, b, {!}c;
void decode_combined_set(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 4, 4);
  const std::vector<std::string>& words = decoder.parts(instruction);
  const Type to = *ptx::type_named(words[words.size() - 2]), from = *ptx::type_named(words.back());
  const Slot d = decoder.destination(instruction.operands[0], to),
             a = decoder.source(instruction.operands[1], from),
             b = decoder.source(instruction.operands[2], from);
  const bool packed = ptx::is_packed(from);
  std::string form = "setp." + words[1] + "." + words[2] + (words[3] == "ftz" ? ".ftz." : ".") + words.back();
  if (packed) form.resize(form.size() - 2);  // f16x2 -> f16
  const Op low = emitted_compare(decoder, instruction, form, a, b, op);
  if (!packed) {
    op = selection(decoder, op, low, ptx::bytes_of(to) == 2 ? "selp.b16" : "selp.b32", yes_of(to), d);
    return;
  }
  const uint64_t yes = yes_of(to) & 0xffff;
  const Op high =
      emitted_compare(decoder, instruction, form, high_half(decoder, op, a), high_half(decoder, op, b), op);
  const Op one = selection(decoder, op, low, "selp.b32", yes, decoder.new_cell(Cell::word)),
           other = selection(decoder, op, high, "selp.b32", yes << 16, decoder.new_cell(Cell::word));
  decoder.emit(one);
  decoder.emit(other);
  op = as_lanes(op, "or.b32", d);
  op.s[0] = one.d, op.s[1] = other.d;
  op.source_count = 2;
}

/// lop3.bool.b32 d|p, a, b, c, table, {!}q: p = (d != 0) bool q.
void decode_combined_logic(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 6, 6);
  const Operand& to = instruction.operands[0];
  if (to.kind != Operand::Kind::pair) decoder.fail(instruction, "needs a register and a predicate, d|p");
  Op logic = as_lanes(op, "lop3.b32", decoder.new_cell(Cell::word));
  for (size_t i = 0; i < 4; ++i) logic.s[i] = decoder.source(instruction.operands[1 + i], Type::b32);
  logic.source_count = 4;
  decoder.emit(logic);
  Op copy = as_lanes(op, "mov.b32", decoder.destination(to.elements[0], Type::b32));
  copy.s[0] = logic.d;
  copy.source_count = 1;
  decoder.emit(copy);
  const std::string word = decoder.parts(instruction)[1];
  op = as_lanes(op, "setp.ne." + word + ".u32", decoder.destination(to.elements[1], Type::pred));
  op.s[0] = logic.d, op.s[1] = decoder.source(number(0), Type::u32);
  combine(decoder, instruction.operands[5], word, op);
}

void add_combined_sets(std::vector<Row>& rows) {
  const auto add = [&](const char* tests, const char* types) {
    add_warp_row(rows, std::string("set.") + tests + ".{and,or,xor}" + types,
                 {.flow = Flow::comparison, .operands = {Role::write, Role::read}}, nullptr,
                 decode_combined_set);
  };
  const char* const of_floats = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}";
  add(of_floats, "{,.ftz}.{u32,s32,f32}.f32");
  add(of_floats, ".{u32,s32,f32}.f64");
  add(of_floats, "{,.ftz}.{u16,s16,u32,s32,f16}.f16");
  add(of_floats, ".{u16,s16,u32,s32,bf16}.bf16");
  add(of_floats, "{,.ftz}.{u32,s32,f16x2}.f16x2");
  add(of_floats, ".{u32,s32,bf16x2}.bf16x2");
  add("{eq,ne}", ".{u32,s32,f32}.{b16,b32,b64}");
  add("{eq,ne,lt,le,gt,ge}", ".{u32,s32,f32}.{u16,u32,u64,s16,s32,s64}");
  add("{lo,ls,hi,hs}", ".{u32,s32,f32}.{u16,u32,u64}");
}

void add(std::vector<Row>& rows, const char* modifiers, Type type) {
  add_warp_row(rows,
               std::string("setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.and,.or,.xor}") +
                   modifiers + "." + std::string(ptx::name_of(type)),
               {.flow = Flow::comparison, .result = Type::pred, .sources = {type, type}}, nullptr,
               decode_packed)
      .kind = Kind::compare;
}

}  // namespace

void add_packed_compare_rows(std::vector<Row>& rows) {
  add(rows, "{,.ftz}", Type::f16x2);
  add(rows, "", Type::bf16x2);
  add_combined_sets(rows);
  add_warp_row(rows, "lop3.{and,or}.b32",
               {.flow = Flow::comparison,
                .operands = {Role::write, Role::read, Role::read, Role::read, Role::none, Role::read}},
               nullptr, decode_combined_logic);
}

}  // namespace assay::vm
