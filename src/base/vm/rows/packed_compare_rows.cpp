// setp of two halves at once (PTX ISA 9.7.7, "setp" for half precision): p is the low half's, q the high
// half's result. It becomes two comparisons of one half each; the low one reads the low bits of the packed
// register.
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// Emits the shift that brings the high half down; returns its cell.
Slot high_half(Decoder& decoder, const Op& user, Slot packed) {
  Operand sixteen;
  sixteen.kind = Operand::Kind::immediate;
  sixteen.bits = 16;
  Op shift = user;
  shift.row = find_row("shr.u32");
  shift.kind = shift.row->kind;
  shift.lanes = shift.row->lanes;
  shift.d_cell = Cell::word;
  shift.d = decoder.new_cell(Cell::word);
  shift.d2 = no_slot;
  shift.boolean = BooleanOp::none;
  shift.s[0] = packed;
  shift.s[1] = decoder.source(sixteen, Type::u32);
  shift.s[2] = no_slot;
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
}

}  // namespace assay::vm
