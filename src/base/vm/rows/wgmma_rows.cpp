// wgmma (PTX ISA 9.7.15): a warpgroup of four warps multiplies 64 rows; each warp its own 16, with B, and A
// where it has a descriptor, from shared memory; of a sparse A (.sp) the half of k that it has. Operands are
// read and results written at issue; until the wait that covers it an instruction is in flight, and nothing
// may touch its registers (WarpgroupWork, src/base/vm/warpgroup.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/vm/decoder.h"
#include "src/base/vm/matrix_descriptor.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/tensor_core_warp.h"
#include "src/base/vm/warp.h"
#include "src/base/vm/warpgroup.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// Reads 16-byte pieces of one operand; remembers the first that lies outside.
class SharedMatrix {
 public:
  SharedMatrix(const Warp& warp, uint64_t descriptor, bool mn_major)
      : descriptor_(decode_descriptor(descriptor)),
        mn_major_(mn_major),
        data_(warp.block->shared.data() + uint64_t{warp.rank} * warp.block->shared_stride),
        size_(warp.block->shared_bytes) {}

  const std::byte* piece(uint32_t line, uint32_t piece) {
    static constexpr std::byte nothing[16]{};
    const uint64_t at = piece_address(descriptor_, mn_major_, line, piece);
    if (at + 16 <= size_) return data_ + at;
    outside = at;
    return nothing;
  }
  uint64_t outside = ~uint64_t{0};

 private:
  MatrixDescriptor descriptor_;
  bool mn_major_;
  const std::byte* data_;
  uint64_t size_;
};

/// Eight lines from `first` of a K-major operand, `depth` elements each: element i of line l goes to to[l *
/// along + i * across].
template <class Stored, class Value>
void read_lines(SharedMatrix& matrix, uint32_t first, int depth, int32_t* to, int along, int across) {
  constexpr int per_piece = 16 / static_cast<int>(sizeof(Stored));
  const auto pieces = static_cast<uint32_t>(depth / per_piece);
  for (uint32_t line = 0; line < 8; ++line)
    for (uint32_t p = 0; p < pieces; ++p) {
      Stored piece[per_piece];
      std::memcpy(piece, matrix.piece(first + line, p), 16);
      int32_t* at = to + static_cast<int>(line) * along + static_cast<int>(p) * per_piece * across;
      for (int i = 0; i < per_piece; ++i) at[i * across] = static_cast<Value>(piece[i]);
    }
}

/// Eight rows (columns) of an operand that has `depth` elements in each.
void read_eight(SharedMatrix& matrix, Element element, int depth, bool mn_major, uint32_t eight, int32_t* to,
                int along, int across) {
  if (mn_major) {
    for (uint32_t k = 0; k < static_cast<uint32_t>(depth); ++k) {
      uint16_t piece[8];
      std::memcpy(piece, matrix.piece(k, eight), 16);
      for (int i = 0; i < 8; ++i) to[i * along + static_cast<int>(k) * across] = piece[i];
    }
    return;
  }
  switch (format_of(element).bits) {
    case 32:
      return read_lines<uint32_t, int32_t>(matrix, 8 * eight, depth, to, along, across);
    case 16:
      return read_lines<uint16_t, uint16_t>(matrix, 8 * eight, depth, to, along, across);
    default:
      return element == Element::s8
                 ? read_lines<int8_t, int8_t>(matrix, 8 * eight, depth, to, along, across)
                 : read_lines<uint8_t, uint8_t>(matrix, 8 * eight, depth, to, along, across);
  }
}

void flip_signs(Element element, int count, int32_t* words) {
  const auto sign = static_cast<int32_t>(1u << (format_of(element).bits - 1));
  for (int i = 0; i < count; ++i) words[i] ^= sign;
}

bool outside(Warp& warp, const Op& op, char operand, uint64_t address) {
  return raise(warp, op, 0, TrapKind::out_of_bounds,
               fmt::format("operand {} reaches shared memory at byte {} of {}", operand, address,
                           warp.block->shared_bytes));
}

