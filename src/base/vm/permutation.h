// Orders of 0 .. count - 1 by a number, any place of them at once.
#pragma once
#include <cstdint>
#include <numeric>

namespace assay::vm {

/// 0: as they are; 1: the last first; any other: shuffled by it, as turn -> first + turn * step modulo
/// `count` with a step that has no divisor in common with it.
class Permutation {
 public:
  Permutation() = default;
  Permutation(uint64_t order, uint64_t count) : count_(count) {
    if (order == 0 || count < 2) return;
    step_ = count - 1, first_ = count - 1;
    if (order == 1) return;
    first_ = mixed(order) % count;
    for (step_ = mixed(order + 1) % count; std::gcd(step_, count) != 1;) step_ = (step_ + 1) % count;
  }
  uint64_t operator()(uint64_t turn) const {
    if (step_ == 1 && first_ == 0) return turn;
    return static_cast<uint64_t>((first_ + static_cast<unsigned __int128>(turn) * step_) % count_);
  }

 private:
  /// Any mixing of the bits serves.
  static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t count_ = 1, step_ = 1, first_ = 0;
};

}  // namespace assay::vm
