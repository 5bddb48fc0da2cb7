// The trace of a replayed block for slicing (value_slice.h): what was executed, in order, and, in a second
// replay, the values of the instances that were asked for.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {

/// One warp instruction, or the landing of a cp.async.
struct SliceRecord {
  int32_t op = -1;
  uint32_t mask = 0;
  uint32_t detail = 0;  ///< into BlockLog::details; of a select the lanes that took source 0
  uint16_t warp = 0;
  bool lands = false;
  ptx::Space space = ptx::Space::none;  ///< of the addresses in details
};

/// What a block executed. Details: of memory instructions 32 addresses (ldmatrix: 32 row addresses), of
/// shuffles 32 lanes; of a landing 32 x (shared offset, global address, bytes copied) and the bytes of each.
struct BlockLog {
  uint32_t launch = 0;
  uint64_t block = 0;
  const Code* code = nullptr;
  uint32_t warps = 0, shared_bytes = 0;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  std::vector<SliceRecord> records;
  std::vector<uint64_t> details;
  uint64_t bytes() const { return records.size() * sizeof(SliceRecord) + details.size() * sizeof(uint64_t); }
};

/// Values of an instance: its result and the register sources asked for, as bits.
struct SliceProbe {
  uint32_t record = 0;  ///< of its block, counted as the log counts
  uint8_t lane = 0, half = 0;
  bool is_source = false, wide = false;
  Slot slot = no_slot;
  uint64_t bits = 0;  ///< filled in: of a half the low 16 bits, else the whole cell
};

class SliceTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after | hook::landed;
  /// Logs the next block into `log`.
  void log_into(BlockLog* log) { log_ = log, probe_ = last_probe_ = nullptr, record_ = 0; }
  /// Fills the probes [first, last), ascending by record, from the next block.
  void probe(SliceProbe* first, SliceProbe* last) {
    log_ = nullptr, probe_ = first, last_probe_ = last, record_ = 0;
  }

  void begin_block(Block& block);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);

 private:
  static bool is_logged(const Signature&);
  void fill(const Warp&, bool sources);
  template <class T>
  void log_lanes(const T* values);

  const Code* code_ = nullptr;
  BlockLog* log_ = nullptr;
  SliceProbe *probe_ = nullptr, *last_probe_ = nullptr;
  uint32_t record_ = 0;
};

}  // namespace assay::vm