bool multiply_async(Warp& warp, const Op& op, uint32_t mask) {
  const MatrixForm form = MatrixForm::of(op.immediate);
  if (!issue(warp, op, mask)) return false;
  const bool add = ((op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2])) & 1) != 0;
  const int sum_registers = form.sum_registers() / form.tiles;
  MatrixTile tile;
  if (form.a_in_shared) {
    SharedMatrix a(warp, warp.wide(op.s[0])[0], form.a_by_column);
    for (uint32_t half = 0; half < 2; ++half)
      read_eight(a, form.a, form.a_depth(), form.a_by_column, 2 * (warp.index % 4) + half, tile.a + half * 8,
                 1, 16);
    if (a.outside != ~uint64_t{0}) return outside(warp, op, 'A', a.outside);
    if (form.negate_a) flip_signs(form.a, 16 * form.a_depth(), tile.a);
    tile.a_changed();
  } else {
    const uint32_t* a[4];
    for (int i = 0; i < 4; ++i) a[i] = warp.word(op.slots[form.sum_registers() + i]);
    load_a(form.kept(), a, tile);
  }
  SharedMatrix b(warp, warp.wide(op.s[1])[0], form.b_by_row);
  const TensorCoreModel& core = *warp.block->context->tensor_core;
  for (int t = 0; t < form.tiles; ++t) {
    read_eight(b, form.b, form.k, form.b_by_row, static_cast<uint32_t>(t), tile.b, 1, 8);
    if (form.negate_b) flip_signs(form.b, 8 * form.k, tile.b);
    uint32_t* d[4];
    for (int i = 0; i < sum_registers; ++i) d[i] = warp.word(op.slots[t * sum_registers + i]);
    if (add)
      load_sum(form, d, tile);
    else
      std::fill_n(tile.c, 128, 0);
    if (form.sparse)
      multiply_kept(core, form, warp.word(op.slots[op.slot_count - 1]), tile);
    else
      multiply(core, form, tile);
    store_sum(form, tile, d);
  }
  return b.outside == ~uint64_t{0} || outside(warp, op, 'B', b.outside);
}

/// wgmma.mma_async{.sp}.sync.aligned.SHAPE.D.A.B{.satfinite} {D}, A or {A}, B{, metadata, selector},
/// scale-d{, imm-scale-a, imm-scale-b{, {imm-trans-a,} imm-trans-b}}
void decode_multiply(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  std::vector<std::string> words = decoder.parts(instruction);
  const std::vector<Operand>& operands = instruction.operands;
  MatrixForm form;
  form.sparse = words[2] == "sp";
  if (form.sparse) words.erase(words.begin() + 2);
  form.set_shape(words[4]);
  form.warpgroup = true;
  form.sum = *element_named(words[5]);
  form.a = *element_named(words[6]);
  form.b = *element_named(words[7]);
  form.saturate = words.back() == "satfinite";
  const bool integer = format_of(form.sum).integer, sixteen = format_of(form.a).bits == 16;
  form.a_in_shared = operands.size() > 1 && operands[1].kind != Operand::Kind::vector;
  const size_t scale_at = form.sparse ? 5 : 3;
  const size_t count = scale_at + (integer ? 1 : sixteen ? (form.a_in_shared ? 5 : 4) : 3);
  decoder.expect_operands(instruction, count, count);
  const auto modifier = [&](size_t i, uint64_t first, uint64_t second) {
    const uint64_t value = decoder.constant(operands[i]);
    if (value != first && value != second)
      decoder.fail(instruction,
                   fmt::format("has {} as operand {}; {} and {} are possible", static_cast<int64_t>(value),
                               i + 1, static_cast<int64_t>(first), static_cast<int64_t>(second)));
    return value == second;
  };
  if (!integer) {
    form.negate_a = modifier(scale_at + 1, 1, ~uint64_t{0});
    form.negate_b = modifier(scale_at + 2, 1, ~uint64_t{0});
  }
  if (sixteen) {
    if (form.a_in_shared) form.a_by_column = modifier(scale_at + 3, 0, 1);
    form.b_by_row = modifier(count - 1, 0, 1);
  }
  if (form.sparse) form.selector = selector_of(decoder, instruction, operands[4], form);
  op.immediate = form.bits();
  std::vector<Slot> slots;
  append_fragment(decoder, instruction, operands[0], form.sum_registers(), Type::b32, true, slots);
  if (form.a_in_shared)
    op.s[0] = decoder.source(operands[1], Type::b64);
  else
    append_fragment(decoder, instruction, operands[1], form.a_registers(), Type::b32, false, slots);
  op.s[1] = decoder.source(operands[2], Type::b64);
  if (form.sparse) slots.push_back(decoder.source(operands[3], Type::b32));
  Operand scale = operands[scale_at];
  op.third_negated = scale.negated;
  scale.negated = false;
  op.s[2] = decoder.source(scale, Type::pred);
  decoder.set_slots(op, slots, static_cast<size_t>(form.sum_registers()));
  op.d_cell = Cell::none;
}

