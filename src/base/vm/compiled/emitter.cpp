#include "src/base/vm/compiled/emitter.h"

#include <algorithm>

namespace assay::vm {

void Emitter::store(uint32_t index) {
  Held& held = held_[index];
  if (held.dirty) vmovdqa64(place(held.at), zmm_of(index));
  held.dirty = false;
}

/// A register that no operand of this instruction is in: a free one, else the one used longest ago.
uint32_t Emitter::take() {
  uint32_t best = registers;
  for (uint32_t i = 0; i < registers; ++i) {
    if (held_[i].pinned) continue;
    if (best == registers || held_[i].used < held_[best].used) best = i;
  }
  if (best == registers) throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  if (held_[best].at != no_slot) store(best);
  held_[best] = {no_slot, false, true, ++clock_};
  return best;
}

Emitter::Zmm Emitter::use_at(Slot at) {
  for (uint32_t i = 0; i < registers; ++i) {
    if (held_[i].at != at) continue;
    held_[i].pinned = true, held_[i].used = ++clock_;
    return zmm_of(i);
  }
  const uint32_t index = take();
  held_[index].at = at;
  vmovdqa64(zmm_of(index), place(at));
  return zmm_of(index);
}

Emitter::Zmm Emitter::fresh() {
  return zmm_of(take());
}

void Emitter::define(Slot slot, Cell cell, uint32_t part, const Zmm& value) {
  const Slot at = slot + part * part_bytes;
  if (guarded_) {
    const Zmm old = use_at(at);
    const uint32_t lanes = cell == Cell::wide ? 8 : 16;
    kmovd(k7, ebp);
    if (part) kshiftrd(k7, k7, static_cast<uint8_t>(lanes * part));
    if (cell == Cell::wide)
      vmovdqa64(old | k7, value);
    else
      vmovdqa32(old | k7, value);
    held_[static_cast<size_t>(old.getIdx() - first_register)].dirty = true;
    return;
  }
  for (Held& held : held_)
    if (held.at == at) held.at = no_slot, held.dirty = false, held.used = 0;
  Held& made = held_[static_cast<size_t>(value.getIdx() - first_register)];
  made.at = at, made.dirty = true;
}

void Emitter::define_mask(Slot slot) {
  if (guarded_) {
    mov(edx, mask_at(slot));
    xor_(eax, edx);
    and_(eax, ebp);
    xor_(eax, edx);
  }
  mov(mask_at(slot), eax);
}

const Xbyak::Label& Emitter::label_of(uint32_t bits) {
  auto found = std::find_if(constants_.begin(), constants_.end(),
                            [&](const auto& known) { return known.first == bits; });
  if (found == constants_.end())
    found = constants_.emplace(constants_.end(), bits, std::make_unique<Xbyak::Label>());
  return *found->second;
}

void Emitter::make_canonical(const Zmm& value) {
  vcmpps(k1, value, value, 3);  // unordered
  vpbroadcastd(value | k1, constant(0x7fffffff));
}

void Emitter::finish_instruction() {
  for (Held& held : held_) {
    held.pinned = false;
    if (held.at == no_slot) held.used = 0;
  }
}

void Emitter::store_all() {
  for (uint32_t i = 0; i < registers; ++i)
    if (held_[i].at != no_slot) store(i);
}

void Emitter::forget_all() {
  held_.fill({});
}

void Emitter::store_dirty(const Holding& holding) {
  for (uint32_t i = 0; i < registers; ++i)
    if (holding[i].at != no_slot && holding[i].dirty) vmovdqa64(place(holding[i].at), zmm_of(i));
}

void Emitter::load_again(const Holding& holding) {
  for (uint32_t i = 0; i < registers; ++i)
    if (holding[i].at != no_slot) vmovdqa64(zmm_of(i), place(holding[i].at));
}

void Emitter::emit_constants() {
  align(64);
  L(steps_);
  for (uint32_t lane = 0; lane < 32; ++lane) dd(4 * lane);
  for (const auto& [bits, label] : constants_) {
    L(*label);
    dd(bits);
  }
}

}  // namespace assay::vm
