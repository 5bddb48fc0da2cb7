// Registers in which tensor cores add to what is there. What they held before is not kept: which of them is
// NaN, and which infinite, stands in a few registers of the rewriter's, as of the last test of each. Sums
// that are not finite stay so until something else is written there; code aside notes what it finds.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/watch/added_registers.h"
#include "src/base/watch/watched_instruction.h"

namespace assay::watch {

class Accumulators {
 public:
  /// Those of a product that adds in place.
  void add(const WatchedInstruction&);
  bool holds(int32_t reg) const { return first_.contains(reg); }
  /// Of a register that it holds.
  ptx::Type type(int32_t reg) const { return types_.at(reg); }

  /// Something else is written to the registers: they count as finite, from the code of the next emit() on,
  /// or at once where the writing is guarded ("@%p1 ").
  void forget(const std::vector<int32_t>& registers, const std::string& guard, Code&);
  void emit(Code&);

  /// A predicate is left true only if element `half` of the register was no NaN; or finite.
  void require_number(int32_t reg, int half, const std::string& predicate, const std::string& scratch,
                      Code&) const;
  void require_finite(int32_t reg, int half, const std::string& predicate, const std::string& scratch,
                      Code&) const;
  /// Notes what the element is now.
  void set(int32_t reg, int half, const std::string& is_nan, const std::string& is_infinite, Code&) const;

  std::string declarations() const;
  /// Where the function begins.
  void begin(Code&) const;

 private:
  int words() const { return (count_ + 31) / 32; }
  int place(int32_t reg, int half) const { return first_.at(reg) + half; }

  std::map<int32_t, int> first_;  ///< register -> number of its first element
  std::map<int32_t, ptx::Type> types_;
  int count_ = 0;
  std::map<int, uint32_t> forgotten_;  ///< word -> bits
};

}  // namespace assay::watch
