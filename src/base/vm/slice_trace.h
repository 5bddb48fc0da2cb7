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
  /// Into the list of BlockLog that tells more of such an op; of a select the lanes that took source 0.
  uint32_t detail = 0;
  uint16_t warp = 0;
  bool lands = false;
  ptx::Space space = ptx::Space::none;  ///< of the addresses
};

/// A Landing that outlives what landed.
struct LoggedLanding {
  std::array<uint64_t, 32> to{}, from{};
  std::array<uint32_t, 32> copied{};
  uint32_t bytes = 0;
  ptx::Space from_space = ptx::Space::none;
  bool combines = false;
  int lane = -1;  ///< as in Landing
};

/// What a block executed.
struct BlockLog {
  uint32_t launch = 0;
  uint64_t block = 0;
  const Code* code = nullptr;
  uint32_t warps = 0, shared_bytes = 0;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  std::vector<SliceRecord> records;
  std::vector<std::array<uint64_t, 32>> addresses;     ///< of memory instructions (ldmatrix: of rows)
  std::vector<std::array<uint32_t, 32>> lane_sources;  ///< of shuffles
  std::vector<MatrixSources> products;                 ///< that read more than fragments
  std::vector<LoggedLanding> landings;
  uint64_t bytes() const {
    const auto of = [](const auto& list) { return list.size() * sizeof list[0]; };
    return of(records) + of(addresses) + of(lane_sources) + of(products) + of(landings);
  }
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
  static constexpr double nanoseconds = 80;
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
    log_record(warp, op, mask, warp.space);
    if (reaches_memory(signature)) std::copy_n(warp.address, 32, detail(log_->addresses).begin());
    if (signature.flow() == Flow::exchange)
      std::copy_n(warp.lane_source, 32, detail(log_->lane_sources).begin());
    if (signature.flow() == Flow::select) log_->records.back().detail = warp.mask(op.s[2]);
    if (signature.flow() == Flow::matrix && (signature.matrix.warpgroup || signature.matrix.sparse))
      detail(log_->products) = matrix_sources(warp, op);
  }

  void landed(Warp& warp, const Landing& landing) {
    if (!log_) return void(++record_);
    log_record(warp, *landing.op, landing.mask, landing.to_space);
    log_->records.back().lands = true;
    LoggedLanding& made = detail(log_->landings);
    each_lane(landing.mask, [&](int lane) {
      const auto piece = static_cast<size_t>(lane);
      made.to[piece] = landing.to[piece], made.from[piece] = landing.from[piece];
      made.copied[piece] = landing.copied[piece];
    });
    made.bytes = landing.bytes, made.from_space = landing.from_space;
    made.combines = landing.combines, made.lane = landing.lane;
  }

  /// Whatever may define a register or memory: records are counted by these.
  static bool is_logged(const Signature& signature) {
    const bool writes_value =
        std::any_of(signature.writes.begin(), signature.writes.end(),
                    [](const Use& to) { return to.cell == Cell::word || to.cell == Cell::wide; });
    return carries(signature) || signature.flow() == Flow::atomic || writes_value;
  }

 private:
  void fill(const Warp& warp, bool sources) {
    for (SliceProbe* p = probe_; p != last_probe_ && p->record == record_; ++p) {
      if (p->is_source != sources) continue;
      if (p->wide)
        p->bits = warp.wide(p->slot)[p->lane];
      else
        p->bits = warp.word(p->slot)[p->lane] >> (16 * p->half);
    }
  }

  void log_record(const Warp& warp, const Op& op, uint32_t mask, ptx::Space space) {
    ++record_;
    log_->records.push_back(
        {static_cast<int32_t>(code_->index(op)), mask, 0, static_cast<uint16_t>(warp.index), false, space});
  }
  /// What the last record has beside it.
  template <class Detail>
  Detail& detail(std::vector<Detail>& list) {
    log_->records.back().detail = static_cast<uint32_t>(list.size());
    return list.emplace_back();
  }

  const Code* code_ = nullptr;
  BlockLog* log_ = nullptr;
  SliceProbe *probe_ = nullptr, *last_probe_ = nullptr;
  uint32_t record_ = 0;
};

}  // namespace assay::vm
