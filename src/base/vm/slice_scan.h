// Walks logged blocks backwards and collects the instances behind the places that are wanted.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/vm/cell_memory.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/slice_trace.h"
#include "src/base/vm/value_slice.h"

namespace assay::vm {

/// A source of an instance: a register (its first half) or memory.
struct SliceUse {
  Slot slot = no_slot;  ///< no_slot: memory
  uint8_t lane = 0, half = 0;
  bool wide = false;
  ptx::Type type = ptx::Type::none;
  uint16_t name = 0;  ///< source position in the PTX, or of a tensor-core term k * 4 + (0 a, 1 b, 2 c)
  int32_t node = -1;  ///< that made it (of several halves: the highest), -1: none found
  uint8_t node_half = 0;
  uint64_t address = 0;  ///< of memory
  bool global = false, shared = false, constant = false;
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
  /// The blocks, latest first; `log` numbers them. Of one that filled the scan before, go_on() decides where
  /// to begin.
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
  using Lists = BlockCells<CellArray<int32_t>, 2>;
  /// A definition found in the record at hand, whose sources are added once all lanes' are found.
  struct Found {
    int32_t node;
    int lane;
    Slot slot;
    uint32_t halves;
  };

  static bool splits(const Op&, const Signature&);
  uint32_t& waiting_lanes(Slot slot, int half) { return waiting_lanes_(executed_->warp, slot, half); }
  int32_t* list(const BytePlace&, int half);
  Executed executed(const Op&);
  void cut_waiting();
  int32_t add_node(int lane, Slot slot, int half, ptx::Type);
  void define(const BytePlace&, uint32_t halves, int32_t node);
  uint32_t wanted(const BytePlace&, uint32_t bytes);
  SliceUse* add_use(int32_t node);
  void wait(const BytePlace&, uint32_t halves);
  void use_register(int32_t node, Slot slot, uint32_t halves, int lane, ptx::Type, int name);
  void use_memory(int32_t node, const BytePlace&, uint32_t halves, ptx::Type = ptx::Type::none, int name = 0);
  void use(int32_t node, const Transfer&, uint32_t halves);

  void find_registers(const Op&, const Signature&);
  void scan_stores(const Op&);
  void scan_atomic(const Op&);
  void add_sources(const Op&, const Found&);
  void add_computed(const Op&, const Found&);
  void add_matrix(const Op&, const Found&);
  void scan_op();
  void scan_landing();
  void scan_parameters(const Op&);

  SliceLimits limits_;
  size_t most_nodes_, most_uses_;
  const BlockLog* block_ = nullptr;        ///< that is scanned
  const SliceRecord* executed_ = nullptr;  ///< of its records, the one at hand
  uint32_t log_ = 0, record_ = 0;          ///< the numbers of the two
  bool resumes_ = false;                   ///< at record_ of log_
  std::vector<Waiting> waiting_;
  Lists lists_;                                   ///< heads of lists of waiting uses
  RegisterLanes waiting_lanes_;                   ///< in which one waits
  std::unordered_map<uint64_t, int32_t> global_;  ///< by address / 2
  std::vector<Found> found_;
  std::unordered_map<const Op*, HalfInfluence> half_influence_;
};

}  // namespace assay::vm
