// States through memory: shared, local and global bytes, loads, stores, atomics, ldmatrix, cp.async.
#include <algorithm>
#include <cstring>

#include "src/base/vm/checks/written_check.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

/// Whether any of `count` states is not `written`.
bool any_missing(const uint8_t* states, uint32_t count) {
  uint64_t found = 0;
  for (; count >= 8; states += 8, count -= 8) {
    uint64_t part;
    std::memcpy(&part, states, 8);
    found |= part;
  }
  for (; count > 0; --count) found |= *states++;
  return found != 0;
}

}  // namespace

uint8_t* WrittenCheck::states_at(Warp& warp, int lane, ptx::Space space, uint64_t address) {
  if (space == ptx::Space::shared) return shared_.data() + address;
  if (space == ptx::Space::local)
    return of(warp).local.data() + static_cast<size_t>(lane) * code_->local_bytes + address;
  for (Area& area : areas_)
    if (address - area.base < area.bytes) return area.states.at(address - area.base);
  return nullptr;
}

uint32_t& WrittenCheck::stored_event(const Warp& warp, int lane, ptx::Space space, uint64_t address) {
  address &= ~uint64_t{3};
  if (space == ptx::Space::global) return stored_[address];
  const uint64_t thread = warp.index * 32 + static_cast<uint32_t>(lane) + 1;
  return stored_in_block_[space == ptx::Space::shared ? address : address | thread << 40];
}

/// The event of a byte that is not `written`: what was stored there, or that nothing was.
uint32_t WrittenCheck::memory_event(Warp& warp, const Op& op, int lane, ptx::Space space, uint64_t address,
                                    uint8_t state) {
  if (state == derived)
    if (const uint32_t known = stored_event(warp, lane, space, address)) return known;
  const uint32_t made = make_event(warp, op, lane, memory_text(*block_, space, address));
  events_[made].elsewhere = partial_ && space == ptx::Space::global;
  return made;
}

/// States of `count` bytes of memory as the bytes `at`.. of a register.
void WrittenCheck::load_element(Warp& warp, const Op& op, int lane, ptx::Space space, uint64_t address,
                                uint32_t count, ByteLanes& states, uint32_t* origins, int at) {
  const uint8_t* const here = states_at(warp, lane, space, address);
  if (!here || !any_missing(here, count)) return;
  for (uint32_t byte = 0; byte < count; ++byte) {
    if (here[byte] == written) continue;
    states[static_cast<size_t>(at) + byte] |= 1u << lane;
    origins[lane] = memory_event(warp, op, lane, space, address + byte, here[byte]);
    if (strict_ && here[byte] == never && !warp.block->trap)
      raise(warp, op, lane, "unwritten-read",
            memory_text(*block_, space, address + byte) + " was never written");
  }
}

void WrittenCheck::load(Warp& warp, const Op& op, uint32_t mask) {
  for (uint32_t i = 0; i < op.vector_length; ++i) {
    const Slot slot = op.slots[i];
    if (slot == no_slot) continue;
    ByteLanes states{};
    std::array<uint32_t, 32> origins{};
    for_lanes(mask, [&](int lane) {
      load_element(warp, op, lane, warp.space, warp.address[lane] + uint64_t{i} * op.element_bytes,
                   op.element_bytes, states, origins.data());
    });
    put(warp, slot, (op.immediate >> i) & 1 ? 8 : 4, false, mask, states, origins);
  }
}

void WrittenCheck::store_element(Warp& warp, const Op& op, const Source& source, int lane, ptx::Space space,
                                 uint64_t address, uint32_t count) {
  uint8_t* const here = states_at(warp, lane, space, address);
  if (!here) return;
  const Lanes* const from = bytes(warp, source.slot);
  uint8_t found = 0;
  for (uint32_t byte = 0; byte < count; ++byte) {
    here[byte] = static_cast<uint8_t>(from[byte] >> lane & 1 ? derived : written);
    found |= here[byte];
  }
  if (found) stored_event(warp, lane, space, address) = event_of(warp, op, source, lane);
}

void WrittenCheck::store(Warp& warp, const Op& op, uint32_t mask) {
  for (uint32_t i = 0; i < op.vector_length; ++i) {
    const Source source{op.slots[i], op.element_bytes, false};
    for_lanes(mask, [&](int lane) {
      store_element(warp, op, source, lane, warp.space,
                    warp.address[lane] + uint64_t{i} * op.element_bytes, op.element_bytes);
    });
  }
}

