#include "src/base/vm/checks/async_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind copy_race{"async", "async-copy-race"}, wgmma_race{"async", "wgmma-race"};

bool has(const std::vector<Slot>& slots, Slot slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

AsyncCheck::Facts AsyncCheck::facts_of(const Op& op) const {
  Facts f;
  const Signature& signature = code_->signature(op);
  const auto [completion, step, proxy] = signature.meaning->asynchronous;
  for (const Use& to : signature.writes) f.writes.push_back(to.slot);
  // The sums of a wgmma that it adds to are ordered.
  for (const Use& from : signature.reads)
    if (from.purpose != Purpose::guard &&
        !(completion == Completion::wgmma_group && has(f.writes, from.slot)))
      f.reads.push_back(from.slot);
  f.moves =
      signature.flow() == Flow::copy || signature.flow() == Flow::pack || signature.flow() == Flow::unpack;
  using Act = Facts::Act;
  if (reaches_memory(signature)) f.act = Act::access;
  if (completion == Completion::copy_group && step == Step::issue) f.act = Act::copy;
  if (completion == Completion::wgmma_group && step == Step::issue) f.act = Act::multiply;
  if (completion == Completion::wgmma_group && step == Step::fence) f.act = Act::wgmma_fence;
  if (completion == Completion::none && step == Step::fence && proxy == Proxy::async)
    f.act = Act::proxy_fence;
  return f;
}

void AsyncCheck::enter(const LaunchContext& context) {
  code_ = context.code;
  facts_.clear();
  copies_ = multiplies_ = false;
  of_wgmma_.assign(code_->file_bytes / 64 + 4, 0);
  for (const Op& op : code_->ops) {
    facts_.push_back(facts_of(op));
    copies_ |= facts_.back().act == Facts::Act::copy;
    if (facts_.back().act != Facts::Act::multiply) continue;
    multiplies_ = true;
    for (int i = 0; i < op.slot_count; ++i) of_wgmma_[op.slots[i] / 64] = 1;
  }
}

void AsyncCheck::begin_block(Block& block) {
  block_ = &block;
  if (copies_) copying_.assign(block.shared.size() / 4 + 1, 0);
  if (!multiplies_) return;
  stored_.assign(block.shared.size() / 4 + 4, Stored{});
  pieces_.assign(block.shared.size() / 16 + 1, Piece{});
  time_ = epoch_ = fence_epoch_ = 0;
  warps_.resize(block.warps.size());
  for (WarpState& warp : warps_) {
    warp.written.assign(of_wgmma_.size(), 0);
    warp.since_fence.clear();
    warp.proxy_fence = 0;
  }
}

std::string AsyncCheck::register_name(const Op& op, Slot slot) const {
  // An op's registers stand in its instruction in the order of its slots.
  const ptx::Function& function = code_->module->functions[static_cast<size_t>(op.function)];
  const ptx::Operand& fragment = function.body[static_cast<size_t>(op.instruction)].operands[0];
  for (uint16_t i = 0; i < op.slot_count && i < fragment.elements.size(); ++i)
    if (op.slots[i] == slot && fragment.elements[i].reg >= 0)
      return function.registers[static_cast<size_t>(fragment.elements[i].reg)].name;
  return "a register of A";
}

/// Registers of instructions in flight.
void AsyncCheck::check_registers(Warp& warp, const Op& op, const Facts& facts) {
  const bool multiplies = facts.act == Facts::Act::multiply;
  const MatrixForm& form = code_->signature(op).matrix;
  for (const auto& issued : warp.products.in_flight()) {
    const Op& flying = *issued.op;
    const MatrixForm& flown = code_->signature(flying).matrix;
    const int sums = flown.sum_registers();
    for (int i = 0; i < flying.slot_count; ++i) {
      const Slot slot = flying.slots[i];
      const bool result = i < sums, writes = has(facts.writes, slot), reads = has(facts.reads, slot);
      if (result ? !(reads || writes) : !writes) continue;
      // Sums of one shape that follow each other are ordered.
      if (result && multiplies && writes && !reads && flown.tiles == form.tiles) continue;
      CheckFinding* finding = log_.open(wgmma_race, &op, &flying);
      if (!finding) return;
      const uint32_t thread = warp.index * 32;
      const auto linear = block_->linear;
      finding->at = log_.place({&op, linear, thread}, writes ? "written" : "read");
      finding->other = log_.place({&flying, linear, thread}, "issued");
      finding->element = register_name(flying, slot);
      finding->message = fmt::format(
          "{}: {} at {} by {} while the wgmma.mma_async at {} that {} it is in flight: no wgmma.wait_group "
          "between "
          "them",
          finding->element, writes ? "written" : "read", place_text(finding->at.where),
          thread_text(finding->at), place_text(finding->other->where), result ? "makes" : "reads");
      return;
    }
  }
}

/// What was written to the registers of a wgmma since the last wgmma.fence.
void AsyncCheck::check_fence(Warp& warp, const Op& op, const Facts&) {
  for (int i = 0; i < op.slot_count; ++i) {
    const uint32_t writer = warps_[warp.index].written[op.slots[i] / 64];
    if (!writer) continue;
    const Op& before = code_->ops[writer - 1];
    CheckFinding* finding = log_.open(wgmma_race, &op, &before);
    if (!finding) return;
    finding->at = log_.place({&op, block_->linear, warp.index * 32}, "read");
    finding->other = log_.place({&before, block_->linear, warp.index * 32}, "written");
    finding->element = register_name(op, op.slots[i]);
    finding->message = fmt::format(
        "{}: written at {}, then used by the wgmma.mma_async at {} by {}: no wgmma.fence between them",
        finding->element, place_text(finding->other->where), place_text(finding->at.where),
        thread_text(finding->at));
    return;
  }
}

void AsyncCheck::before(Warp& warp, const Op& op, uint32_t) {
  if (!multiplies_) return;
  const Facts& facts = facts_[index_of(op)];
  if (!warp.products.in_flight().empty()) check_registers(warp, op, facts);
  if (facts.act == Facts::Act::multiply) check_fence(warp, op, facts);
}

void AsyncCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  if (!copies_ && !multiplies_) return;
  const Facts& facts = facts_[index_of(op)];
  using Act = Facts::Act;
  if (multiplies_ && facts.act != Act::multiply && !facts.moves)
    for (const Slot slot : facts.writes)
      if (of_wgmma_[slot / 64]) {
        WarpState& state = warps_[warp.index];
        if (!state.written[slot / 64]) state.since_fence.push_back(slot);
        state.written[slot / 64] = static_cast<uint32_t>(index_of(op)) + 1;
      }
  switch (facts.act) {
    case Act::none:
      return;
    case Act::multiply:
      return multiply(warp, op);
    case Act::wgmma_fence:
      for (const Slot slot : warps_[warp.index].since_fence) warps_[warp.index].written[slot / 64] = 0;
      warps_[warp.index].since_fence.clear();
      return;
    case Act::proxy_fence:
      if (!multiplies_) return;
      warps_[warp.index].proxy_fence = ++time_;
      fence_epoch_ = epoch_;
      return;
    default:
      break;
  }
  each_access(warp, op, mask, [&](const MemoryAccess& access) {
    if (access.space != ptx::Space::shared) return;
    touch(warp, op, access);
    for (uint32_t byte = 0; facts.act == Act::copy && byte < access.bytes; byte += 4)
      copying_[(access.address + byte) / 4] =
          static_cast<uint32_t>(index_of(op) << 10 | (warp.index * 32 + static_cast<uint32_t>(access.lane))) +
          1;
  });
}

