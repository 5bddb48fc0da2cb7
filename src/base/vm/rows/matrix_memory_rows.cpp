// ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15 to 17): 8x8 matrices of 16-bit elements between
// shared memory and the registers of a warp.
#include <cstring>

#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

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

/// The halves of the register of lane l: row l / 4, columns 2(l mod 4) and the next; .trans: exchanged.
bool store_matrix(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  const uint32_t matrices = op.slot_count;
  const uint32_t givers = matrices == 4 ? ~0u : (1u << (8 * matrices)) - 1;
  std::byte* host[32];
  if (!translate(warp, op, givers, 16, host)) return false;
  const bool transposed = op.immediate & 1;
  for (uint32_t m = 0; m < matrices; ++m) {
    uint16_t tile[8][8];
    const uint32_t* s = warp.word(op.slots[m]);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t row = lane / 4, column = 2 * (lane % 4);
      (transposed ? tile[column][row] : tile[row][column]) = static_cast<uint16_t>(s[lane]);
      (transposed ? tile[column + 1][row] : tile[row][column + 1]) = static_cast<uint16_t>(s[lane] >> 16);
    }
    for (uint32_t row = 0; row < 8; ++row) std::memcpy(host[8 * m + row], tile[row], 16);
  }
  return true;
}

/// The matrix of the warp's registers, transposed.
bool move_matrix(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  uint16_t tile[8][8];
  std::memcpy(tile, warp.word(op.s[0]),
              sizeof tile);  // lane l holds row l / 4, columns 2(l mod 4) and the next
  uint32_t* d = warp.word(op.d);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t row = lane / 4, column = 2 * (lane % 4);
    d[lane] = uint32_t{tile[column + 1][row]} << 16 | tile[column][row];
  }
  return true;
}

/// {l,s}tmatrix: the registers are operand `registers`, the address is the other one.
void decode_matrix(Decoder& decoder, const ptx::Instruction& instruction, Op& op, size_t registers) {
  decoder.expect_operands(instruction, 2, 2);
  int matrices = 1;
  op.space = Space::generic;
  for (const std::string& word : decoder.parts(instruction)) {
    if (word == "x2") matrices = 2;
    if (word == "x4") matrices = 4;
    if (word == "trans") op.immediate = 1;
    if (word == "shared") op.space = Space::shared;
  }
  decoder.address(instruction.operands[1 - registers], op);
  std::vector<Slot> slots;
  append_fragment(decoder, instruction, instruction.operands[registers], matrices, Type::b32, registers == 0,
                  slots);
  decoder.set_slots(op, slots, registers == 0 ? slots.size() : 0);
  op.type = Type::b16;
  op.d_cell = Cell::none;
}
void decode_load_matrix(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decode_matrix(decoder, instruction, op, 0);
}
void decode_store_matrix(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decode_matrix(decoder, instruction, op, 1);
}

void decode_move_matrix(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  op.d = decoder.destination(instruction.operands[0], Type::b32);
  op.s[0] = decoder.source(instruction.operands[1], Type::b32);
  op.source_count = 1;
}

}  // namespace

void add_matrix_memory_rows(std::vector<Row>& rows) {
  // The number of matrices stands behind the shape in the specification; assemblers take both orders.
  const std::string shapes = "{m8n8.x1,m8n8.x2,m8n8.x4,x1.m8n8,x2.m8n8,x4.m8n8}{,.trans}{,.shared}.b16";
  add_warp_row(rows, "ldmatrix.sync.aligned." + shapes,
               {.flow = Flow::load_matrix, .result = Type::b32, .operands = {Role::write, Role::load_from}},
               load_matrix, decode_load_matrix);
  add_warp_row(rows, "stmatrix.sync.aligned." + shapes,
               {.flow = Flow::store_matrix, .operands = {Role::store_to, Role::read}}, store_matrix,
               decode_store_matrix);
  add_warp_row(rows, "movmatrix.sync.aligned.m8n8.trans.b16",
               {.flow = Flow::move_matrix, .result = Type::b32}, move_matrix, decode_move_matrix);
}

}  // namespace assay::vm
