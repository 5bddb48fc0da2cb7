// Addresses of a warp's lanes to host pointers, with every access checked; traps.
#include "src/base/vm/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "src/base/program/source_place.h"
#include "src/base/ptx/inlined_frames.h"
#include "src/base/vm/device_calls.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {

SourceLocation where(const Code& code, const Op& op) {
  const ptx::Module& module = *code.module;
  const ptx::Instruction* const instruction = instruction_of(code, op);
  SourceLocation at = instruction ? written_at(module, *instruction) : SourceLocation{};
  if (op.function >= 0) at.function = module.functions[static_cast<size_t>(code.entry)].name;
  if (instruction && instruction->line >= 0) at.frames = ptx::inlined_frames(module, instruction->line);
  return at;
}

std::array<uint32_t, 3> member_index(const Launch& launch, const std::array<uint32_t, 3>& cluster,
                                     uint64_t first, uint32_t rank) {
  std::array<uint32_t, 3> at = unfold(first, launch.grid);
  const std::array<uint32_t, 3> inside = unfold(rank, cluster);
  for (size_t i = 0; i < 3; ++i) at[i] += inside[i];
  return at;
}

ThreadPlace place_of_thread(const Launch& launch, const std::array<uint32_t, 3>& cluster, uint64_t first,
                            uint64_t thread) {
  const uint64_t stride = 32 * warps_of(launch, cluster), rank = thread / stride;
  return {member_index(launch, cluster, first, static_cast<uint32_t>(rank)),
          unfold(thread % stride, launch.block)};
}

ThreadPlace place_of(const Warp& warp, int lane) {
  const LaunchContext& context = *warp.block->context;
  return place_of_thread(*context.launch, context.cluster, warp.block->linear,
                         uint64_t{warp.index} * 32 + static_cast<uint64_t>(lane));
}

uint64_t linear_of_block(const Warp& warp) {
  const LaunchContext& context = *warp.block->context;
  const auto& grid = context.launch->grid;
  const auto [x, y, z] = member_index(*context.launch, context.cluster, warp.block->linear, warp.rank);
  return (uint64_t{z} * grid[1] + y) * grid[0] + x;
}

uint64_t shared_place(const Warp& warp, uint64_t address, uint64_t bytes, bool in_cluster) {
  const Block& block = *warp.block;
  const uint64_t named = address >> shared_rank_bit, rank = named ? named - 1 : warp.rank,
                 offset = address & ((uint64_t{1} << shared_rank_bit) - 1);
  if (rank >= block.members || (rank != warp.rank && !in_cluster)) return no_shared;
  if (offset > block.shared_bytes || bytes > block.shared_bytes - offset) return no_shared;
  return rank * block.shared_stride + offset;
}

bool raise(Warp& warp, const Op& op, int lane, TrapKind kind, std::string message) {
  Block& block = *warp.block;
  Trap trap;
  trap.where = where(*block.context->code, op);
  const ThreadPlace at = place_of(warp, lane);
  trap.block = at.block, trap.thread = at.thread;
  const std::string place =
      source_place(trap.where) +
      (trap.where.file.empty() ? "" : fmt::format(" (PTX line {})", trap.where.ptx_line));
  trap.message =
      fmt::format("{} at {}: block ({},{},{}), thread ({},{},{}): {}", name_of(kind), place, trap.block[0],
                  trap.block[1], trap.block[2], trap.thread[0], trap.thread[1], trap.thread[2], message);
  trap.kind = kind;
  block.trap = std::move(trap);
  return false;
}

std::string lanes_text(uint32_t mask) {
  std::string text;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    int last = lane;
    while (last < 31 && (mask >> (last + 1) & 1)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", lane);
    if (last > lane) text += fmt::format("-{}", last);
    lane = last;
  }
  return (std::popcount(mask) == 1 ? "lane " : "lanes ") + text;
}

std::string absent_text(const Warp& warp, uint32_t mask, uint32_t expected) {
  const uint32_t gone = expected & ~warp.live, elsewhere = expected & warp.live & ~mask;
  std::string text;
  if (elsewhere) text = lanes_text(elsewhere) + " elsewhere";
  if (gone) text += (text.empty() ? "" : ", ") + lanes_text(gone) + " exited";
  return text;
}

