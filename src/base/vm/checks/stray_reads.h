// Whether anything depends on what racing loads got. Of an element that several threads hold compilers let
// one store the result and all load: `out[i] = x[i] + y[i]` with out = x is then a race of those who only
// load, but what they got reaches nothing. Such a race is told from others in a second run: what the racing
// threads load at the racing places is followed through registers, and where it meets a store, an address, a
// guard that acts, a matrix, a vote or a call, the race stands.
//
// Nothing is given up to be quick: every load of such a place counts as racing but those of the one thread
// that writes there, and what cannot be followed is met.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// Places of global memory where a read raced with a write.
class RacingReads {
 public:
  /// A thread: the block, or the first of its cluster, and the thread's number there.
  using Thread = std::pair<uint64_t, uint32_t>;
  void add(uint64_t address, uint32_t bytes, Thread writer);
  bool any() const { return !writers_.empty(); }
  /// Whether a thread that reaches there is not the only one known to write there.
  bool races(uint64_t address, uint32_t bytes, Thread thread) const;

 private:
  struct Writer {
    Thread thread;
    bool several = false;
  };
  std::unordered_map<uint64_t, Writer> writers_;  ///< by byte
};

class StrayReads : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;
  /// Before the blocks of a launch.
  void enter(const LaunchContext&, const RacingReads&);
  void begin_block(Block&);
  void guarded(Warp&, const Op&, uint32_t active);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  /// Whether something depends on them.
  bool matter() const { return matter_; }

 private:
  uint32_t& lanes(const Warp& warp, Slot slot) { return lanes_[warp.index][slot / 64]; }
  static bool ends(const Signature&);  ///< whether what it takes is not followed beyond it
  RacingReads::Thread thread_of(const Warp&, int lane) const;

  const Code* code_ = nullptr;
  const RacingReads* racing_ = nullptr;
  Block* block_ = nullptr;
  std::vector<std::vector<uint32_t>> lanes_;  ///< by warp and slot / 64: that hold what such a load gave
  uint32_t result_ = 0;                       ///< lanes of the op that runs whose result comes of one
  uint32_t guard_ = 0;                        ///< lanes of it whose guard does
  bool matter_ = false;
};

}  // namespace assay::vm
