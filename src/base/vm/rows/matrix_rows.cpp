// mma.sync (PTX ISA 9.7.14): fragments in registers (matrix_form.h); the arithmetic is in tensor_core.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/tensor_core_warp.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// One step of an f64 sum. A NaN passes with its payload, made quiet, b before c before a, and an invalid
/// operation makes 0xfff8000000000000, as in fma.rn.f64.
double fused(double a, double b, double c) {
  const double sum = std::fma(a, b, c);
  if (!std::isnan(sum)) return sum;
  const double source = std::isnan(b) ? b : std::isnan(c) ? c : a;
  const uint64_t made =
      std::isnan(source) ? std::bit_cast<uint64_t>(source) | 0x0008000000000000u : 0xfff8000000000000u;
  return std::bit_cast<double>(made);
}

/// PTX ISA, mma with .f64: each step one fused multiply-add, k ascending from c.
bool multiply_doubles(Warp& warp, const Op& op, const MatrixForm& form) {
  const int a_registers = form.a_registers(), b_registers = form.b_registers(),
            sum_registers = form.sum_registers();
  const auto value = [&](int slot, int lane) {
    return std::bit_cast<double>(warp.wide(op.slots[slot])[lane]);
  };
  double a[16][16], b[16][8], d[4][32];
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < a_registers; ++r) {
      const FragmentPlace at = a_place(form.rows, 1, r, lane, 0);
      a[at.row][at.column] = value(sum_registers + r, lane);
    }
    for (int r = 0; r < b_registers; ++r) {
      const FragmentPlace at = b_place(1, r, lane, 0);
      b[at.row][at.column] = value(sum_registers + a_registers + r, lane);
    }
  }
  for (int r = 0; r < sum_registers; ++r)
    for (int lane = 0; lane < 32; ++lane) {
      const FragmentPlace at = sum_place(false, r, lane, 0);
      double sum = value(sum_registers + a_registers + b_registers + r, lane);
      for (int i = 0; i < form.k; ++i) sum = fused(a[at.row][i], b[i][at.column], sum);
      d[r][lane] = sum;
    }
  for (int r = 0; r < sum_registers; ++r) std::memcpy(warp.wide(op.slots[r]), d[r], sizeof d[r]);
  return true;
}

/// PTX ISA, mma with .b1: of a row of A and a column of B the bits that are in both (.and), or in one of them
/// (.xor), are counted and added to C, wrapping around in 32 bits. A register has 32 neighbours along k.
bool multiply_bits(Warp& warp, const Op& op, const MatrixForm& form) {
  const int sums = form.sum_registers(), a_registers = form.a_registers(), b_registers = form.b_registers();
  constexpr int most_words = 8;  // 256 bits
  uint32_t a[16][most_words], b[8][most_words], d[4][32];
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < a_registers; ++r) {
      const FragmentPlace at = a_place(form.rows, 32, r, lane, 0);
      a[at.row][at.column / 32] = warp.word(op.slots[sums + r])[lane];
    }
    for (int r = 0; r < b_registers; ++r) {
      const FragmentPlace at = b_place(32, r, lane, 0);
      b[at.column][at.row / 32] = warp.word(op.slots[sums + a_registers + r])[lane];
    }
  }
  for (int r = 0; r < sums; ++r)
    for (int lane = 0; lane < 32; ++lane) {
      const FragmentPlace at = sum_place(false, r, lane, 0);
      uint32_t sum = warp.word(op.slots[sums + a_registers + b_registers + r])[lane];
      for (int word = 0; word < form.k / 32; ++word) {
        const uint32_t x = a[at.row][word], y = b[at.column][word];
        sum += static_cast<uint32_t>(std::popcount(form.exclusive ? x ^ y : x & y));
      }
      d[r][lane] = sum;
    }
  for (int r = 0; r < sums; ++r) std::memcpy(warp.word(op.slots[r]), d[r], sizeof d[r]);
  return true;
}

