// The trace of a replayed block for slicing (value_slice.h): what was executed, in order, and, in a second
// replay, the values of the instances that were asked for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/matrix_elements.h"
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

  void begin_block(Block& block) {
    code_ = block.context->code;
    if (!log_) return;
    log_->code = code_;
    log_->launch = static_cast<uint32_t>(block.context->launch_index);
    log_->block = block.linear;
    log_->cluster = block.context->cluster;
    log_->warps = static_cast<uint32_t>(block.warps.size());
    log_->shared_bytes = static_cast<uint32_t>(block.shared.size());
  }

  void before(Warp& warp, const Op& op, uint32_t) {
    if (!log_ && probe_ != last_probe_ && probe_->record == record_ && is_logged(code_->signature(op)))
      fill(warp, true);
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& signature = code_->signature(op);
    if (!is_logged(signature)) return;
    if (!log_) {
      fill(warp, false);
      while (probe_ != last_probe_ && probe_->record == record_) ++probe_;
      ++record_;
      return;
    }
    ++record_;
    log_->records.push_back({static_cast<int32_t>(&op - code_->ops.data()), mask, 0,
                             static_cast<uint16_t>(warp.index), false, warp.space});
    if (reaches_memory(signature)) return log_lanes(warp.address);
    if (signature.flow() == Flow::exchange) return log_lanes(warp.lane_source);
    if (signature.flow() == Flow::select) log_->records.back().detail = warp.mask(op.s[2]);
    if (signature.flow() != Flow::matrix) return;
    const MatrixSources sources = matrix_sources(warp, op);
    log_->records.back().detail = static_cast<uint32_t>(log_->details.size());
    log_->details.insert(log_->details.end(),
                         {sources.a_descriptor, sources.b_descriptor, sources.adds, sources.shared_base});
    if (signature.matrix.sparse)
      log_->details.insert(log_->details.end(), sources.metadata.begin(), sources.metadata.end());
  }

  void landed(Warp& warp, const Landing& landing) {
    ++record_;
    if (!log_) return;
    log_->records.push_back({static_cast<int32_t>(landing.op - code_->ops.data()), landing.mask,
                             static_cast<uint32_t>(log_->details.size()), static_cast<uint16_t>(warp.index),
                             true, landing.to_space});
    for (int piece = 0; piece < 32; ++piece) {
      const bool lands = (landing.mask >> piece & 1) != 0;
      log_->details.push_back(lands ? landing.to[piece] : 0);
      log_->details.push_back(lands ? landing.from[piece] : 0);
      log_->details.push_back(lands ? landing.copied[piece] : 0);
    }
    log_->details.insert(log_->details.end(), {landing.bytes, static_cast<uint64_t>(landing.from_space),
                                               landing.combines, static_cast<uint64_t>(landing.lane + 1)});
  }

 private:
  /// Whatever may define a register or memory.
  static bool is_logged(const Signature& signature) {
    const bool writes_value =
        std::any_of(signature.writes.begin(), signature.writes.end(),
                    [](const Use& to) { return to.cell == Cell::word || to.cell == Cell::wide; });
    return carries(signature) || signature.flow() == Flow::atomic || writes_value;
  }

  void fill(const Warp& warp, bool sources) {
    for (SliceProbe* p = probe_; p != last_probe_ && p->record == record_; ++p) {
      if (p->is_source != sources) continue;
      if (p->wide)
        p->bits = warp.wide(p->slot)[p->lane];
      else
        p->bits = warp.word(p->slot)[p->lane] >> (16 * p->half);
    }
  }

  template <class T>
  void log_lanes(const T* values) {
    log_->records.back().detail = static_cast<uint32_t>(log_->details.size());
    log_->details.insert(log_->details.end(), values, values + 32);
  }

  const Code* code_ = nullptr;
  BlockLog* log_ = nullptr;
  SliceProbe *probe_ = nullptr, *last_probe_ = nullptr;
  uint32_t record_ = 0;
};

}  // namespace assay::vm
