// Whether anything depends on what racing loads got. Of an element that several threads hold compilers let
// one store the result and all load: `out[i] = x[i] + y[i]` with out = x is then a race of those who only
// load, but what they got reaches nothing. Such a race is told from others in a second run: what the racing
// threads load at the racing places is followed through registers, and where it meets a store, an address, a
// guard that acts, a matrix, a vote or a call, the race stands.
//
// Nothing is given up to be quick: every load of such a place counts as racing but those of the one thread
// that writes there, and what cannot be followed is met.
#pragma once
#include <algorithm>
#include <boost/icl/interval_map.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// Places of global memory where a read raced with a write.
class RacingReads {
 public:
  /// Block::linear, of a cluster its first block's, and the thread's number in all the warps of that Block.
  using Thread = std::pair<uint64_t, uint32_t>;
  void add(uint64_t address, uint32_t bytes, Thread writer) {
    writers_ += std::pair(Bytes::right_open(address, address + bytes), Writers{writer});
  }
  bool any() const { return !writers_.empty(); }
  /// Whether a thread that reaches there is not the only one known to write there.
  bool races(uint64_t address, uint32_t bytes, Thread thread) const {
    const auto [first, last] = writers_.equal_range(Bytes::right_open(address, address + bytes));
    return std::any_of(first, last, [&](const auto& at) { return at.second != Writers{thread}; });
  }

 private:
  struct Writers {
    Thread first;
    bool several = false;
    bool operator==(const Writers&) const = default;
    void operator+=(const Writers& other) { several |= other != *this; }
  };
  using Bytes = boost::icl::interval<uint64_t>;
  boost::icl::interval_map<uint64_t, Writers, boost::icl::partial_enricher> writers_;
};

class StrayReads : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;
  /// `racing`: by launch.
  explicit StrayReads(const std::vector<RacingReads>& racing) : launches_(racing) {}
  /// Before the blocks of a launch.
  void enter(const LaunchContext& context) {
    code_ = context.code;
    racing_ = &launches_[static_cast<size_t>(context.launch_index)];
  }

  void begin_block(Block& block) {
    block_ = &block;
    lanes_.begin(block.warps.size(), *code_);
  }

  void guarded(Warp& warp, const Op& op, uint32_t active) {
    guard_ = lanes_(warp, op.guard) & active;
    if (!guard_) return;
    const Signature& signature = code_->signature(op);
    if (ends(signature) || signature.flow() == Flow::load || signature.flow() == Flow::exchange)
      matter_ = true;
    for (const Use& to : signature.writes) lanes_(warp, to.slot) |= guard_;
  }

  void before(Warp& warp, const Op& op, uint32_t mask) {
    if (!op.guarded) guard_ = 0;
    const Signature& signature = code_->signature(op);
    result_ = 0;
    for (const Use& use : signature.reads) {
      if (use.slot == no_slot || use.purpose == Purpose::guard) continue;
      // A lane that shuffles takes what another has: `after` knows which.
      const bool travels =
          signature.flow() == Flow::exchange && use.slot == op.s[0] && use.purpose == Purpose::value;
      if (travels) continue;
      const uint32_t found = lanes_(warp, use.slot) & mask;
      result_ |= found;
      if (found && (use.purpose != Purpose::value || ends(signature))) matter_ = true;
    }
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& signature = code_->signature(op);
    if (signature.flow() == Flow::exchange) {
      const uint32_t source = lanes_(warp, op.s[0]);
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
      lanes_(warp, to.slot) = (lanes_(warp, to.slot) & ~mask) | (result_ & mask) | guard_;
  }

  void landed(Warp&, const Landing& landing) {
    if (landing.to_space == ptx::Space::global) matter_ |= racing_->any();
  }

  /// Whether something depends on them.
  bool matter() const { return matter_; }

 private:
  /// Whether what an op takes is not followed beyond it.
  static bool ends(const Signature& signature) {
    using enum Flow;
    return !is_one_of(signature.flow(), copy, pack, unpack, select, logic, shift, permute, integer,
                      arithmetic, conversion, comparison, address, exchange, load) ||
           signature.control != Control::none || signature.form.carry_in || signature.form.carry_out;
  }

  RacingReads::Thread thread_of(const Warp& warp, int lane) const {
    return {block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)};
  }

  const std::vector<RacingReads>& launches_;
  const Code* code_ = nullptr;
  const RacingReads* racing_ = nullptr;  ///< of the launch that runs
  Block* block_ = nullptr;
  RegisterLanes lanes_;  ///< that hold what such a load gave
  uint32_t result_ = 0;  ///< lanes of the op that runs whose result comes of one
  uint32_t guard_ = 0;   ///< lanes of it whose guard does
  bool matter_ = false;
};

}  // namespace assay::vm
