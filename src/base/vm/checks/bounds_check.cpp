#include "src/base/vm/checks/bounds_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind out_of_bounds{"bounds", "out-of-bounds"};

}  // namespace

/// The shared or local variable that an operand names: a symbol, or the symbol of an address.
BoundsCheck::Origin BoundsCheck::origin_of(const Op& op, const ptx::Operand& operand) const {
  if (operand.symbol < 0) return 0;
  const auto at_module = static_cast<int32_t>(code_->module->variables.size());
  const int32_t function = operand.symbol < at_module ? -1 : op.function;
  const int32_t variable = operand.symbol < at_module ? operand.symbol : operand.symbol - at_module;
  for (size_t i = 0; i < areas_.size(); ++i)
    if (areas_[i].area->function == function && areas_[i].area->variable == variable)
      return static_cast<Origin>(i + 1);
  return 0;
}

BoundsCheck::Facts BoundsCheck::facts_of(const Op& op) const {
  Facts f;
  if (op.function < 0 || op.instruction < 0) return f;
  const Signature& signature = code_->signature(op);
  const std::vector<ptx::Operand>& operands = code_->module->functions[static_cast<size_t>(op.function)]
                                                  .body[static_cast<size_t>(op.instruction)]
                                                  .operands;
  using Act = Facts::Act;
  if (reaches_memory(signature)) {
    f.act = Act::access;
    for (size_t i = 0; i < operands.size() && !f.symbol; ++i)
      if (operands[i].kind == ptx::Operand::Kind::address) f.symbol = origin_of(op, operands[i]);
    return f;
  }
  if (op.d == no_slot || op.d_cell == Cell::mask) return f;
  using ptx::Operation;
  const Flow flow = signature.flow();
  const Operation operation = signature.form.operation;
  const bool product = operation == Operation::mad;
  const bool sums =
      flow == Flow::copy || flow == Flow::address || operation == Operation::or_ ||
      (flow == Flow::conversion && !ptx::is_float(signature.meaning->result)) ||
      (flow == Flow::integer && (product || operation == Operation::add || operation == Operation::sub));
  f.act = flow == Flow::exchange              ? Act::shuffle
          : flow == Flow::select && !op.slots ? Act::select
          : sums                              ? Act::sum
                                              : Act::clear;
  if (f.act == Act::clear) return f;
  // Of a product only the summand can be an address.
  for (size_t i = product ? 2 : 0; i < 3; ++i)
    if (op.s[i] != no_slot && (f.act != Act::select || i < 2)) f.sources.push_back(op.s[i]);
  for (size_t i = product ? 3 : 1; i < operands.size() && !f.symbol; ++i)
    f.symbol = origin_of(op, operands[i]);
  return f;
}

void BoundsCheck::enter(const LaunchContext& context) {
  code_ = context.code;
  areas_.clear();
  for (const NamedArea& area : code_->shared_areas) areas_.push_back({&area, ptx::Space::shared});
  for (const NamedArea& area : code_->local_areas) areas_.push_back({&area, ptx::Space::local});
  facts_.clear();
  for (const Op& op : code_->ops) facts_.push_back(facts_of(op));
}

void BoundsCheck::begin_block(Block& block) {
  block_ = &block;
  warps_.resize(block.warps.size());
  for (WarpState& w : warps_) {
    w.known.assign(code_->file_bytes / 64 + 4, 0);
    w.origin.resize(code_->file_bytes / 4 + 64);
  }
}

void BoundsCheck::put(Warp& warp, Slot slot, uint32_t mask, uint32_t found,
                      const std::array<Origin, 32>& origins) {
  uint32_t& lanes = known(warp, slot);
  lanes = (lanes & ~mask) | found;
  for_lanes(found, [&](int lane) { origin(warp, slot, lane) = origins[static_cast<size_t>(lane)]; });
}

/// What the result of an instruction between registers points into: the one variable that its sources do.
void BoundsCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts_[static_cast<size_t>(&op - code_->ops.data())];
  if (f.act == Facts::Act::clear) {
    known(warp, op.d) &= ~mask;
    return;
  }
  if (f.act != Facts::Act::sum && f.act != Facts::Act::select) return;
  const bool selects = f.act == Facts::Act::select;
  const uint32_t chosen = selects ? warp.mask(op.s[2]) : ~0u;
  uint32_t found = f.symbol ? mask : 0, mixed = 0;
  std::array<Origin, 32> origins;
  origins.fill(f.symbol);
  for (size_t i = 0; i < f.sources.size(); ++i) {
    uint32_t here = known(warp, f.sources[i]) & mask;
    if (selects) here &= i == 0 ? chosen : ~chosen;
    mixed |= here & found;
    for_lanes(here, [&](int lane) { origins[static_cast<size_t>(lane)] = origin(warp, f.sources[i], lane); });
    found |= here;
  }
  put(warp, op.d, mask, found & ~mixed, origins);
}

void BoundsCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts_[static_cast<size_t>(&op - code_->ops.data())];
  if (f.act == Facts::Act::shuffle) {
    const uint32_t source = known(warp, op.s[0]);
    uint32_t found = 0;
    std::array<Origin, 32> origins{};
    for_lanes(mask, [&](int lane) {
      const int from = static_cast<int>(warp.lane_source[lane]);
      if (!(source >> from & 1)) return;
      origins[static_cast<size_t>(lane)] = origin(warp, op.s[0], from);
      found |= 1u << lane;
    });
    return put(warp, op.d, mask, found, origins);
  }
  const Signature& signature = code_->signature(op);
  if (f.act == Facts::Act::access) {
    // Of cp.async the destination alone: the source is global memory.
    const bool copies = signature.flow() == Flow::copy_async;
    each_access(warp, op, mask,
                [&](const MemoryAccess& access) { judge(warp, op, access, op.s[copies ? 1 : 0]); });
  }
  if (f.act == Facts::Act::access || op.slots)
    for (const Use& to : signature.writes) known(warp, to.slot) &= ~mask;
}

void BoundsCheck::judge(Warp& warp, const Op& op, const MemoryAccess& access, Slot base) {
  const auto [lane, space, address, bytes, reads, writes, operand] = access;
  if (space != ptx::Space::shared && space != ptx::Space::local) return;
  const Origin symbol = facts_[static_cast<size_t>(&op - code_->ops.data())].symbol;
  Origin from = symbol;
  if (base != no_slot && known(warp, base) >> lane & 1) from = symbol ? Origin{0} : origin(warp, base, lane);
  if (!from) return;
  const Area& area = areas_[from - 1u];
  if (area.space != space) return;
  const uint64_t first = area.area->offset,
                 end = area.area->dynamic ? block_->shared.size() : first + area.area->bytes;
  if (address >= first && address + bytes <= end) return;
  CheckFinding* finding = log_.open(out_of_bounds, &op);
  if (!finding) return;
  finding->at =
      log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)}, opcode_of(*code_, op));
  const bool before = address < first;
  const uint64_t by = before ? first - address : address + bytes - end;
  finding->element = memory_text(*block_, space, address);
  finding->message = fmt::format(
      "{} of {} bytes at {} by {} reaches {}: {} bytes {} {} of {} bytes, whose address it was made from",
      opcode_of(*code_, op), bytes, place_text(finding->at.where), thread_text(finding->at), finding->element,
      by, before ? "before" : "past the end of", area.area->name, area.area->bytes);
}

}  // namespace assay::vm