void AsyncCheck::check_copies(const Warp& warp, const Op& op, const MemoryAccess& access) {
  const char* const did = access.reads ? "read" : "written";
  for (uint64_t at = access.address & ~uint64_t{3}; copies_ && at < access.address + access.bytes; at += 4) {
    const uint32_t copy = copying_[at / 4];
    if (!copy) continue;
    const Op& copying = code_->ops[(copy - 1) >> 10];
    CheckFinding* finding = log_.open(copy_race, &op, &copying);
    if (!finding) return;
    finding->at = log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(access.lane)},
                             fmt::format("{} by {}", did, opcode_of(*code_, op)));
    finding->other = log_.place({&copying, block_->linear, (copy - 1) & 1023}, "copied by cp.async");
    finding->element = memory_text(*block_, ptx::Space::shared, at);
    finding->message = fmt::format(
        "{}: {} at {} by {} while the cp.async at {} by {} that fills it is in flight: no "
        "cp.async.wait_group covers "
        "it",
        finding->element, did, place_text(finding->at.where), thread_text(finding->at),
        place_text(finding->other->where), thread_text(*finding->other));
    return;
  }
}

bool AsyncCheck::in_flight(const Piece& piece) const {
  if (!piece.reader) return false;
  return block_->warps[piece.reader_warp].products.flies(piece.reader_issue - 1);
}

