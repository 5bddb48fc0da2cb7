// Addresses in the shared memory of another block of the cluster (PTX ISA 9.7.9.23, 9.7.9.24).
#include "src/base/vm/decoder.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Space;
using ptx::Type;

constexpr uint64_t offset_mask = (uint64_t{1} << shared_rank_bit) - 1;

uint64_t address_of(const Warp& warp, const Op& op, int lane) {
  return op.address_wide ? warp.wide(op.s[0])[lane] : warp.word(op.s[0])[lane];
}

/// mapa: the same place in block s[1] of the cluster.
bool map_address(Warp& warp, const Op& op, uint32_t mask) {
  const uint64_t window = op.space == Space::shared ? 0 : shared_window;
  each_lane(mask, [&](int lane) {
    const uint64_t rank = warp.word(op.s[1])[lane];
    const uint64_t mapped =
        window + ((rank + 1) << shared_rank_bit | (address_of(warp, op, lane) & offset_mask));
    if (op.d_cell == Cell::wide)
      warp.wide(op.d)[lane] = mapped;
    else
      warp.word(op.d)[lane] = static_cast<uint32_t>(mapped);
  });
  return true;
}

void decode_map(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  const Type type = instruction.form.type();
  op.space = instruction.form.space == Space::shared ? Space::shared : Space::generic;
  op.d = decoder.destination(instruction.operands[0], type);
  op.d_cell = cell_of(type);
  op.address_wide = op.d_cell == Cell::wide;
  op.s[0] = decoder.source(instruction.operands[1], type);
  op.s[1] = decoder.source(instruction.operands[2], Type::u32);
  op.source_count = 2;
}

/// getctarank: of which block of the cluster the address is.
bool rank_of_address(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    uint64_t address = address_of(warp, op, lane);
    if (op.space != Space::shared) address -= shared_window;
    const uint64_t named = address >> shared_rank_bit;
    warp.word(op.d)[lane] = named ? static_cast<uint32_t>(named - 1) : warp.rank;
  });
  return true;
}

void decode_rank(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  const Type type = instruction.form.type();
  op.space = instruction.form.space == Space::shared ? Space::shared : Space::generic;
  op.d = decoder.destination(instruction.operands[0], Type::u32);
  op.d_cell = Cell::word;
  op.address_wide = cell_of(type) == Cell::wide;
  op.s[0] = decoder.source(instruction.operands[1], type);
  op.source_count = 1;
}

}  // namespace

void add_cluster_rows(std::vector<Row>& rows) {
  add_warp_row(rows, "mapa{,.shared}.{u32,u64}", {.flow = Flow::address}, map_address, decode_map);
  add_warp_row(rows, "getctarank{,.shared}.{u32,u64}", {.flow = Flow::address}, rank_of_address, decode_rank);
}

}  // namespace assay::vm
