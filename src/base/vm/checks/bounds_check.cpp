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
  if (!op.row || op.function < 0 || op.instruction < 0) return f;
  const ptx::Instruction& instruction = code_->module->functions[static_cast<size_t>(op.function)]
                                            .body[static_cast<size_t>(op.instruction)];
  const auto is = [&](const char* prefix) { return instruction.opcode.starts_with(prefix); };
  const auto symbol = [&](size_t operand) {
    return operand < instruction.operands.size() ? origin_of(op, instruction.operands[operand]) : Origin{0};
  };
  switch (op.row->effect) {
    case Effect::load:
    case Effect::load_matrix:
      f.act = Facts::Act::access;
      f.symbol = symbol(1);
      f.bytes = op.row->effect == Effect::load ? op.element_bytes * op.vector_length : 16u;
      return f;
    case Effect::store:
    case Effect::store_matrix:
      f.act = Facts::Act::access;
      f.symbol = symbol(0);
      f.bytes = op.row->effect == Effect::store ? op.element_bytes * uint32_t{op.vector_length} : 16u;
      return f;
    case Effect::atomic:
      f.act = Facts::Act::access;
      f.symbol = symbol(is("atom") ? 1 : 0);
      f.bytes = op.element_bytes;
      return f;
    case Effect::async_copy:
      f.act = Facts::Act::access;
      f.symbol2 = symbol(0);
      f.bytes = op.element_bytes;
      return f;
    default:
      break;
  }
  if (op.d == no_slot || op.d_cell == Cell::mask) return f;
  f.act = Facts::Act::clear;
  if (op.slots) return f;
  const bool sums = is("mov.") || is("add.") || is("sub.") || is("mad.") || is("cvta") || is("cvt.u") ||
                    is("cvt.s") || is("or.");
  if (op.row->effect == Effect::shuffle) f.act = Facts::Act::shuffle;
  if (op.row->effect == Effect::select) f.act = Facts::Act::select;
  if (sums && (op.row->effect == Effect::move || op.row->effect == Effect::bits)) f.act = Facts::Act::sum;
  if (f.act == Facts::Act::clear) return f;
  // Of a product only the summand can be an address.
  const bool product = is("mad.");
  for (size_t i = product ? 2 : 0; i < 3; ++i)
    if (i < std::max<size_t>(op.source_count, 1) && op.s[i] != no_slot) f.sources[i] = op.s[i];
  for (size_t i = product ? 3 : 1; i < instruction.operands.size() && !f.symbol; ++i) f.symbol = symbol(i);
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
  for (size_t i = 0; i < (selects ? 2u : 3u); ++i) {
    if (f.sources[i] == no_slot) continue;
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
  if (f.act != Facts::Act::access) return;
  if (op.row->effect == Effect::async_copy) {
    judge(warp, op, mask, op.s[1], f.symbol2, warp.address2, ptx::Space::shared, f.bytes);
    return;
  }
  if (op.row->effect == Effect::load_matrix || op.row->effect == Effect::store_matrix)
    mask = op.slot_count == 4 ? ~0u : (1u << (8 * op.slot_count)) - 1;
  judge(warp, op, mask, op.s[0], f.symbol, warp.address, warp.space, f.bytes);
  if (op.row->effect == Effect::load || op.row->effect == Effect::load_matrix)
    for (uint16_t i = 0; i < op.slot_count; ++i)
      if (op.slots[i] != no_slot) known(warp, op.slots[i]) &= ~mask;
  if (op.d != no_slot) known(warp, op.d) &= ~mask;
}

void BoundsCheck::judge(Warp& warp, const Op& op, uint32_t mask, Slot base, Origin symbol,
                        const uint64_t* address, ptx::Space space, uint32_t bytes) {
  if (space != ptx::Space::shared && space != ptx::Space::local) return;
  const uint32_t made_from = base == no_slot ? 0 : known(warp, base);
  if (!made_from && !symbol) return;
  for_lanes(mask, [&](int lane) {
    Origin from = symbol;
    if (made_from >> lane & 1) from = symbol ? Origin{0} : origin(warp, base, lane);
    if (!from) return;
    const Area& area = areas_[from - 1u];
    if (area.space != space) return;
    const uint64_t first = area.area->offset,
                   end = area.area->dynamic ? block_->shared.size() : first + area.area->bytes;
    if (address[lane] >= first && address[lane] + bytes <= end) return;
    CheckFinding* finding = log_.open(out_of_bounds, &op);
    if (!finding) return;
    finding->at = log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)},
                             opcode_text(*code_, op));
    const bool before = address[lane] < first;
    const uint64_t by = before ? first - address[lane] : address[lane] + bytes - end;
    finding->element = memory_text(*block_, space, address[lane]);
    finding->message = fmt::format("{} of {} bytes at {} by {} reaches {}: {} bytes {} {} of {} bytes, whose address it was made from",
                                   opcode_text(*code_, op), bytes, place_text(finding->at.where),
                                   thread_text(finding->at), finding->element, by,
                                   before ? "before" : "past the end of", area.area->name, area.area->bytes);
  });
}

}  // namespace assay::vm
