#include "src/base/vm/rows/bulk_places.h"

#include <algorithm>
#include <tuple>

#include "src/base/vm/mbarrier.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

BulkOperands::BulkOperands(Decoder& decoder, const ptx::Instruction& instruction, Op& op)
    : decoder_(decoder), instruction_(instruction), op_(op), parts_(decoder.parts(instruction)) {
  Operand zero;
  zero.kind = Operand::Kind::immediate;
  slots_.assign(bulk_slots, decoder.source(zero, Type::b32));
}

bool BulkOperands::has(const char* part) const {
  return std::find(parts_.begin(), parts_.end(), part) != parts_.end();
}

const Operand& BulkOperands::next() {
  if (at_ == instruction_.operands.size()) decoder_.fail(instruction_, "lacks an operand");
  return instruction_.operands[at_++];
}

void BulkOperands::put(BulkSlot slot, const Operand& operand, Type type) {
  slots_[slot] = decoder_.source(operand, type);
}

void BulkOperands::address(BulkSlot slot, bool& wide, int64_t& offset) {
  const Operand& operand = next();
  if (operand.kind != Operand::Kind::address) decoder_.fail(instruction_, "expected an address in brackets");
  std::tie(slots_[slot], offset) = decoder_.second_address(operand, &wide);
}

void BulkOperands::tensor(BulkSlot slot, bool& wide, int64_t& offset) {
  if (at_ == instruction_.operands.size()) decoder_.fail(instruction_, "lacks an operand");
  const Operand& operand = instruction_.operands[at_];
  address(slot, wide, offset);
  if (operand.elements.size() != 1 || operand.elements[0].kind != Operand::Kind::vector ||
      operand.elements[0].elements.size() != form.axes)
    decoder_.fail(instruction_, "needs a coordinate for each of its axes: [map, {..}]");
  for (size_t i = 0; i < form.axes; ++i)
    put(static_cast<BulkSlot>(bulk_coordinates + i), operand.elements[0].elements[i], Type::s32);
}

void BulkOperands::value(BulkSlot slot, Type type) {
  put(slot, next(), type);
}

void BulkOperands::offsets() {
  const Operand& operand = next();
  if (operand.kind != Operand::Kind::vector || operand.elements.size() + 2 != form.axes)
    decoder_.fail(instruction_, "needs an offset of im2col for each axis but the first and the last");
  for (size_t i = 0; i < operand.elements.size(); ++i)
    put(static_cast<BulkSlot>(bulk_offsets + i), operand.elements[i], Type::u16);
}

void BulkOperands::completion() {
  form.at_barrier = has("mbarrier::complete_tx::bytes");
  if (!form.at_barrier) return;
  int64_t offset = 0;
  address(bulk_barrier, form.barrier_wide, offset);
  form.barrier_offset = static_cast<int32_t>(offset);
}

void BulkOperands::finish() {
  form.multicast = has("multicast::cluster");
  if (form.multicast) value(bulk_mask, Type::u16);
  at_ += instruction_.form.cache_hint;
  if (at_ != instruction_.operands.size())
    decoder_.expect_operands(instruction_, std::min(at_, instruction_.operands.size() + 1), at_);
  op_.in_cluster = true;
  op_.immediate = form.bits();
  decoder_.set_slots(op_, slots_);
}

BulkSide bulk_side(Warp& warp, const Op&, bool shared, uint64_t address, uint64_t bytes, bool in_cluster) {
  BulkSide side;
  Block& block = *warp.block;
  if (shared) {
    if (address - shared_window < window_bytes) address -= shared_window;
    side.address = shared_place(warp, address, bytes, in_cluster);
    side.found = side.address != no_shared;
    if (side.found) side.data = block.shared.data() + side.address;
    return side;
  }
  side.address = address;
  const Memory& memory = *block.context->memory;
  const int found = memory.find(address, bytes);
  side.found = found >= 0;
  if (!side.found) return side;
  const Allocation& a = memory.allocations()[static_cast<size_t>(found)];
  side.offset = address - a.base;
  if (a.pages)
    side.pages = a.pages.get();
  else
    side.data = a.data + side.offset;
  return side;
}

bool each_target(Warp& warp, const Op& op, int lane, uint64_t to, uint32_t bytes,
                 const std::function<bool(uint64_t, BulkCopy&&)>& send) {
  const BulkForm form = BulkForm::of(op.immediate);
  BulkCopy made;
  made.op = &op, made.warp = warp.index, made.lane = lane;
  made.to_space = form.to_shared ? Space::shared : Space::global;
  made.combine = form.combine, made.type = op.type;
  if (!form.at_barrier) return send(to, std::move(made));
  made.barrier_bytes = bytes;
  const uint64_t barrier = bulk_address(warp, op.slots[bulk_barrier], form.barrier_wide, lane) +
                           static_cast<uint64_t>(int64_t{form.barrier_offset});
  const auto one = [&](uint64_t target, uint64_t at) {
    BulkCopy copy = made;
    if (at - shared_window < window_bytes) at -= shared_window;
    copy.barrier = shared_place(warp, at, 8, true);
    if (copy.barrier == no_shared || at % 8 != 0)
      return bad_access(warp, op, lane, at, 8, Space::shared, copy.barrier != no_shared);
    return send(target, std::move(copy));
  };
  if (!form.multicast) return one(to, barrier);
  constexpr uint64_t inside = (uint64_t{1} << shared_rank_bit) - 1;
  const uint32_t mask = warp.word(op.slots[bulk_mask])[lane] & 0xffff;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    const uint64_t named = uint64_t{rank + 1} << shared_rank_bit;
    if ((mask >> rank & 1) && !one(named | (to & inside), named | (barrier & inside))) return false;
  }
  return true;
}

}  // namespace assay::vm