bool fence(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  warp.products_fenced = true;
  return true;
}

bool commit(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  warp.products.commit(~0u);
  return true;
}

bool wait(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  warp.products.wait(~0u, op.immediate, [](const auto&, uint32_t) {});
  // A warpgroup's product is one: none of its warps goes on before all have made their part.
  constexpr uint64_t hopeless = uint64_t{1} << 20;
  if (completed_by_all(warp)) {
    warp.idle_polls = 0;
    return true;
  }
  warp.stalls = true;
  return ++warp.idle_polls < hopeless ||
         raise(warp, op, 0, TrapKind::warpgroup,
               "other warps of the warpgroup do not execute the wgmma that it waits for");
}

void decode_plain(Decoder& decoder, const ptx::Instruction& instruction, Op&) {
  decoder.expect_operands(instruction, 0, 0);
}
void decode_wait(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  op.immediate = decoder.constant(instruction.operands[0]);
}

/// "{8,16,...,256}": columns of D in steps of 8, for integers of 16 beyond 32 (PTX ISA, wgmma shapes).
std::string columns(bool integers) {
  std::string list;
  for (int n = 8; n <= 256; n += 8)
    if (!integers || n <= 32 || n % 16 == 0) list += (list.empty() ? "" : ",") + std::to_string(n);
  return "m64n{" + list + "}";
}

}  // namespace

void add_wgmma_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& form, Status status, Type result,
                       const char* opcode = "wgmma.mma_async.sync.aligned.") {
    add_warp_row(rows, opcode + form,
                 {.flow = Flow::matrix,
                  .status = status,
                  .result = result,
                  .operands = {Role::update, Role::read},
                  .asynchronous = {Completion::wgmma_group, Step::issue, Proxy::async}},
                 multiply_async, decode_multiply);
  };
  const Status measured = Status::measured_on(90);
  const std::string floats = columns(false);
  add(floats + "k16.f32.{f16.f16,bf16.bf16}", measured, Type::f32);
  add(floats + "k16.f16.f16.f16", measured, Type::f16x2);
  add(floats + "k8.f32.tf32.tf32", measured, Type::f32);
  add(floats + "k32.f32.{e4m3,e5m2}.{e4m3,e5m2}", measured, Type::f32);
  add(floats + "k32.f16.{e4m3,e5m2}.{e4m3,e5m2}", measured, Type::f16x2);
  add(columns(true) + "k32.s32.{s8,u8}.{s8,u8}{,.satfinite}", Status::exact(), Type::s32);
  const auto sparse = [&](const std::string& form, Status status, Type result) {
    add(form, status, result, "wgmma.mma_async.sp.sync.aligned.");
  };
  sparse(floats + "k32.f32.{f16.f16,bf16.bf16}", measured, Type::f32);
  sparse(floats + "k32.f16.f16.f16", measured, Type::f16x2);
  sparse(floats + "k16.f32.tf32.tf32", measured, Type::f32);
  sparse(floats + "k64.f32.{e4m3,e5m2}.{e4m3,e5m2}", measured, Type::f32);
  sparse(floats + "k64.f16.{e4m3,e5m2}.{e4m3,e5m2}", measured, Type::f16x2);
  sparse(columns(true) + "k64.s32.{s8,u8}.{s8,u8}{,.satfinite}", Status::exact(), Type::s32);
  const auto control = [&](const char* name, Step step, WarpFunction function, DecodeFunction decode) {
    add_warp_row(rows, std::string("wgmma.") + name + ".sync.aligned",
                 {.operands = {Role::none}, .asynchronous = {Completion::wgmma_group, step, Proxy::async}},
                 function, decode);
  };
  control("fence", Step::fence, fence, decode_plain);
  control("commit_group", Step::commit, commit, decode_plain);
  control("wait_group", Step::wait, wait, decode_wait);
}

}  // namespace assay::vm
