#include "src/base/vm/slice_trace.h"

#include <algorithm>

#include "src/base/vm/matrix_elements.h"

namespace assay::vm {

void SliceTrace::begin_block(Block& block) {
  code_ = block.context->code;
  if (!log_) return;
  log_->code = code_;
  log_->launch = static_cast<uint32_t>(block.context->launch_index);
  log_->block = block.linear;
  log_->cluster = block.context->cluster;
  log_->warps = static_cast<uint32_t>(block.warps.size());
  log_->shared_bytes = static_cast<uint32_t>(block.shared.size());
}

/// Whatever may define a register or memory.
bool SliceTrace::is_logged(const Signature& signature) {
  const bool writes_value = std::any_of(signature.writes.begin(), signature.writes.end(), [](const Use& to) {
    return to.cell == Cell::word || to.cell == Cell::wide;
  });
  return carries(signature) || signature.flow() == Flow::atomic || writes_value;
}

void SliceTrace::fill(const Warp& warp, bool sources) {
  for (SliceProbe* p = probe_; p != last_probe_ && p->record == record_; ++p) {
    if (p->is_source != sources) continue;
    if (p->wide)
      p->bits = warp.wide(p->slot)[p->lane];
    else
      p->bits = warp.word(p->slot)[p->lane] >> (16 * p->half);
  }
}

void SliceTrace::before(Warp& warp, const Op& op, uint32_t) {
  if (!log_ && probe_ != last_probe_ && probe_->record == record_ && is_logged(code_->signature(op)))
    fill(warp, true);
}

template <class T>
void SliceTrace::log_lanes(const T* values) {
  log_->records.back().detail = static_cast<uint32_t>(log_->details.size());
  log_->details.insert(log_->details.end(), values, values + 32);
}

void SliceTrace::after(Warp& warp, const Op& op, uint32_t mask) {
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

void SliceTrace::landed(Warp& warp, const Landing& landing) {
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

}  // namespace assay::vm
