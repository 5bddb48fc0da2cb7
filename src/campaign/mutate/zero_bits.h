// Bits that are 0 in every value that a register can have, read off the text.
#pragma once
#include <cstdint>
#include <map>
#include <set>

#include "src/campaign/mutate/value_range.h"

namespace assay {

class ZeroBits {
 public:
  explicit ZeroBits(ValueRanges& ranges) : ranges_(ranges) {}

  /// A mask, of the register's width.
  uint64_t of(int32_t reg);
  uint64_t of(const ptx::Operand&, int bits);

 private:
  uint64_t result(const ptx::Instruction&, int bits);

  ValueRanges& ranges_;
  std::map<int32_t, uint64_t> known_;
  std::set<int32_t> open_;  ///< being computed: nothing is known around a loop
};

/// All bits of a width.
constexpr uint64_t ones(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}
int width_of(const ptx::Function&, int32_t reg);

}  // namespace assay