bool multiply_fragments(Warp& warp, const Op& op, uint32_t mask) {
  if (!whole_warp(warp, op, mask)) return false;
  const MatrixForm form = MatrixForm::of(op.immediate);
  if (form.a == Element::f64) return multiply_doubles(warp, op, form);
  if (form.a == Element::b1) return multiply_bits(warp, op, form);
  const int blocks = form.rows == 32 ? 2 : 1;
  const int a_registers = form.a_registers() / blocks, b_registers = form.b_registers() / form.tiles,
            sums = form.sum_registers(), sum_registers = sums / (blocks * form.tiles);
  const uint32_t* source[40];
  for (int i = sums; i < op.slot_count; ++i) source[i] = warp.word(op.slots[i]);
  const uint32_t *const *a = source + sums, *const *b = a + form.a_registers(),
                        *const *c = b + form.b_registers();
  const uint32_t* metadata = source[op.slot_count - 1];  // of a sparse A
  // D may lie in the registers of A, B or C: written when all is read.
  alignas(64) uint32_t results[16][32];
  uint32_t* d[16];
  for (int i = 0; i < sums; ++i) d[i] = results[i];
  MatrixTile tile;
  for (int block = 0; block < blocks; ++block) {
    load_a(form.sparse ? form.kept() : form, a + block * a_registers, tile);
    for (int t = 0; t < form.tiles; ++t) {
      const int at = (block * form.tiles + t) * sum_registers;
      load_b(form, b + t * b_registers, tile);
      load_sum(form, c + at, tile);
      if (form.sparse)
        multiply_kept(*warp.block->context->tensor_core, form, metadata, tile);
      else
        multiply(*warp.block->context->tensor_core, form, tile);
      store_sum(form, tile, d + at);
    }
  }
  for (int i = 0; i < sums; ++i) std::memcpy(warp.word(op.slots[i]), d[i], sizeof results[0]);
  return true;
}

/// mma{.sp}.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C{.xor.popc,.and.popc} {D}, {A}, {B}, {C}
/// {, metadata, selector}
void decode_multiply(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  std::vector<std::string> words = decoder.parts(instruction);
  MatrixForm form;
  form.sparse = words[1].starts_with("sp");
  if (form.sparse) words.erase(words.begin() + 1);
  const int operands = form.sparse ? 6 : 4;
  decoder.expect_operands(instruction, operands, operands);
  const size_t first = words[6] == "satfinite" ? 7 : 6;
  form.set_shape(words[3]);
  form.saturate = first == 7;
  form.exclusive = words[words.size() - 2] == "xor";
  form.sum = *element_named(words[first]);
  form.a = *element_named(words[first + 1]);
  form.b = *element_named(words[first + 2]);
  if (form.sparse) {
    form.selector = selector_of(decoder, instruction, instruction.operands[5], form);
  }
  op.immediate = form.bits();
  const int counts[4] = {form.sum_registers(), form.a_registers(), form.b_registers(), form.sum_registers()};
  std::vector<Slot> slots;
  for (size_t i = 0; i < 4; ++i)
    append_fragment(decoder, instruction, instruction.operands[i], counts[i],
                    form.a == Element::f64 ? Type::f64 : Type::b32, i == 0, slots);
  if (form.sparse) slots.push_back(decoder.source(instruction.operands[4], Type::b32));
  decoder.set_slots(op, slots, static_cast<size_t>(form.sum_registers()));
  op.d_cell = Cell::none;
}

}  // namespace

std::vector<Element> elements_of(const ptx::Instruction& instruction) {
  std::vector<Element> named;
  const std::string_view opcode = instruction.opcode;
  for (size_t at = 0; at < opcode.size();) {
    const size_t dot = std::min(opcode.find('.', at), opcode.size());
    if (const auto element = element_named(opcode.substr(at, dot - at))) named.push_back(*element);
    at = dot + 1;
  }
  return named;
}

bool has_sparse_a(const ptx::Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  return opcode.find(".sp.") != std::string_view::npos || opcode.find(".sp::") != std::string_view::npos;
}

