// The states S_0 .. S_T of a recurrence, read backwards, in the memory of about 2 sqrt(T) of them.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay {

/// step(t, S) turns S_{t-1} into S_t. at(t) is cheap when called for t = T, T-1, ..., 0: checkpoints every
/// sqrt(T) steps, the states between two of them are made again when the first is asked for. Each step runs
/// at most twice.
template <typename State>
class StateHistory {
 public:
  StateHistory(State initial, int64_t length, std::function<void(int64_t, State&)> step)
      : stride_(std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(length))))),
        length_(length),
        step_(std::move(step)) {
    for (int64_t t = 0;; ++t) {
      if (t % stride_ == 0) checkpoints_.push_back(initial);
      if (t == length_) break;
      step_(t + 1, initial);
    }
  }

  const State& at(int64_t t) {
    const int64_t segment = t / stride_;
    if (segment != segment_) fill(segment);
    return states_[static_cast<size_t>(t - segment * stride_)];
  }

 private:
  void fill(int64_t segment) {
    segment_ = segment;
    const int64_t first = segment * stride_, last = std::min(first + stride_ - 1, length_);
    states_.assign(1, checkpoints_[static_cast<size_t>(segment)]);
    for (int64_t t = first + 1; t <= last; ++t) {
      states_.push_back(states_.back());
      step_(t, states_.back());
    }
  }

  int64_t stride_, length_, segment_ = -1;
  std::function<void(int64_t, State&)> step_;
  std::vector<State> checkpoints_, states_;
};

}  // namespace assay