namespace {

std::string access_text(const Warp& warp, const Op& op) {
  const std::string& opcode = opcode_of(*warp.block->context->code, op);
  return opcode.empty() ? "access" : opcode;
}

/// "shared memory at byte 128 of 64, 64 bytes past the end of tile (64 bytes)"; addresses of 32 bits that
/// wrapped below 0 are negative.
std::string in_block(uint64_t address, uint64_t size, const std::vector<NamedArea>& areas,
                     const char* space) {
  const int64_t signed_address =
      address <= UINT32_MAX ? static_cast<int32_t>(address) : static_cast<int64_t>(address);
  std::string text = fmt::format("{} memory at byte {} of {}", space, signed_address, size);
  if (!areas.empty()) text += ", " + area_text(areas, static_cast<uint64_t>(signed_address));
  return text;
}

}  // namespace

bool bad_access(Warp& warp, const Op& op, int lane, uint64_t address, uint32_t bytes, ptx::Space space,
                bool misaligned) {
  std::string what;
  if (space == ptx::Space::shared)
    what = in_block(address, warp.block->shared_bytes, warp.block->context->code->shared_areas, "shared");
  else if (space == ptx::Space::local)
    what = in_block(address, warp.block->context->code->local_bytes, warp.block->context->code->local_areas,
                    "local");
  else
    what = warp.block->context->memory->describe(address);
  const std::string problem =
      misaligned ? fmt::format("{} of {} bytes is not aligned: {}", access_text(warp, op), bytes, what)
                 : fmt::format("{} of {} bytes reaches {}", access_text(warp, op), bytes, what);
  return raise(warp, op, lane, misaligned ? TrapKind::misaligned : TrapKind::out_of_bounds, problem);
}