bool whole_warp(Warp& warp, const Op& op, uint32_t mask) {
  if (mask == ~0u) return true;
  return raise(
      warp, op, std::countr_zero(~mask), TrapKind::barrier,
      "not all 32 lanes execute this .aligned instruction together: " + absent_text(warp, mask, ~0u));
}

uint8_t selector_of(Decoder& decoder, const ptx::Instruction& instruction, const Operand& selector,
                    const MatrixForm& form) {
  const auto choices = static_cast<uint64_t>(selectors_of(form));
  if (selector.kind != Operand::Kind::immediate || selector.bits >= choices)
    decoder.fail(instruction, "has a sparsity selector that is no constant below " + std::to_string(choices));
  return selector.bits & 3;
}

void append_fragment(Decoder& decoder, const ptx::Instruction& instruction, const Operand& fragment,
                     int count, Type type, bool destination, std::vector<Slot>& slots) {
  const std::vector<Operand> elements =
      fragment.kind == Operand::Kind::vector ? fragment.elements : std::vector<Operand>{fragment};
  if (static_cast<int>(elements.size()) != count)
    decoder.fail(instruction, "has a fragment of " + std::to_string(elements.size()) +
                                  " registers; the shape needs " + std::to_string(count));
  for (const Operand& element : elements)
    slots.push_back(destination ? decoder.destination(element, type) : decoder.source(element, type));
}

WarpFunction multiply_fragments_function() {
  return multiply_fragments;
}

void add_matrix_rows(std::vector<Row>& rows) {
  const Status measured = Status::measured_on(90), exact = Status::exact();
  const struct {
    const char *dense, *sparse;  ///< shapes; sparse ones multiply half of A; nullptr: there is none
    const char* types;
    Status status;
    Type result;
  } forms[] = {
      {"m16n8k{8,16}", "m16n8k{16,32}", ".f32.bf16.bf16.f32", measured, Type::f32},
      {"m16n8k{8,16}", "m16n8k{16,32}", ".f32.f16.f16.f32", measured, Type::f32},
      {"m16n8k{8,16}", "m16n8k{16,32}", ".f16.f16.f16.f16", measured, Type::f16x2},
      {"m16n8k{4,8}", "m16n8k{8,16}", ".f32.tf32.tf32.f32", measured, Type::f32},
      {"m16n8k{16,32}", "m16n8k64", ".f32.{e4m3,e5m2}.{e4m3,e5m2}.f32", measured, Type::f32},
      {"m16n8k{16,32}", nullptr, ".f16.{e4m3,e5m2}.{e4m3,e5m2}.f16", measured, Type::f16x2},
      {"{m8n8k4,m16n8k4,m16n8k8,m16n8k16}", nullptr, ".f64.f64.f64.f64", exact, Type::f64},
      {"{m8n8k16,m16n8k16,m16n8k32}", "m16n8k{32,64}", "{,.satfinite}.s32.{s8,u8}.{s8,u8}.s32", exact,
       Type::s32},
      {"{m8n8k32,m16n8k32,m16n8k64}", "m16n8k{64,128}", "{,.satfinite}.s32.{s4,u4}.{s4,u4}.s32", exact,
       Type::s32},
      {"{m8n8k128,m16n8k128,m16n8k256}", nullptr, ".s32.b1.b1.s32.{xor,and}.popc", exact, Type::s32},
  };
  const auto add = [&](const char* opcode, const char* shapes, const auto& form, WarpFunction function) {
    add_warp_row(rows, std::string(opcode) + shapes + ".row.col" + form.types,
                 {.flow = Flow::matrix, .status = form.status, .result = form.result}, function,
                 decode_multiply);
  };
  for (const auto& form : forms) add("mma.sync.aligned.", form.dense, form, multiply_fragments);
  // With unordered metadata (.sp) and in the order of k, which is what valid ones have.
  for (const auto& form : forms)
    if (form.sparse)
      add("mma.{sp,sp::ordered_metadata}.sync.aligned.", form.sparse, form, multiply_fragments);
}

}  // namespace assay::vm
