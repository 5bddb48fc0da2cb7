// Tensor maps that kernels change (PTX ISA 9.7.9.28, tensormap.replace and tensormap.cp_fenceproxy).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "src/base/program/tile_map_bytes.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/bulk_places.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// The lanes one after the other, each with its own address; no value of a kernel's is in a tensor map.
bool replace(Warp& warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t address =
        bulk_address(warp, op.s[0], op.address_wide, lane) + static_cast<uint64_t>(op.offset);
    const bool shared = op.space == Space::shared || address - shared_window < window_bytes;
    const BulkSide side = bulk_side(warp, op, shared, address, TileMap::bytes, false);
    if (!side.found || address % TileMap::alignment != 0)
      return bad_access(warp, op, lane, address, TileMap::bytes, op.space, side.found);
    std::byte bytes[TileMap::bytes];
    for (uint64_t at = 0; at < TileMap::bytes; at += 16) std::memcpy(bytes + at, side.host(at), 16);
    const auto number = static_cast<MapNumber>(op.immediate & 0xff);
    const bool wide = number == MapNumber::global_address || number == MapNumber::global_stride;
    const uint64_t value = wide ? warp.wide(op.s[1])[lane] : warp.word(op.s[1])[lane];
    if (!change_tile_map(bytes, number, op.immediate >> 8, value))
      return raise(warp, op, lane, TrapKind::unsupported, "there is no tensor map with that field");
    if (const std::optional<PlacedTileMap> made = decode_tile_map(bytes))
      if (const std::string fault = fault_of(made->map, made->address); !fault.empty())
        return raise(warp, op, lane, TrapKind::unsupported, "makes a tensor map with " + fault);
    for (uint64_t at = 0; at < TileMap::bytes; at += 16) std::memcpy(side.host(at), bytes + at, 16);
  }
  return true;
}

/// tensormap.replace.tile.FIELD{.space}.b1024.type [map], {axis,} value. Op::immediate: the number, and from
/// bit 8 on its axis.
void decode_replace(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  static constexpr std::string_view fields[] = {
      "global_address", "global_dim", "global_stride",     "box_dim",      "element_stride",
      "rank",           "elemtype",   "interleave_layout", "swizzle_mode", "fill_mode"};  // MapNumber
  const std::vector<std::string>& words = decoder.parts(instruction);
  const auto number =
      static_cast<MapNumber>(std::find(std::begin(fields), std::end(fields), words[3]) - fields);
  op.immediate = static_cast<uint64_t>(number);
  const bool whole = number == MapNumber::global_address || number >= MapNumber::rank;
  decoder.expect_operands(instruction, whole ? 2 : 3, whole ? 2 : 3);
  op.space = instruction.form.space == Space::none ? Space::global : instruction.form.space;
  std::tie(op.s[0], op.offset) = decoder.second_address(instruction.operands[0], &op.address_wide);
  if (!whole) op.immediate |= decoder.constant(instruction.operands[1]) << 8;
  op.s[1] = decoder.source(instruction.operands.back(), instruction.form.type());
  op.source_count = 2;
}

/// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic... [to], [from], 128: the warp copies one
/// map.
bool copy_map(Warp& warp, const Op& op, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint64_t to = bulk_address(warp, op.s[0], op.address_wide, lane) + static_cast<uint64_t>(op.offset),
                 from =
                     bulk_address(warp, op.s[1], op.address2_wide, lane) + static_cast<uint64_t>(op.offset2);
  const BulkSide target = bulk_side(warp, op, false, to, TileMap::bytes, false),
                 source = bulk_side(warp, op, true, from, TileMap::bytes, false);
  if (!target.found || to % 128 != 0)
    return bad_access(warp, op, lane, to, TileMap::bytes, Space::global, target.found);
  if (!source.found || from % 128 != 0)
    return bad_access(warp, op, lane, from, TileMap::bytes, Space::shared, source.found);
  for (uint64_t at = 0; at < TileMap::bytes; at += 16) std::memcpy(target.host(at), source.host(at), 16);
  return true;
}

void decode_copy_map(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  std::tie(op.s[0], op.offset) = decoder.second_address(instruction.operands[0], &op.address_wide);
  std::tie(op.s[1], op.offset2) = decoder.second_address(instruction.operands[1], &op.address2_wide);
  if (decoder.constant(instruction.operands[2]) != TileMap::bytes)
    decoder.fail(instruction, "copies 128 bytes");
  op.source_count = 2;
}

}  // namespace

void add_tensor_map_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& form) {
    add_warp_row(rows, "tensormap.replace.tile." + form, {.operands = {Role::modify_at, Role::read}}, replace,
                 decode_replace);
  };
  add("global_address{,.global,.shared}.b1024.b64");
  add("global_stride{,.global,.shared}.b1024.b64");
  add("{global_dim,box_dim,element_stride}{,.global,.shared}.b1024.b32");
  add("{rank,elemtype,interleave_layout,swizzle_mode,fill_mode}{,.global,.shared}.b1024.b32");
  for (const char* scope : {"cta", "cluster", "gpu", "sys"})
    add_warp_row(rows,
                 std::string("tensormap.cp_fenceproxy.global.shared.tensormap::generic.release.") + scope +
                     ".sync.aligned",
                 {.operands = {Role::store_to, Role::load_from, Role::none}}, copy_map, decode_copy_map);
}

}  // namespace assay::vm
