// wmma (PTX ISA 9.7.14.4): fragments whose layout the specification leaves open lie as those of mma.m16n8: A
// in blocks of 16 rows, B and the sum in tiles of 8 columns; m8n32 is computed as D^T = B^T A^T. f16
// fragments of A and B have eight registers in the text; those that the layout does not need repeat the
// others.
//
// A load or store is decoded into one op per register (two and a packing where the halves of a register are
// apart in memory), each an ordinary access with an address per lane.
#include <bit>
#include <cstring>
#include <tuple>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// Which matrix of D = A B + C, as the machine computes it.
enum class Matrix : uint8_t { a, b, sum };

/// One register of a fragment in memory; Op::offset2 of the ops that a load or store becomes.
struct Part {
  Matrix matrix;
  uint8_t rows;  ///< of the form: 8, 16 or 32
  uint8_t tiles;
  uint8_t per;      ///< elements per register
  uint8_t reg;      ///< of the fragment
  uint8_t element;  ///< of the register
  bool row_major;   ///< of the matrix as the machine computes it
  uint8_t bits;     ///< of an element
};
static_assert(sizeof(Part) == 8);

FragmentPlace place_of(const Part& part, int lane) {
  if (part.matrix == Matrix::a) {
    const int lines = part.rows == 8 ? 8 : 16;
    // Registers of a block of 16 rows; 8-bit elements have k = 16, as 16-bit ones.
    const int per_block = part.rows == 8 ? 1 : part.per == 4 ? 2 : 4;
    FragmentPlace at = a_place(lines, part.per, part.reg % per_block, lane, part.element);
    at.row += 16 * (part.reg / per_block);
    return at;
  }
  if (part.matrix == Matrix::b) {
    const int per_tile = part.per == 4 || part.rows == 8 ? 1 : 2;
    FragmentPlace at = b_place(part.per, part.reg % per_tile, lane, part.element);
    at.column += 8 * (part.reg / per_tile);
    return at;
  }
  const bool halves = part.per == 2;
  const int per_tile = (halves ? 2 : 4) / (part.rows == 8 ? 2 : 1), tile = part.reg / per_tile;
  FragmentPlace at = sum_place(halves, part.reg % per_tile, lane, part.element);
  at.column += 8 * (tile % part.tiles);
  at.row += 16 * (tile / part.tiles);
  return at;
}

void part_addresses(Warp& warp, const Op& op) {
  const Part part = std::bit_cast<Part>(op.offset2);
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, warp.address);
  const uint32_t* stride = warp.word(op.s[1]);
  for (int lane = 0; lane < 32; ++lane) {
    const FragmentPlace at = place_of(part, lane);
    const int line = part.row_major ? at.row : at.column, along = part.row_major ? at.column : at.row;
    warp.address[lane] +=
        (static_cast<uint64_t>(line) * stride[lane] + static_cast<uint64_t>(along)) * part.bits / 8;
  }
}

bool load_part(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  part_addresses(warp, op);
  std::byte* host[32];
  warp.space = op.space;
  if (!translate_at(warp, op, mask, op.element_bytes, op.space, host)) return false;
  for (int lane = 0; lane < 32; ++lane) {
    if (op.element_bytes == 8) {
      std::memcpy(&warp.wide(op.slots[0])[lane], host[lane], 8);
      continue;
    }
    uint32_t word = 0;
    std::memcpy(&word, host[lane], op.element_bytes);
    warp.word(op.slots[0])[lane] = word;
  }
  return true;
}

bool store_part(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  part_addresses(warp, op);
  std::byte* host[32];
  warp.space = op.space;
  if (!translate_at(warp, op, mask, op.element_bytes, op.space, host)) return false;
  for (int lane = 0; lane < 32; ++lane)
    std::memcpy(host[lane],
                op.element_bytes == 8 ? static_cast<const void*>(&warp.wide(op.slots[0])[lane])
                                      : &warp.word(op.slots[0])[lane],
                op.element_bytes);
  return true;
}

/// The form that computes SHAPE.
MatrixForm form_of_shape(Decoder& decoder, const std::string& shape) {
  MatrixForm form;
  if (!form.set_shape(shape)) decoder.fail("has no shape");
  if (form.rows == 8 && form.tiles == 4) {
    form.transposed = true;
    form.rows = 32;
    form.tiles = 1;
  }
  return form;
}

Op access_of(const Op& op, const char* row, const Part& part, int bytes, Decoder& decoder, Slot slot) {
  Op made = op;
  made.row = find_row(row);
  made.element_bytes = static_cast<uint8_t>(bytes);
  made.vector_length = 1;
  made.offset2 = std::bit_cast<int64_t>(part);
  made.immediate = bytes == 8 ? 1 : 0;  // as ld and st: the first register is wide
  if (bytes == 8) made.d_cell = Cell::wide;
  decoder.set_slots(made, {slot}, made.row->flow == Flow::load ? 1 : 0);
  return made;
}

