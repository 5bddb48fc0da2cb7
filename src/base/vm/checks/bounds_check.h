// Addresses of shared and local variables stay inside them. The machine traps where an access leaves a
// block's shared memory or a thread's local memory; this check follows an address from the variable it was
// made from, through sums, moves, selections, conversions and shuffles, and finds an access that reaches the
// variable beside it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// What an op does to the variables that addresses were made from.
struct BoundsFacts {
  enum class Act : uint8_t { none, clear, sum, carry, access } act = Act::none;
  std::vector<Slot> sources;  ///< of sums
  uint16_t symbol = 0;        ///< variable that the instruction names; of cp.async as its destination
};

class BoundsCheck : public Check<BoundsFacts> {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;
  explicit BoundsCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext& context) {
    code_ = context.code;
    areas_.clear();
    for (const NamedArea& area : code_->shared_areas) areas_.push_back({&area, ptx::Space::shared});
    for (const NamedArea& area : code_->local_areas) areas_.push_back({&area, ptx::Space::local});
    begin_code(context, [&](const Op& op, const Signature& signature) { return facts_of(op, signature); });
  }

  void begin_block(Block& block) {
    block_ = &block;
    origins_.begin(block, *code_);
  }

  /// What a sum points into: the one variable that its sources do.
  void before(Warp& warp, const Op& op, uint32_t mask) {
    const BoundsFacts& f = facts(op);
    if (f.act == Act::clear) return origins_.clear(warp, op.d, mask);
    if (f.act != Act::sum) return;
    uint32_t mixed = 0;
    RegisterMarks<Origin>::Lanes made{f.symbol ? mask : 0, {}};
    made.marks.fill(f.symbol);
    for (const Slot source : f.sources) {
      const uint32_t here = origins_.lanes(warp, source) & mask;
      mixed |= here & made.found;
      each_lane(here, [&](int lane) { made.add(lane, origins_.at(warp, source, lane)); });
    }
    made.found &= ~mixed;
    origins_.put(warp, op.d, mask, made);
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const auto& [act, sources, symbol] = facts(op);
    if (act == Act::carry) return origins_.carry(warp, op, mask);
    if (act == Act::access) {
      // Of cp.async the destination alone: the source is global memory.
      const Slot base = op.s[signature(op).flow() == Flow::copy_async ? 1 : 0];
      const uint32_t known = base == no_slot ? 0 : origins_.lanes(warp, base);
      if (known | symbol)
        each_access(warp, op, mask, [&, &symbol = symbol](const MemoryAccess& access) {
          // An address of one variable added to that of another is of none.
          const bool of_base = known >> access.lane & 1;
          const Origin from = !of_base ? symbol : symbol ? Origin{0} : origins_.at(warp, base, access.lane);
          if (from && areas_[from - 1u].space == access.space)
            judge(warp, op, access, *areas_[from - 1u].area);
        });
    }
    if (act == Act::access || op.slots)
      for (const Use& to : signature(op).writes) origins_.clear(warp, to.slot, mask);
  }

 private:
  static constexpr CheckSentence out_of_bounds{
      CheckKind::out_of_bounds,
      "{access} of {bytes} bytes at {at} by {thread} reaches {element}: "
      "{by} bytes {side} {area} of {size} bytes, "
      "whose address it was made from"};

  /// 0: of no variable; else 1 + index into areas_.
  using Origin = uint16_t;
  using Act = BoundsFacts::Act;

  BoundsFacts facts_of(const Op& op, const Signature& signature) const {
    BoundsFacts f;
    const ptx::Instruction* const instruction = instruction_of(*code_, op);
    if (!instruction) return f;
    const std::vector<ptx::Operand>& operands = instruction->operands;
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
    f.act = sums ? Act::sum : flow == Flow::exchange || flow == Flow::select ? Act::carry : Act::clear;
    if (f.act != Act::sum) return f;
    // Of a product only the summand can be an address.
    for (size_t i = product ? 2 : 0; i < 3; ++i)
      if (op.s[i] != no_slot) f.sources.push_back(op.s[i]);
    for (size_t i = product ? 3 : 1; i < operands.size() && !f.symbol; ++i)
      f.symbol = origin_of(op, operands[i]);
    return f;
  }

  /// The shared or local variable that an operand names: a symbol, or the symbol of an address.
  Origin origin_of(const Op& op, const ptx::Operand& operand) const {
    if (operand.symbol < 0) return 0;
    const auto at_module = static_cast<int32_t>(code_->module->variables.size());
    const int32_t function = operand.symbol < at_module ? -1 : op.function;
    const int32_t variable = operand.symbol < at_module ? operand.symbol : operand.symbol - at_module;
    for (size_t i = 0; i < areas_.size(); ++i)
      if (areas_[i].area->function == function && areas_[i].area->variable == variable)
        return static_cast<Origin>(i + 1);
    return 0;
  }

  void judge(const Warp& warp, const Op& op, const MemoryAccess& access, const NamedArea& area) {
    // Every block of a cluster has the variable at the same offset.
    const uint64_t stride = std::max<uint64_t>(block_->shared_stride, 1),
                   own = access.space == ptx::Space::shared ? access.address / stride * stride : 0;
    const uint64_t address = access.address, bytes = access.bytes, first = own + area.offset,
                   end = area.dynamic ? own + block_->shared_bytes : first + area.bytes;
    if ((address >= first && address + bytes <= end) || !log_.opens(out_of_bounds, &op)) return;
    const bool before = address < first;
    log_.tell(place(warp, op, access.lane, opcode_of(*code_, op)), {},
              memory_text(*block_, access.space, address), fmt::arg("bytes", bytes),
              fmt::arg("by", before ? first - address : address + bytes - end),
              fmt::arg("side", before ? "before" : "past the end of"), fmt::arg("area", area.name),
              fmt::arg("size", area.bytes));
  }

  struct Area {
    const NamedArea* area;
    ptx::Space space;
  };
  std::vector<Area> areas_;
  RegisterMarks<Origin> origins_;
};

}  // namespace assay::vm
