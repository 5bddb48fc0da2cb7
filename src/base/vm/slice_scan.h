// Walks logged blocks backwards and collects the instances behind the places that are wanted.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/vm/slice_trace.h"
#include "src/base/vm/value_slice.h"

namespace assay::vm {

/// A source of an instance: a register (its first half) or memory.
struct SliceUse {
  Slot slot = no_slot;  ///< no_slot: memory
  uint8_t lane = 0, half = 0;
  bool wide = false;
  ptx::Type type = ptx::Type::none;
  uint8_t name = 0;   ///< source position in the PTX, or of a tensor-core term k * 4 + (0 a, 1 b, 2 c)
  int32_t node = -1;  ///< that made it (of several halves: the highest), -1: none found
  uint8_t node_half = 0;
  uint64_t address = 0;  ///< of memory
  bool global = false, constant = false;
  bool cut = false;  ///< the scan was full before it found what made it
};

struct SliceNode {
  uint32_t log = 0, record = 0;  ///< which block's, and which of its records
  int32_t op = -1;
  uint16_t warp = 0;
  uint8_t lane = 0, half = 0;
  Slot slot = no_slot;  ///< of the result; no_slot: memory, whose value is that of the first use
  bool wide = false;
  ptx::Type type = ptx::Type::none;
  uint32_t first_use = 0, use_count = 0;
};

class SliceScan {
 public:
  explicit SliceScan(const SliceLimits& limits)
      : limits_(limits), most_nodes_(limits.instances), most_uses_(limits.operands) {}

  /// Wants the bytes [address, address + bytes) of global memory as they stand at the end.
  void want(uint64_t address, uint32_t bytes);
  /// The blocks, latest first; `log` numbers them. Of one that filled the scan before, go_on() decides where to begin.
  void scan(const BlockLog&, uint32_t log);
  /// Has room again, for what is behind one cut use alone.
  void go_on(uint32_t use);

  std::vector<SliceNode> nodes;
  std::vector<SliceUse> uses;
  /// (use, node): other halves of the use, where another node made them.
  std::vector<std::pair<uint32_t, int32_t>> other_halves;
  bool truncated = false;

 private:
  /// Lists of uses that wait for the instruction that defines a place; -1: none.
  struct Waiting {
    uint32_t use;
    int32_t next;
    uint8_t half;
  };
  struct WarpPlaces {
    std::vector<int32_t> registers, local;
    std::vector<uint32_t> waiting_lanes;  ///< by half position of a register cell: bit per lane
  };
  /// A definition found in the record at hand, whose sources are added once all lanes' are found.
  struct Found {
    int32_t node;
    int lane, part;
    uint32_t halves;
  };

  static size_t place(Slot slot, int half, int lane) {
    return (slot / 64 + static_cast<size_t>(half)) * 32 + static_cast<size_t>(lane);
  }
  bool splits(const BlockLog&, const Op&) const;
  bool wanted(const WarpPlaces& w, Slot slot, int halves, uint32_t mask) const;
  uint32_t wanted_halves(const WarpPlaces&, Slot slot, int halves, int lane) const;
  int32_t* memory(ptx::Space, WarpPlaces&, int lane, uint64_t address);
  void cut_waiting();
  int32_t add_node(const SliceRecord&, int lane, Slot slot, int half, ptx::Type);
  void define(int32_t& list, int32_t node);
  void define_register(WarpPlaces&, Slot slot, uint32_t halves, int lane, int32_t node);
  SliceUse* add_use(int32_t node);
  void use_register(const BlockLog&, WarpPlaces&, int32_t node, Slot slot, uint32_t halves, int lane,
                    ptx::Type, int name);
  void use_memory(WarpPlaces&, int32_t node, ptx::Space, int lane, uint64_t address, uint32_t halves);

  void find(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&);
  void find_stored(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&);
  void scan_store_matrix(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&);
  void scan_atomic(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&);
  uint32_t wanted_memory(ptx::Space, WarpPlaces&, int lane, uint64_t address, uint32_t bytes);
  int32_t define_memory(const SliceRecord&, WarpPlaces&, int lane, uint64_t address, uint32_t halves,
                        ptx::Type);
  void add_sources(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&, const Found&);
  void add_arithmetic(const BlockLog&, const Op&, WarpPlaces&, const Found&);
  void add_bits(const BlockLog&, const Op&, WarpPlaces&, const Found&);
  void add_matrix(const BlockLog&, const SliceRecord&, const Op&, WarpPlaces&, const Found&);
  void scan_op(const BlockLog&, const SliceRecord&);
  void scan_landing(const BlockLog&, const SliceRecord&);
  void scan_local_copy(const BlockLog&, const SliceRecord&, uint64_t from, uint64_t to, uint64_t bytes);

  SliceLimits limits_;
  size_t most_nodes_, most_uses_;
  uint32_t log_ = 0, record_ = 0;
  bool resumes_ = false;  ///< at record_ of log_
  std::vector<Waiting> waiting_;
  std::vector<WarpPlaces> warps_;
  std::vector<int32_t> shared_;
  std::unordered_map<uint64_t, int32_t> global_;  ///< by address / 2
  std::vector<Found> found_;
  int32_t none_ = -1;
};

}  // namespace assay::vm
