// mma.sync and ldmatrix (PTX ISA 9.7.14): fragments in registers; the arithmetic is in tensor_core.h.
#include <cstring>

#include "src/ptx/type.h"
#include "src/vm/decoder.h"
#include "src/vm/rows/warp_rows.h"
#include "src/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// Tensor-core instructions are .aligned: every lane of the warp must execute them together.
bool whole_warp(Warp& warp, const Op& op, uint32_t mask) {
  if (mask == ~0u) return true;
  return raise(warp, op, std::countr_zero(~mask), "barrier",
               "not all 32 lanes execute this .aligned instruction together");
}

/// Registers of A and B of an m16n8 shape: k times the operand's width over the lanes.
struct Shape {
  int k, a_registers, b_registers;
  Dtype format;
};

Shape shape_of(const Op& op) {
  const auto k = static_cast<int>(op.immediate);
  const int bytes = op.type == Type::tf32 ? 4 : 2;
  const Dtype format = op.type == Type::tf32 ? Dtype::tf32 : op.type == Type::f16 ? Dtype::fp16 : Dtype::bf16;
  return {k, k * bytes / 8, k * bytes / 16, format};
}

bool multiply(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  const Shape shape = shape_of(op);
  alignas(64) uint32_t fragments[4 + 4 + 2 + 4][32];  // D, A, B, C
  const int sources = shape.a_registers + shape.b_registers + 4;
  for (int i = 0; i < sources; ++i)
    std::memcpy(fragments[4 + i], warp.word(op.slots[4 + i]), sizeof fragments[0]);
  const auto* a = fragments + 4;
  const auto* b = a + shape.a_registers;
  const auto* c = b + shape.b_registers;
  mma_m16n8_f32(*warp.block->context->tensor_core, shape.format, shape.k, a, b, c, fragments);
  for (int i = 0; i < 4; ++i) std::memcpy(warp.word(op.slots[i]), fragments[i], sizeof fragments[0]);
  return true;
}

/// mma.sync.aligned.m16n8kK.row.col.f32.T.T.f32 {D}, {A}, {B}, {C};
void decode_multiply(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 4, 4);
  const std::vector<std::string> words = decoder.parts(instruction);
  op.immediate = static_cast<uint64_t>(std::stoi(words[3].substr(words[3].find('k') + 1)));
  op.type = *ptx::type_named(words[7]);
  const Shape shape = shape_of(op);
  const size_t counts[4] = {4, static_cast<size_t>(shape.a_registers), static_cast<size_t>(shape.b_registers),
                            4};
  std::vector<Slot> slots;
  for (size_t i = 0; i < 4; ++i) {
    const Operand& fragment = instruction.operands[i];
    const std::vector<Operand> elements =
        fragment.kind == Operand::Kind::vector ? fragment.elements : std::vector<Operand>{fragment};
    if (elements.size() != counts[i])
      decoder.fail(instruction, "has a fragment of a wrong number of registers");
    for (const Operand& element : elements)
      slots.push_back(i == 0 ? decoder.destination(element, Type::f32)
                             : decoder.source(element, i == 3 ? Type::f32 : Type::b32));
  }
  decoder.set_slots(op, slots);
  op.d_cell = Cell::none;
}

/// Lane l gives the address of row l mod 8 of matrix l / 8; it receives, of each matrix, row l / 4, columns
/// 2(l mod 4) and the next (.trans: rows and columns exchanged).
bool load_matrix(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  const uint32_t matrices = op.slot_count;
  const uint32_t givers = matrices == 4 ? ~0u : (1u << (8 * matrices)) - 1;
  std::byte* host[32];
  if (!translate(warp, op, givers, 16, host)) return false;
  const bool transposed = op.immediate & 1;
  for (uint32_t m = 0; m < matrices; ++m) {
    uint16_t tile[8][8];
    for (uint32_t row = 0; row < 8; ++row) std::memcpy(tile[row], host[8 * m + row], 16);
    uint32_t* d = warp.word(op.slots[m]);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t row = lane / 4, column = 2 * (lane % 4);
      const uint32_t low = transposed ? tile[column][row] : tile[row][column];
      const uint32_t high = transposed ? tile[column + 1][row] : tile[row][column + 1];
      d[lane] = high << 16 | low;
    }
  }
  return true;
}

void decode_load_matrix(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  size_t matrices = 1;
  op.space = Space::generic;
  for (const std::string& word : decoder.parts(instruction)) {
    if (word == "x2") matrices = 2;
    if (word == "x4") matrices = 4;
    if (word == "trans") op.immediate = 1;
    if (word == "shared") op.space = Space::shared;
  }
  decoder.address(instruction.operands[1], op);
  const Operand& to = instruction.operands[0];
  const std::vector<Operand> elements =
      to.kind == Operand::Kind::vector ? to.elements : std::vector<Operand>{to};
  if (elements.size() != matrices) decoder.fail(instruction, "has a wrong number of destination registers");
  std::vector<Slot> slots;
  for (const Operand& element : elements) slots.push_back(decoder.destination(element, Type::b32));
  decoder.set_slots(op, slots);
  op.type = Type::b16;
  op.d_cell = Cell::none;
}

void add(std::vector<Row>& rows, std::string pattern, Effect effect, Status status, Type result,
         WarpFunction function, void (*decode)(Decoder&, const ptx::Instruction&, Op&)) {
  Row made;
  made.pattern = std::move(pattern);
  made.kind = Kind::warp;
  made.effect = effect;
  made.status = status;
  made.result = result;
  made.warp = function;
  made.decode = decode;
  rows.push_back(std::move(made));
}

}  // namespace

void add_matrix_rows(std::vector<Row>& rows) {
  const Status measured = Status::measured_sm90;
  add(rows, "mma.sync.aligned.m16n8k{8,16}.row.col.f32.bf16.bf16.f32", Effect::matrix, measured, Type::f32,
      multiply, decode_multiply);
  add(rows, "mma.sync.aligned.m16n8k{8,16}.row.col.f32.f16.f16.f32", Effect::matrix, measured, Type::f32,
      multiply, decode_multiply);
  add(rows, "mma.sync.aligned.m16n8k{4,8}.row.col.f32.tf32.tf32.f32", Effect::matrix, measured, Type::f32,
      multiply, decode_multiply);
  add(rows, "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared}.b16", Effect::load_matrix,
      Status::exact, Type::b32, load_matrix, decode_load_matrix);
}

}  // namespace assay::vm