/// Ops of a register of two or four elements that are apart in memory: each through a cell of its own.
void append_apart(std::vector<Op>& ops, const Op& op, Part part, bool load, Slot slot, Decoder& decoder) {
  std::vector<Slot> pieces;
  for (int i = 0; i < part.per; ++i) pieces.push_back(decoder.scratch_word());
  Op pack = op;
  pack.row = find_row(load ? "mov.b32 pack" : "mov.b32 unpack");
  pack.kind = pack.row->kind;
  pack.lanes = pack.row->lanes;
  pack.immediate = load ? 0 : 1;
  pack.type = Type::b32;
  pack.element_bytes = part.bits / 8;
  (load ? pack.d : pack.s[0]) = slot;
  pack.d_cell = load ? Cell::word : Cell::none;
  pack.source_count = load ? 0 : 1;
  decoder.set_slots(pack, pieces, load ? 0 : pieces.size());
  if (!load) ops.push_back(pack);
  for (int i = 0; i < part.per; ++i) {
    part.element = static_cast<uint8_t>(i);
    ops.push_back(access_of(op, load ? "wmma.load register" : "wmma.store register", part, part.bits / 8,
                            decoder, pieces[static_cast<size_t>(i)]));
  }
  if (load) ops.push_back(pack);
}

/// wmma.load.{a,b,c}.sync.aligned.LAYOUT.SHAPE{.ss}.TYPE {r}, [p]{, stride};  wmma.store.d...  [p], {r}{,
/// stride};
void decode_access(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 3);
  const std::vector<std::string>& words = decoder.parts(instruction);
  const bool load = words[1] == "load";
  MatrixForm form = form_of_shape(decoder, words[6]);
  const Element element = *element_named(words.back());
  const bool is_a = words[2] == "a", is_b = words[2] == "b";
  // Of D^T = B^T A^T the machine's A is the text's B.
  const Matrix matrix = !is_a && !is_b ? Matrix::sum : is_a != form.transposed ? Matrix::a : Matrix::b;
  form.a = form.b = form.sum = element;
  const int used = matrix == Matrix::a   ? form.a_registers()
                   : matrix == Matrix::b ? form.b_registers()
                                         : form.sum_registers();
  const int written = element == Element::f16 && matrix != Matrix::sum ? 8 : used;
  const ElementFormat& format = format_of(element);
  op.space = words[7] == "shared" ? Space::shared : words[7] == "global" ? Space::global : Space::generic;
  const Operand &registers = instruction.operands[load ? 0 : 1],
                &address = instruction.operands[load ? 1 : 0];
  decoder.address(address, op);
  // Without a stride the matrix is dense.
  const bool row_major = words[5] == "row";
  const int columns = form.transposed ? (is_a ? form.k : 32) : (is_a ? form.k : form.columns());
  const int lines = form.transposed ? (is_b ? form.k : 8) : (is_b ? form.k : form.rows);
  Operand dense;
  dense.kind = Operand::Kind::immediate;
  dense.bits = static_cast<uint64_t>(row_major ? columns : lines);
  op.s[1] = decoder.source(instruction.operands.size() == 3 ? instruction.operands[2] : dense, Type::u32);
  op.source_count = 2;
  op.d_cell = Cell::none;
  op.type = format.bits == 16 ? Type::b16 : format.type;
  std::vector<Slot> slots;
  append_fragment(decoder, instruction, registers, written, element == Element::f64 ? Type::f64 : Type::b32,
                  load, slots);
  Part part{matrix,
            form.rows,
            form.tiles,
            static_cast<uint8_t>(format.bits >= 32 ? 1 : 32 / format.bits),
            0,
            0,
            row_major != form.transposed,
            static_cast<uint8_t>(format.bits)};
  // The elements of a register are neighbours in a row of A, in a column of B, in a row of the sum.
  const bool together = part.per == 1 || part.row_major == (matrix != Matrix::b);
  std::vector<Op> ops;
  for (int r = 0; r < (load ? written : used); ++r) {
    part.reg = static_cast<uint8_t>(r % used);
    if (together)
      ops.push_back(access_of(op, load ? "wmma.load register" : "wmma.store register", part,
                              part.per * part.bits / 8, decoder, slots[static_cast<size_t>(r)]));
    else
      append_apart(ops, op, part, load, slots[static_cast<size_t>(r)], decoder);
  }
  for (size_t i = 0; i + 1 < ops.size(); ++i) decoder.append(ops[i]);
  op = ops.back();
}

