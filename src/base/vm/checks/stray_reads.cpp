#include "src/base/vm/checks/stray_reads.h"

namespace assay::vm {

void RacingReads::add(uint64_t address, uint32_t bytes, Thread writer) {
  for (uint64_t at = address; at < address + bytes; ++at) {
    const auto [known, is_new] = writers_.try_emplace(at, Writer{writer});
    if (!is_new && known->second.thread != writer) known->second.several = true;
  }
}

bool RacingReads::races(uint64_t address, uint32_t bytes, Thread thread) const {
  for (uint64_t at = address; at < address + bytes; ++at) {
    const auto known = writers_.find(at);
    if (known != writers_.end() && (known->second.several || known->second.thread != thread)) return true;
  }
  return false;
}

void StrayReads::enter(const LaunchContext& context, const RacingReads& racing) {
  code_ = context.code;
  racing_ = &racing;
}

void StrayReads::begin_block(Block& block) {
  block_ = &block;
  lanes_.resize(block.warps.size());
  for (std::vector<uint32_t>& of_warp : lanes_) of_warp.assign(code_->file_bytes / 64 + 4, 0);
}

RacingReads::Thread StrayReads::thread_of(const Warp& warp, int lane) const {
  return {block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)};
}

bool StrayReads::ends(const Signature& signature) {
  switch (signature.flow()) {
    case Flow::copy:
    case Flow::pack:
    case Flow::unpack:
    case Flow::select:
    case Flow::logic:
    case Flow::shift:
    case Flow::permute:
    case Flow::integer:
    case Flow::arithmetic:
    case Flow::conversion:
    case Flow::comparison:
    case Flow::address:
    case Flow::exchange:
    case Flow::load:
      return signature.control != Control::none || signature.form.carry_in || signature.form.carry_out;
    default:
      return true;
  }
}

void StrayReads::guarded(Warp& warp, const Op& op, uint32_t active) {
  guard_ = lanes(warp, op.guard) & active;
  if (!guard_) return;
  const Signature& signature = code_->signature(op);
  if (ends(signature) || signature.flow() == Flow::load || signature.flow() == Flow::exchange) matter_ = true;
  for (const Use& to : signature.writes) lanes(warp, to.slot) |= guard_;
}

void StrayReads::before(Warp& warp, const Op& op, uint32_t mask) {
  if (!op.guarded) guard_ = 0;
  const Signature& signature = code_->signature(op);
  result_ = 0;
  for (const Use& use : signature.reads) {
    if (use.slot == no_slot || use.purpose == Purpose::guard) continue;
    // A lane that shuffles takes what another has: `after` knows which.
    const bool travels =
        signature.flow() == Flow::exchange && use.slot == op.s[0] && use.purpose == Purpose::value;
    if (travels) continue;
    const uint32_t found = lanes(warp, use.slot) & mask;
    result_ |= found;
    if (found && (use.purpose != Purpose::value || ends(signature))) matter_ = true;
  }
}

void StrayReads::after(Warp& warp, const Op& op, uint32_t mask) {
  const Signature& signature = code_->signature(op);
  if (signature.flow() == Flow::exchange) {
    const uint32_t source = lanes(warp, op.s[0]);
    each_lane(mask, [&](int lane) { result_ |= (source >> (warp.lane_source[lane] & 31) & 1) << lane; });
  }
  if (signature.flow() == Flow::copy_bulk) {
    matter_ |= racing_->any();
  } else {
    each_access(warp, op, mask, [&](const MemoryAccess& at) {
      if (at.space != ptx::Space::global || !racing_->races(at.address, at.bytes, thread_of(warp, at.lane)))
        return;
      if (at.writes || signature.flow() != Flow::load)
        matter_ = true;
      else
        result_ |= 1u << at.lane;
    });
  }
  for (const Use& to : signature.writes)
    lanes(warp, to.slot) = (lanes(warp, to.slot) & ~mask) | (result_ & mask) | guard_;
}

void StrayReads::landed(Warp&, const Landing& landing) {
  if (landing.to_space == ptx::Space::global) matter_ |= racing_->any();
}

}  // namespace assay::vm