/// The new value comes of the old one and of the operands; atom returns the old one.
void WrittenCheck::atomic(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts(op);
  const uint32_t count = op.element_bytes;
  ByteLanes old{};
  std::array<uint32_t, 32> origins{};
  for_lanes(mask, [&](int lane) {
    const uint64_t address = warp.address[lane];
    load_element(warp, op, lane, warp.space, address, count, old, origins.data());
    uint8_t* const here = states_at(warp, lane, warp.space, address);
    if (!here) return;
    uint32_t event = origins[static_cast<size_t>(lane)];
    for (int i = 0; i < f.count; ++i)
      if (any(warp, f.sources[static_cast<size_t>(i)]) >> lane & 1)
        event = event_of(warp, op, f.sources[static_cast<size_t>(i)], lane);
    std::memset(here, event ? derived : written, count);
    if (event) stored_event(warp, lane, warp.space, address) = event;
  });
  if (op.d == no_slot) return;
  put(warp, op.d, f.d_bytes, false, mask, old, origins);
}

// PTX ISA, ldmatrix: lane l of matrix i gets row l / 4, elements 2 (l mod 4) and the next; transposed: column
// l / 4.
void WrittenCheck::load_matrix(Warp& warp, const Op& op) {
  const bool transposed = op.immediate & 1;
  for (int i = 0; i < op.slot_count; ++i) {
    bool missing = false;
    for (int row = 0; row < 8; ++row)
      missing |= any_missing(shared_.data() + warp.address[8 * i + row], 16);
    if (!missing) {
      clear(warp, op.slots[i], 4, ~0u);
      continue;
    }
    ByteLanes states{};
    std::array<uint32_t, 32> origins{};
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < 2; ++half) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        load_element(warp, op, lane, ptx::Space::shared,
                     warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column), 2, states, origins.data(),
                     2 * half);
      }
    put(warp, op.slots[i], 4, false, ~0u, states, origins);
  }
}

// stmatrix: the other way round.
void WrittenCheck::store_matrix(Warp& warp, const Op& op) {
  const bool transposed = op.immediate & 1;
  for (int i = 0; i < op.slot_count; ++i) {
    const Source source{op.slots[i], 4, false};
    const Lanes* const from = bytes(warp, op.slots[i]);
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < 2; ++half) {
        const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
        const uint64_t at = warp.address[8 * i + row] + 2 * static_cast<uint64_t>(column);
        const bool missing = ((from[2 * half] | from[2 * half + 1]) >> lane & 1) != 0;
        std::memset(shared_.data() + at, missing ? derived : written, 2);
        if (missing) stored_event(warp, lane, ptx::Space::shared, at) = event_of(warp, op, source, lane);
      }
  }
}

/// Bytes that travel from memory to memory.
void WrittenCheck::copy_bytes(Warp& warp, const Op& op, int lane, ptx::Space from, uint64_t source,
                              ptx::Space to, uint64_t target, uint32_t count) {
  for (uint32_t byte = 0; byte < count; ++byte) {
    const uint8_t* const here = states_at(warp, lane, from, source + byte);
    const uint8_t state = here ? *here : uint8_t{written};
    uint8_t* const there = states_at(warp, lane, to, target + byte);
    if (!there) continue;
    *there = state == written ? written : derived;
    if (state == written) continue;
    const uint32_t event = memory_event(warp, op, lane, from, source + byte, state);
    stored_event(warp, lane, to, target + byte) = event;
  }
}

void WrittenCheck::landed(Warp& warp, const Landing& landing) {
  for_lanes(landing.mask, [&](int lane) {
    std::memset(shared_.data() + landing.shared[lane], written, landing.bytes);
    const uint8_t* const here =
        landing.copied[lane] ? states_at(warp, lane, ptx::Space::global, landing.global[lane]) : nullptr;
    if (here && any_missing(here, landing.copied[lane]))
      copy_bytes(warp, *landing.op, lane, ptx::Space::global, landing.global[lane], ptx::Space::shared,
                 landing.shared[lane], landing.copied[lane]);
  });
}

void WrittenCheck::copied_local(Warp& warp, uint32_t mask, uint32_t from, uint32_t to, uint32_t bytes) {
  for_lanes(mask, [&](int lane) {
    // Parameters that a caller left unwritten stay never written.
    uint8_t* const local = of(warp).local.data() + static_cast<size_t>(lane) * code_->local_bytes;
    std::memmove(local + to, local + from, bytes);
    for (uint32_t byte = 0; byte < bytes; byte += 4)
      if (local[to + byte] == derived)
        stored_event(warp, lane, ptx::Space::local, to + byte) =
            stored_event(warp, lane, ptx::Space::local, from + byte);
  });
}

}  // namespace assay::vm
