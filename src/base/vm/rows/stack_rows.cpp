// alloca, stacksave, stackrestore (PTX ISA 9.7.15): memory taken from a stack in each thread's local memory,
// by sums and moves of the cell that says where it ends.
#include <algorithm>

#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// What `op` becomes: the row of that form.
void become(Op& op, const char* form) {
  op.row = find_row(form);
  op.kind = op.row->kind, op.lanes = op.row->lanes;
  op.d_cell = Cell::wide;
}

/// alloca.u64 ptr, size{, align}: at least 8 bytes aligned; the pointer is one into local memory.
void decode_allocate(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 3);
  uint64_t align = 8;
  if (instruction.operands.size() == 3) align = std::max(align, decoder.constant(instruction.operands[2]));
  if (align > (1u << 23) || (align & (align - 1)) != 0)
    decoder.fail(instruction, "has an alignment that is no power of two up to 2^23");
  const auto sum = [&](const char* form, Slot to, Slot a, Slot b) {
    Op made = op;
    become(made, form);
    made.d = to, made.s[0] = a, made.s[1] = b, made.source_count = 2;
    decoder.append(made);
    return to;
  };
  const Slot size = decoder.source(instruction.operands[1], Type::u64), end = decoder.stack_end();
  const Slot up = sum("add.u64", decoder.new_cell(Cell::wide), end, decoder.wide_constant(align - 1));
  const Slot pointer = sum("and.b64", decoder.new_cell(Cell::wide), up, decoder.wide_constant(~(align - 1)));
  sum("add.u64", end, pointer, size);
  become(op, "mov.u64");
  op.d = decoder.destination(instruction.operands[0], Type::u64);
  op.s[0] = pointer, op.source_count = 1;
}

void decode_save(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  become(op, "mov.u64");
  op.d = decoder.destination(instruction.operands[0], Type::u64);
  op.s[0] = decoder.stack_end(), op.source_count = 1;
}

void decode_restore(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  become(op, "mov.u64");
  op.d = decoder.stack_end();
  op.s[0] = decoder.source(instruction.operands[0], Type::u64), op.source_count = 1;
}

}  // namespace

void add_stack_rows(std::vector<Row>& rows) {
  add_warp_row(rows, "alloca.u64",
               {.flow = Flow::integer, .result = Type::u64, .operands = {Role::write, Role::read}}, nullptr,
               decode_allocate);
  add_warp_row(rows, "stacksave.u64", {.flow = Flow::integer, .result = Type::u64, .operands = {Role::write}},
               nullptr, decode_save);
  add_warp_row(rows, "stackrestore.u64", {.operands = {Role::read}}, nullptr, decode_restore);
}

}  // namespace assay::vm