/// One lane's access to shared memory.
void AsyncCheck::touch(Warp& warp, const Op& op, const MemoryAccess& access) {
  const auto [lane, space, address, bytes, reads, writes, operand] = access;
  const bool copy = facts_[index_of(op)].act == Facts::Act::copy;
  if (!copy) check_copies(warp, op, access);
  if (!writes || !multiplies_) return;
  const uint32_t thread = warp.index * 32 + static_cast<uint32_t>(lane);
  for (uint64_t p = address / 16; p <= (address + bytes - 1) / 16; ++p) {
    Piece& piece = pieces_[p];
    if (in_flight(piece)) {
      const Op& reader = code_->ops[piece.reader - 1];
      if (CheckFinding* finding = log_.open(wgmma_race, &op, &reader)) {
        finding->at = log_.place({&op, block_->linear, thread}, "written by " + opcode_of(*code_, op));
        finding->other = log_.place({&reader, block_->linear, piece.reader_warp * 32u}, "read by wgmma");
        finding->element = memory_text(*block_, ptx::Space::shared, address);
        finding->message = fmt::format(
            "{}: written at {} by {} while the wgmma.mma_async at {} by {} that reads it is in flight: no "
            "wgmma.wait_group covers it",
            finding->element, place_text(finding->at.where), thread_text(finding->at),
            place_text(finding->other->where), thread_text(*finding->other));
      }
    }
  }
  if (copy) return;
  ++time_;
  for (uint64_t at = address / 4; at <= (address + bytes - 1) / 4; ++at)
    stored_[at] = {static_cast<uint32_t>(index_of(op)) + 1, thread, time_, epoch_};
}

void AsyncCheck::multiply(Warp& warp, const Op& op) {
  each_access(warp, op, ~0u, [&](const MemoryAccess& access) {
    const uint64_t address = access.address;
    check_copies(warp, op, access);
    for (uint64_t at = address / 4; at < address / 4 + 4; ++at) {
      const Stored& stored = stored_[at];
      if (!stored.writer || warps_[stored.thread / 32].proxy_fence > stored.time ||
          fence_epoch_ > stored.epoch)
        continue;
      const Op& writer = code_->ops[stored.writer - 1];
      if (CheckFinding* finding = log_.open(wgmma_race, &op, &writer)) {
        finding->at =
            log_.place({&op, block_->linear, warp.index * 32}, fmt::format("read as {}", access.operand));
        finding->other =
            log_.place({&writer, block_->linear, stored.thread}, "written by " + opcode_of(*code_, writer));
        finding->element = memory_text(*block_, ptx::Space::shared, address);
        finding->message = fmt::format(
            "{}: written at {} by {}, read as {} by the wgmma.mma_async at {} by {}: no fence.proxy.async "
            "between "
            "them",
            finding->element, place_text(finding->other->where), thread_text(*finding->other), access.operand,
            place_text(finding->at.where), thread_text(finding->at));
      }
      break;
    }
    pieces_[address / 16] = {static_cast<uint32_t>(index_of(op)) + 1, static_cast<uint32_t>(warp.products.issued()),
                             static_cast<uint16_t>(warp.index)};
  });
}

void AsyncCheck::landed(Warp&, const Landing& landing) {
  for_lanes(landing.mask, [&](int lane) {
    for (uint32_t byte = 0; byte < landing.bytes; byte += 4) {
      const uint32_t at = (landing.shared[lane] + byte) / 4;
      copying_[at] = 0;
      if (multiplies_) stored_[at] = {};
    }
  });
}

void AsyncCheck::released(Block&) {
  ++epoch_;
  ++time_;
}

}  // namespace assay::vm
