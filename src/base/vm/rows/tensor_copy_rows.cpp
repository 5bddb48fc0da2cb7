// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and prefetches (PTX ISA 9.7.9.27).
#include <fmt/format.h>

#include "src/base/program/tile_map_bytes.h"
#include "src/base/vm/bulk_copy.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/bulk_combine.h"
#include "src/base/vm/rows/bulk_operands.h"
#include "src/base/vm/rows/bulk_places.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/tile_walk.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Combine;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr uint64_t tile_alignment = 128;  // of a tile in shared memory

Type type_of(TileMap::Element element) {
  static constexpr Type types[] = {Type::b8,  Type::b16, Type::u32, Type::s32, Type::u64,
                                   Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16,
                                   Type::f32, Type::f32, Type::f32};
  return types[static_cast<size_t>(element)];
}
/// As reductions see it.
Type combined_type(Combine combine, TileMap::Element element) {
  const Type type = type_of(element);
  const bool bits = combine == Combine::and_ || combine == Combine::or_ || combine == Combine::xor_;
  if (!bits) return type;
  if (element == TileMap::Element::i64)
    return Type::none;  // an illegal instruction on an H200, of u64 it is not
  return width_of(element) == 8 ? Type::b64 : width_of(element) == 4 ? Type::b32 : Type::none;
}

/// The tensor map at a generic address. Nothing: trapped.
std::optional<PlacedTileMap> map_at(Warp& warp, const Op& op, int lane, uint64_t address) {
  const BulkSide bytes = bulk_side(warp, op, false, address, TileMap::bytes, false);
  if (!bytes.found || address % TileMap::alignment != 0) {
    bad_access(warp, op, lane, address, TileMap::bytes, Space::global, bytes.found);
    return std::nullopt;
  }
  std::byte held[TileMap::bytes];
  for (uint64_t at = 0; at < TileMap::bytes; at += 16) std::memcpy(held + at, bytes.host(at), 16);
  std::optional<PlacedTileMap> made = decode_tile_map(held);
  if (!made)
    raise(warp, op, lane, TrapKind::unsupported,
          fmt::format("there is no tensor map at {}, or one that no encoder makes",
                      warp.block->context->memory->describe(address)));
  return made;
}

/// The pieces of one tile at byte `shared` of a block's memory that begins at `block` in Block::shared.
bool add_pieces(Warp& warp, const Op& op, int lane, const TileRequest& tile, uint64_t block, uint64_t shared,
                bool loads, BulkCopy& copy) {
  const TileMap& map = *tile.map;
  using What = BulkPiece::What;
  const bool nans = map.outside == TileMap::Outside::nans;
  bool good = true;
  each_run(tile, [&](const TileRun& run) {
    if (!good || (!run.inside && !loads)) return;
    BulkSide global;
    if (run.inside) global = bulk_side(warp, op, false, run.global, run.bytes, false);
    if (run.inside && !global.found) {
      good = bad_access(warp, op, lane, run.global, run.bytes, Space::global, false);
      return;
    }
    const bool whole = map.swizzle == TileMap::Swizzle::none && !global.pages;
    for (uint32_t at = 0; at < run.bytes;) {
      const uint64_t place = shared + run.shared + at;
      const uint32_t bytes =
          whole ? run.bytes : std::min<uint32_t>(run.bytes - at, 16 - static_cast<uint32_t>(place % 16));
      const uint64_t in_block = block + swizzled(map.swizzle, place);
      std::byte* const host = warp.block->shared.data() + in_block;
      std::byte* const there = run.inside ? global.host(at) : nullptr;
      const What what = run.inside ? What::copy : nans ? What::nans : What::zeros;
      copy.pieces.push_back(loads ? BulkPiece{what, bytes, in_block, run.global + at, host, there}
                                  : BulkPiece{what, bytes, run.global + at, in_block, there, host});
      at += bytes;
    }
  });
  return good;
}

/// One lane's copy between a tile and the shared memory at `address`.
bool copy_tile(Warp& warp, const Op& op, int lane, const PlacedTileMap& placed, uint64_t address,
               BulkCopy&& copy) {
  const BulkForm form = BulkForm::of(op.immediate);
  const uint64_t bytes = reach_of_tile(placed.map);
  const BulkSide shared = bulk_side(warp, op, true, address, bytes, form.to_shared);
  if (!shared.found || address % tile_alignment != 0)
    return bad_access(warp, op, lane, address, shared.found ? tile_alignment : static_cast<uint32_t>(bytes),
                      Space::shared, shared.found);
  TileRequest tile{&placed.map, placed.address, {}, {}, !form.to_shared};
  for (size_t i = 0; i < form.axes; ++i)
    tile.coordinates[i] = static_cast<int32_t>(warp.word(op.slots[bulk_coordinates + i])[lane]);
  for (size_t i = 0; i < tile.offsets.size(); ++i)
    tile.offsets[i] = static_cast<uint16_t>(warp.word(op.slots[bulk_offsets + i])[lane]);
  if (const char* const why = illegal_request(tile)) return raise(warp, op, lane, TrapKind::trap, why);
  const uint64_t stride = std::max<uint64_t>(warp.block->shared_stride, 1),
                 block = shared.address / stride * stride;
  copy.type = type_of(placed.map.element);
  copy.narrows = form.to_shared && placed.map.element >= TileMap::Element::tf32;
  if (copy.combine != Combine::none) copy.type = combined_type(copy.combine, placed.map.element);
  return add_pieces(warp, op, lane, tile, block, shared.address - block, form.to_shared, copy) &&
         issue_bulk(warp, std::move(copy));
}