namespace {

bool may_write(const Signature& signature) {
  return std::any_of(signature.accesses.begin(), signature.accesses.end(),
                     [](const Access& a) { return a.direction != Access::Direction::read; });
}

/// One lane of global memory; the allocation last met by this op is tried first.
std::byte* global_pointer(Block& block, const Op& op, uint64_t address, uint32_t bytes) {
  const Memory& memory = *block.context->memory;
  int32_t& hint = block.hints[static_cast<size_t>(&op - block.context->code->ops.data())];
  if (hint >= 0) {
    const Allocation& known = memory.allocations()[static_cast<size_t>(hint)];
    const uint64_t offset = address - known.base;
    if (offset < known.bytes && bytes <= known.bytes - offset) return known.data + offset;
  }
  const int found = memory.find(address, bytes);
  if (found < 0) return nullptr;
  const Allocation& allocation = memory.allocations()[static_cast<size_t>(found)];
  if (allocation.pages) return allocation.pages->at(address - allocation.base);
  if (allocation.heap) {
    const bool writes = may_write(block.context->code->signature(op));
    const bool reached = allocation.heap->reaches_object(address - allocation.base, bytes, writes);
    return reached ? allocation.data + (address - allocation.base) : nullptr;
  }
  hint = found;
  return allocation.data + (address - allocation.base);
}

/// All lanes at once, in the allocation that holds the first of them. False: not all are in it.
bool place_in_one(Warp& warp, size_t op_index, uint32_t mask, uint32_t bytes, std::byte** host) {
  Block& block = *warp.block;
  const Memory& memory = *block.context->memory;
  int32_t& hint = block.hints[op_index];
  if (hint < 0) {
    hint = memory.find(warp.address[std::countr_zero(mask)], bytes);
    if (hint >= 0 && !memory.allocations()[static_cast<size_t>(hint)].is_plain()) hint = -1;
    if (hint < 0) return false;
  }
  const Allocation& known = memory.allocations()[static_cast<size_t>(hint)];
  if (known.bytes < bytes) return false;
  warp.places = lane_kit().place_lanes(host, warp.address, mask,
                                       {known.base, known.bytes - bytes, bytes - 1, known.data});
  return warp.places != Places::outside;
}

bool translate_global(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  Block& block = *warp.block;
  const auto op_index = static_cast<size_t>(&op - block.context->code->ops.data());
  if (place_in_one(warp, op_index, mask, bytes, host)) return true;
  warp.places = Places::apart;
  bool good = true;
  each_lane(mask, [&](int lane) {
    if (!good) return;
    const uint64_t address = warp.address[lane];
    host[lane] = global_pointer(block, op, address, bytes);
    if (host[lane] && !(address & (bytes - 1))) return;
    good = bad_access(warp, op, lane, address, bytes, ptx::Space::global, host[lane] != nullptr);
  });
  return good;
}

/// Addresses that are those of a cluster, or wrong.
bool translate_cluster(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  const bool in_cluster = op.in_cluster || op.space == ptx::Space::generic;
  warp.places = Places::apart;
  bool good = true;
  each_lane(mask, [&](int lane) {
    if (!good) return;
    const uint64_t address = warp.address[lane], place = shared_place(warp, address, bytes, in_cluster);
    if (place == no_shared || (address & (bytes - 1)))
      good = bad_access(warp, op, lane, address, bytes, ptx::Space::shared, place != no_shared);
    else
      warp.address[lane] = place, host[lane] = warp.block->shared.data() + place;
  });
  return good;
}

bool translate_shared(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  if (warp.block->members > 1) return translate_cluster(warp, op, mask, bytes, host);
  const uint64_t size = warp.block->shared_bytes;
  if (size >= bytes)
    warp.places = lane_kit().place_lanes(host, warp.address, mask,
                                         {0, size - bytes, bytes - 1, warp.block->shared.data()});
  if (size >= bytes && warp.places != Places::outside) return true;
  return translate_cluster(warp, op, mask, bytes, host);
}

bool translate_local(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  const uint64_t size = warp.block->context->code->local_bytes;
  warp.places = Places::apart;
  bool good = true;
  each_lane(mask, [&](int lane) {
    const uint64_t address = warp.address[lane];
    const bool outside = address >= size || bytes > size - address;
    if (good && (outside || (address & (bytes - 1))))
      good = bad_access(warp, op, lane, address, bytes, ptx::Space::local, !outside);
    if (good) host[lane] = warp.local.data() + static_cast<uint64_t>(lane) * size + address;
  });
  return good;
}

bool translate_space(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, ptx::Space space,
                     std::byte** host) {
  if (space == ptx::Space::shared) return translate_shared(warp, op, mask, bytes, host);
  if (space == ptx::Space::local) return translate_local(warp, op, mask, bytes, host);
  return translate_global(warp, op, mask, bytes, host);
}

bool translate_generic(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  const LaneKit& kit = lane_kit();
  const uint32_t shared = mask & kit.lanes_within(warp.address, shared_window, window_bytes),
                 local = mask & kit.lanes_within(warp.address, local_window, window_bytes);
  const uint32_t by_space[3] = {mask & ~(shared | local), shared, local};
  const auto not_all = [&](uint32_t lanes) { return lanes != 0 && lanes != mask; };
  if (const auto mixed = std::find_if(by_space, by_space + 3, not_all); mixed != by_space + 3) {
    const Signature& signature = warp.block->context->code->signature(op);
    if (!signature.accesses.empty() && signature.accesses[0].reach == Access::Reach::per_lane)
      return warp.of_one_space = *mixed, false;
    return raise(warp, op, std::countr_zero(mask), TrapKind::unsupported,
                 "rows of one matrix lie in different memory spaces");
  }
  // Addresses become offsets in their space.
  each_lane(shared | local,
            [&](int lane) { warp.address[lane] -= (shared >> lane) & 1 ? shared_window : local_window; });
  static constexpr ptx::Space spaces[] = {ptx::Space::global, ptx::Space::shared, ptx::Space::local};
  for (int i = 0; i < 3; ++i) {
    if (!by_space[i]) continue;
    warp.space = spaces[i];
    if (!translate_space(warp, op, by_space[i], bytes, spaces[i], host)) return false;
  }
  return true;
}

}  // namespace

void lane_addresses(const Warp& warp, Slot slot, bool wide, int64_t offset, uint64_t* address) {
  const auto add = static_cast<uint64_t>(offset);
  if (wide)
    lane_kit().offset_wide(address, warp.wide(slot), add);
  else  // 32-bit addresses wrap around in 32 bits
    lane_kit().offset_words(address, warp.word(slot), static_cast<uint32_t>(add));
}

bool translate(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, std::byte** host) {
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, warp.address);
  warp.space = op.space;
  return translate_at(warp, op, mask, bytes, op.space, host);
}

bool translate_at(Warp& warp, const Op& op, uint32_t mask, uint32_t bytes, ptx::Space space,
                  std::byte** host) {
  if (space == ptx::Space::generic) return translate_generic(warp, op, mask, bytes, host);
  return translate_space(warp, op, mask, bytes, space, host);
}

bool translate_part(Warp& warp, const Op& op, int lane, uint32_t bytes, uint32_t alignment,
                    std::byte** host) {
  const uint64_t address = warp.address[lane];
  host[lane] = global_pointer(*warp.block, op, address, bytes);
  if (host[lane] && !(address & (alignment - 1))) return true;
  return bad_access(warp, op, lane, address, bytes, ptx::Space::global, host[lane] != nullptr);
}

}  // namespace assay::vm
