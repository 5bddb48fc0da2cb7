// What every check has: the log, the launch and the block that run, and what it knows of each op.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/vm/cell_memory.h"
#include "src/base/vm/checks/check_log.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {

/// What a check is made from.
struct CheckSetup {
  CheckLog& log;
  const std::set<std::string>& unfollowed;  ///< global buffers whose races are not followed
  bool strict = false;                      ///< a trap at the first read of anything never written
  bool partial = false;  ///< only some blocks run: what the others would have written is no fault
};

/// An op, and the thread that ran it: of the block or cluster, as Check::thread_of counts.
struct Actor {
  const Op* op = nullptr;
  uint32_t thread = 0;
};

/// Of cells of so many bytes each those that hold the bytes from `address` on.
template <uint64_t granule, class Cell>
std::span<Cell> cells_of(std::vector<Cell>& cells, uint64_t address, uint64_t bytes) {
  return {&cells[address / granule], (address + bytes + granule - 1) / granule - address / granule};
}

template <class Facts>
class Check : public PlainTrace {
 protected:
  explicit Check(const CheckSetup& setup) : log_(setup.log) {}

  /// A launch begins: facts_of(op, signature) of each op.
  template <class FactsOf>
  void begin_code(const LaunchContext& context, FactsOf facts_of) {
    code_ = context.code;
    facts_.clear();
    for (const Op& op : code_->ops) facts_.push_back(facts_of(op, code_->signature(op)));
  }
  const Facts& facts(const Op& op) const { return facts_[code_->index(op)]; }
  const Signature& signature(const Op& op) const { return code_->signature(op); }
  /// In its block or cluster.
  static uint32_t thread_of(const Warp& warp, int lane) {
    return warp.index * 32 + static_cast<uint32_t>(lane);
  }
  static Actor actor(const Warp& warp, const Op& op, int lane = 0) { return {&op, thread_of(warp, lane)}; }
  CheckedPlace place(const Actor& who, std::string access) const {
    return log_.place(*who.op, block_->linear, who.thread, std::move(access));
  }
  /// What it did by which opcode; of another block.
  CheckedPlace place_by(const Actor& who, const std::string& did, uint64_t block) const {
    return log_.place(*who.op, block, who.thread, did + " by " + opcode_of(*code_, *who.op));
  }
  CheckedPlace place_by(const Actor& who, const std::string& did) const {
    return place_by(who, did, block_->linear);
  }
  CheckedPlace place(const Warp& warp, const Op& op, int lane, std::string access) const {
    return place(actor(warp, op, lane), std::move(access));
  }

  CheckLog& log_;
  const Code* code_ = nullptr;
  Block* block_ = nullptr;
  std::vector<Facts> facts_;
};

/// Values of some lanes of the registers, as a check follows them; a bit per lane says of which.
template <class Mark>
class RegisterMarks {
 public:
  /// Marks of lanes on their way to a register.
  struct Lanes {
    uint32_t found = 0;
    std::array<Mark, 32> marks;
    void add(int lane, const Mark& mark) {
      found |= 1u << lane;
      marks[static_cast<size_t>(lane)] = mark;
    }
  };

  void begin(const Block& block, const Code& code) {
    const size_t marks = code.file_bytes / 4 + 64;
    lanes_.begin(block.warps.size(), code);
    warps_.resize(block.warps.size());
    for (OfWarp& warp : warps_)
      if (std::exchange(warp.count, marks) != marks) warp.marks = lazy_zeros<Mark>(marks);
  }
  uint32_t& lanes(const Warp& warp, Slot slot) { return lanes_(warp, slot); }
  bool has(const Warp& warp, Slot slot, int lane) { return lanes(warp, slot) >> lane & 1; }
  Mark& at(const Warp& warp, Slot slot, int lane) {
    return warps_[warp.index].marks[slot / 4 + static_cast<size_t>(lane)];
  }
  void clear(const Warp& warp, Slot slot, uint32_t mask) { lanes(warp, slot) &= ~mask; }
  void set(const Warp& warp, Slot slot, int lane, const Mark& mark) {
    lanes(warp, slot) |= 1u << lane;
    at(warp, slot, lane) = mark;
  }
  /// In the lanes of `mask` the register has these and no others.
  void put(const Warp& warp, Slot slot, uint32_t mask, const Lanes& made) {
    clear(warp, slot, mask);
    lanes(warp, slot) |= made.found;
    each_lane(made.found, [&](int lane) { at(warp, slot, lane) = made.marks[static_cast<size_t>(lane)]; });
  }
  /// Registers that an op with carries(signature) moves whole take their marks along.
  void carry(const Warp& warp, const Op& op, uint32_t mask) {
    const Executed done = executed(warp, op, mask);
    uint32_t sources = 0;
    for (const Use& from : done.signature->reads) sources |= lanes(warp, from.slot);
    Lanes made;
    if (sources && !op.slots)
      each_transfer(done, [&](const Transfer& t) {
        if (t.from.at == 0 && t.to.at == 0 && has(warp, t.from.slot, t.from.lane))
          made.add(t.to.lane, at(warp, t.from.slot, t.from.lane));
      });
    for (const Use& to : done.signature->writes) clear(warp, to.slot, mask);
    if (made.found) put(warp, op.d, made.found, made);
  }

 private:
  struct OfWarp {
    /// By slot / 4 + lane; pages of registers that have none are never touched.
    std::unique_ptr<Mark[], FreeMemory> marks;
    size_t count = 0;
  };
  RegisterLanes lanes_;  ///< that have a mark
  std::vector<OfWarp> warps_;
};

}  // namespace assay::vm
