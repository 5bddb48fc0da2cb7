// Asynchronous work of one warp in the order of its issue. Each lane counts groups of its own: what it has
// issued since its last commit is closed by the next one, and a wait completes all groups but its newest.
// cp.async (PTX ISA 9.7.9.25.3) and wgmma (9.7.15.7) are both counted so, the latter by whole warps.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace assay::vm {

struct Op;

/// `Work`: what is kept of an instruction until it completes.
template <class Work>
class AsyncQueue {
 public:
  struct Entry {
    const Op* op = nullptr;
    uint32_t mask = 0;  ///< lanes that are not complete
    std::array<uint32_t, 32> group;
    Work work;
  };
  /// Outstanding groups of a wait for everything, open groups included.
  static constexpr uint64_t none = ~uint64_t{0};

  void clear() { count_ = 0, issued_ = 0, committed_ = {}; }
  /// The work is the caller's to fill in: it holds what an earlier one left.
  Work& issue(const Op& op, uint32_t mask) {
    if (count_ == entries_.size()) entries_.emplace_back();
    Entry& made = entries_[count_++];
    made.op = &op, made.mask = mask, made.group = committed_;
    ++issued_;
    return made.work;
  }
  void commit(uint32_t mask) {
    for (size_t lane = 0; lane < 32; ++lane) committed_[lane] += mask >> lane & 1;
  }
  /// All but the newest `outstanding` closed groups of the lanes in `mask` are complete:
  /// complete(entry, lanes).
  template <class Complete>
  void wait(uint32_t mask, uint64_t outstanding, Complete complete) {
    size_t kept = 0;
    for (size_t i = 0; i < count_; ++i) {
      Entry& entry = entries_[i];
      uint32_t done = 0;
      for (size_t lane = 0; lane < 32; ++lane)
        if (outstanding == none || entry.group[lane] + outstanding < committed_[lane]) done |= 1u << lane;
      done &= entry.mask & mask;
      if (done) complete(std::as_const(entry), done);
      entry.mask &= ~done;
      if (!entry.mask) continue;
      if (kept != i) std::swap(entries_[kept], entries_[i]);
      ++kept;
    }
    count_ = kept;
  }

  std::span<const Entry> in_flight() const { return {entries_.data(), count_}; }
  /// Instructions since clear(), complete ones included.
  uint64_t issued() const { return issued_; }
  /// Whether instruction `number`, counted from 0, is in flight; of work that completes in order.
  bool flies(uint64_t number) const { return number + count_ >= issued_; }

 private:
  std::vector<Entry> entries_;  ///< [0, count_) in flight
  size_t count_ = 0;
  uint64_t issued_ = 0;
  std::array<uint32_t, 32> committed_{};  ///< groups closed, by lane
};

}  // namespace assay::vm