bool copy_tensor(Warp& warp, const Op& op, uint32_t mask) {
  const BulkForm form = BulkForm::of(op.immediate);
  const uint32_t map_slot = form.to_shared ? bulk_from : bulk_to,
                 shared_slot = form.to_shared ? bulk_to : bulk_from;
  warp.block->first_new = warp.block->issued + 1;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto of = [&](uint32_t slot) {
      const bool is_to = slot == bulk_to;
      return bulk_address(warp, op.slots[slot], is_to ? form.to_wide : form.from_wide, lane) +
             static_cast<uint64_t>(is_to ? op.offset : op.offset2);
    };
    const std::optional<PlacedTileMap> placed = map_at(warp, op, lane, of(map_slot));
    if (!placed) return false;
    const TileMap& map = placed->map;
    if (map.interleave != TileMap::Interleave::none)
      return raise(warp, op, lane, TrapKind::unsupported, "tensors of interleaved channels are not modelled");
    if (map.sizes.size() != form.axes || map.is_im2col() != form.im2col)
      return raise(
          warp, op, lane, TrapKind::unsupported,
          fmt::format("the tensor map is for {} axes{}, the instruction for {}{}", map.sizes.size(),
                      map.is_im2col() ? " of im2col" : "", form.axes, form.im2col ? " of im2col" : ""));
    if (form.combine != Combine::none && !combines(form.combine, combined_type(form.combine, map.element)))
      return raise(warp, op, lane, TrapKind::unsupported,
                   "there is no such reduction for the tensor's elements");
    uint64_t shared = of(shared_slot);
    if (shared - shared_window < window_bytes) shared -= shared_window;
    const bool done = each_target(warp, op, lane, shared, static_cast<uint32_t>(bytes_of_tile(map)),
                                  [&](uint64_t at, BulkCopy&& copy) {
                                    copy.from_space = form.to_shared ? Space::global : Space::shared;
                                    return copy_tile(warp, op, lane, *placed, at, std::move(copy));
                                  });
    if (!done) return false;
  }
  return true;
}

uint8_t axes_of(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.size() == 2 && word[1] == 'd') return static_cast<uint8_t>(word[0] - '0');
  return 0;
}

bool named(const std::vector<std::string>& words, const char* name) {
  return std::find(words.begin(), words.end(), name) != words.end();
}

/// cp.async.bulk.tensor.Nd.shared::cluster.global.mode... [to], [map, {c}], [mbar]{, {offsets}}{, mask}{,
/// policy}
void decode_load(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  BulkOperands operands(decoder, instruction, op);
  BulkForm& form = operands.form;
  form.axes = axes_of(words), form.im2col = named(words, "im2col"), form.to_shared = true;
  operands.address(bulk_to, form.to_wide, op.offset);
  operands.tensor(bulk_from, form.from_wide, op.offset2);
  operands.completion();
  if (form.im2col) operands.offsets();
  operands.finish();
}

/// cp{.reduce}.async.bulk.tensor.Nd.global.shared::cta... [map, {c}], [from]{, policy}
void decode_store(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  BulkOperands operands(decoder, instruction, op);
  BulkForm& form = operands.form;
  form.axes = axes_of(words), form.im2col = named(words, "im2col_no_offs"), form.from_shared = true;
  form.combine = instruction.form.combine;
  operands.tensor(bulk_to, form.to_wide, op.offset);
  operands.address(bulk_from, form.from_wide, op.offset2);
  operands.finish();
}

void decode_tensor_prefetch(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 3);
  op.kind = Kind::nothing;
}

}  // namespace

void add_tensor_copy_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& form, Completion completion, DecodeFunction decode) {
    const bool stores = completion == Completion::bulk_group;
    add_warp_row(rows, form,
                 {.flow = Flow::copy_bulk,
                  .operands = {Role::store_to, stores ? Role::load_from : Role::load_from, Role::read},
                  .asynchronous = {completion, Step::issue, Proxy::async}},
                 copy_tensor, decode);
  };
  const std::string any = "{1d,2d,3d,4d,5d}", deep = "{3d,4d,5d}",
                    loaded = ".mbarrier::complete_tx::bytes{,.multicast::cluster}";
  add("cp.async.bulk.tensor." + any + ".shared.global{,.tile}" + loaded, Completion::mbarrier, decode_load);
  add("cp.async.bulk.tensor." + deep + ".shared.global.im2col" + loaded, Completion::mbarrier, decode_load);
  for (const std::string combine : {"", ".{add,min,max,inc,dec,and,or,xor}"}) {
    const std::string name = combine.empty() ? "cp.async.bulk.tensor." : "cp.reduce.async.bulk.tensor.";
    add(name + any + ".global.shared" + combine + "{,.tile}.bulk_group", Completion::bulk_group,
        decode_store);
    add(name + deep + ".global.shared" + combine + ".im2col_no_offs.bulk_group", Completion::bulk_group,
        decode_store);
  }
  add_warp_row(rows, "cp.async.bulk.prefetch.tensor." + any + ".L2.global{,.tile}",
               {.operands = {Role::read}}, nullptr, decode_tensor_prefetch);
  add_warp_row(rows, "cp.async.bulk.prefetch.tensor." + deep + ".L2.global.im2col",
               {.operands = {Role::read}}, nullptr, decode_tensor_prefetch);
  add_warp_row(rows, "prefetch{,.param,.const}.tensormap", {.operands = {Role::read}}, nullptr,
               decode_tensor_prefetch);
}

}  // namespace assay::vm