/// wmma.mma{.xor.popc,.and.popc}.sync.aligned.LAYOUT.LAYOUT.SHAPE.D{.A.B}.C{.satfinite} {D}, {A}, {B}, {C}:
/// f16 where A and B are not named.
void decode_multiply(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 4, 4);
  std::vector<std::string> words = decoder.parts(instruction);
  const std::string counted = words[2];
  if (words[3] == "popc") words.erase(words.begin() + 2, words.begin() + 4);
  MatrixForm form = form_of_shape(decoder, words[6]);
  form.exclusive = counted == "xor";
  if (words.back() == "satfinite") form.saturate = true, words.pop_back();
  if (words.back() == "rn") words.pop_back();  // as f64 is rounded where nothing is said
  const bool named = words.size() == 11;
  form.sum = *element_named(words[7]);
  form.a = named ? *element_named(words[8]) : Element::f16;
  form.b = named ? *element_named(words[9]) : Element::f16;
  if (form.transposed) {
    const Element a = form.a;
    form.a = form.b, form.b = a;
  }
  if (form.a == Element::tf32) form.split = 4;  // an H200 and its assembler make two steps of it
  op.immediate = form.bits();
  const Operand &a = instruction.operands[form.transposed ? 2 : 1],
                &b = instruction.operands[form.transposed ? 1 : 2];
  const Type type = form.a == Element::f64 ? Type::f64 : Type::b32;
  std::vector<Slot> slots;
  append_fragment(decoder, instruction, instruction.operands[0], form.sum_registers(), type, true, slots);
  const auto append = [&](const Operand& operand, int used) {
    std::vector<Slot> fragment;
    append_fragment(decoder, instruction, operand, named ? used : 8, type, false, fragment);
    slots.insert(slots.end(), fragment.begin(), fragment.begin() + used);
  };
  append(a, form.a_registers());
  append(b, form.b_registers());
  append_fragment(decoder, instruction, instruction.operands[3], form.sum_registers(), type, false, slots);
  decoder.set_slots(op, slots, static_cast<size_t>(form.sum_registers()));
  op.d_cell = Cell::none;
}

}  // namespace

void add_wmma_rows(std::vector<Row>& rows) {
  const auto access = [&](const std::string& form) {
    const bool load = form.starts_with("load");
    if (load)
      add_warp_row(rows, "wmma." + form,
                   {.flow = Flow::load, .operands = {Role::write, Role::load_from, Role::read}}, load_part,
                   decode_access);
    else
      add_warp_row(rows, "wmma." + form, {.flow = Flow::store, .operands = {Role::store_to, Role::read}},
                   store_part, decode_access);
  };
  const std::string shapes = ".sync.aligned.{row,col}.{m16n16k16,m8n32k16,m32n8k16}{,.shared,.global}.",
                    tf32 = ".sync.aligned.{row,col}.m16n16k8{,.shared,.global}.",
                    f64 = ".sync.aligned.{row,col}.m8n8k4{,.shared,.global}.",
                    narrow = ".sync.aligned.{row,col}.{m8n8k32,m8n8k128}{,.shared,.global}.";
  access("load.{a,b}" + shapes + "{f16,bf16,s8,u8}");
  access("load.{a,b}" + tf32 + "tf32");
  access("load.{a,b}" + f64 + "f64");
  access("load.a.sync.aligned.row.m8n8k32{,.shared,.global}.{s4,u4}");  // elements of less than a byte
  access("load.b.sync.aligned.col.m8n8k32{,.shared,.global}.{s4,u4}");
  access("load.a.sync.aligned.row.m8n8k128{,.shared,.global}.b1");
  access("load.b.sync.aligned.col.m8n8k128{,.shared,.global}.b1");
  access("load.c" + narrow + "s32");
  access("store.d" + narrow + "s32");
  access("load.c" + shapes + "{f16,f32,s32}");
  access("load.c" + tf32 + "f32");
  access("load.c" + f64 + "f64");
  access("store.d" + shapes + "{f16,f32,s32}");
  access("store.d" + tf32 + "f32");
  access("store.d" + f64 + "f64");
  // What a load or store becomes.
  access("load register");
  access("store register");
  const auto multiply = [&](const std::string& form, Status status, Type result,
                            const char* beginning = "wmma.mma.sync.aligned.{row,col}.{row,col}.") {
    add_warp_row(rows, beginning + form, {.flow = Flow::matrix, .status = status, .result = result},
                 multiply_fragments_function(), decode_multiply);
  };
  multiply("{m16n16k16,m8n32k16,m32n8k16}.{f16.f16,f32.f32}", Status::measured_on(90), Type::f32);
  multiply("{m16n16k16,m8n32k16,m32n8k16}.f32.bf16.bf16.f32", Status::measured_on(90), Type::f32);
  multiply("m16n16k8.f32.tf32.tf32.f32", Status::measured_on(90), Type::f32);
  multiply("m8n8k4.f64.f64.f64.f64{,.rn}", Status::exact(), Type::f64);
  multiply("{m16n16k16,m8n32k16,m32n8k16}.s32.{s8.s8,u8.u8}.s32{,.satfinite}", Status::exact(), Type::s32);
  multiply("m8n8k32.s32.{s4.s4,u4.u4}.s32{,.satfinite}", Status::exact(), Type::s32,
           "wmma.mma.sync.aligned.row.col.");
  multiply("m8n8k128.s32.b1.b1.s32", Status::exact(), Type::s32,
           "wmma.mma.{xor,and}.popc.sync.aligned.row.col.");
}

}  // namespace assay::vm
