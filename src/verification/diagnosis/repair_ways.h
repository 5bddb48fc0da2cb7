// What may stand in the place of what an instruction takes, gives or is guarded by, as a slip would have it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/vm/changed_run.h"
#include "src/base/vm/code.h"

namespace assay {

inline bool is_predicate(const vm::Use& use) {
  return use.cell == vm::Cell::mask;
}
inline bool is_float(const vm::Use& use) {
  return ptx::is_float(use.type);
}

/// The less a change says the sooner it is tried, and named.
enum Simplicity : int { kChoice, kBound, kTerm, kStep, kRegister };

/// What an op is to conditions.
struct Standing {
  bool merely_guards = false;  ///< what it makes
  bool goes_on = false;        ///< it goes on with a loop where its guard holds,
  bool ends = false;           ///< or ends one: without end it mends nothing
  bool heads_loop = false;     ///< it counts where a loop begins and ends
};

/// Ways to change one op, without other registers. `floats`: they may be wrong.
std::vector<std::pair<vm::OpChange, int>> ways_of(const vm::Code&, const vm::Op&,
                                                  const vm::ChangedRuns::Executed&, bool floats,
                                                  const Standing&);
/// "%r3 one more in setp.lt.s32 (PTX line 17)".
std::string sentence_of(const vm::Code&, const vm::OpChange&);

/// Registers by the ops that write and read them, of those that ran.
struct Lifetime {
  size_t first_write = SIZE_MAX, last_write = 0, last_read = 0;
  vm::Cell cell = vm::Cell::none;
  bool real = false;
};

std::map<vm::Slot, Lifetime> lifetimes(const vm::Code&, const vm::ChangedRuns::Executed&);
/// Registers of a kind with the one that op `at` uses, that hold something there: the nearest.
std::vector<vm::Slot> others_for(const std::map<vm::Slot, Lifetime>&, const vm::Use&, size_t at);

}  // namespace assay
