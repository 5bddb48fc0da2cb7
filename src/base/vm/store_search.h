// Which stores a run made into a buffer, and which store would have written a byte that the run left as it
// was.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/machine.h"

namespace assay::vm {

/// An instruction, and a thread that came to it.
struct PlacedInstruction {
  std::shared_ptr<const ptx::Module> module;
  int32_t launch = -1, function = -1,
          instruction = -1;  ///< into Program::launches, Module::functions, Function::body
  std::array<uint32_t, 3> block{}, thread{};
};

/// One lane's store, atomic or reduction.
struct StoreEvent {
  PlacedInstruction at;
  uint64_t offset = 0;  ///< of its first byte in the buffer
  uint32_t bytes = 0;
};

/// Runs the program, blocks one after another, and shows every store into `buffer` (an output or a
/// workspace). True where the program ran to its end. Throws BadInput as run() does.
bool visit_stores(const Program&, const TensorMap& inputs, const MachineOptions&, const std::string& buffer,
                  const std::function<void(const StoreEvent&)>& visit);

/// A store that one guard kept from a byte: with that guard the other way, and nothing else changed, it was
/// reached.
struct WithheldStore {
  PlacedInstruction guard, store;
  uint64_t steps = 0;  ///< instructions that the block executed from the guard to the store
  /// On its way it stored where another thread of the launch does: a guard that keeps threads apart, turned
  /// around, comes to the bytes by chance.
  bool overwrites = false;
};

/// In the shared memory of one block of a launch.
struct SharedBytes {
  int32_t launch = -1;
  std::array<uint32_t, 3> block{};
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

struct StoreSearchLimits {
  size_t found = 64;
  double seconds = 5;
};

/// Replays the launches that take `buffer` with one guard at a time turned around for the lanes that it sent
/// one way, as often as they come to it, and keeps those with which a store meets one of the `bytes` bytes at
/// `offset`: first those that overwrite nothing of others before, of them the one of the fewest steps. What
/// else such a run does (traps, wrong values) is of no account. Where time is short, guards far from the
/// buffer's own stores are left out.
std::vector<WithheldStore> find_withheld_stores(const Program&, const TensorMap& inputs,
                                                const MachineOptions&, const std::string& buffer,
                                                uint64_t offset, uint32_t bytes,
                                                const StoreSearchLimits& = {});

/// Who stored there, first; none: nobody in the whole run of the block. Copies that land later count where
/// they are issued.
std::optional<PlacedInstruction> store_into(const Program&, const TensorMap& inputs, const MachineOptions&,
                                            const SharedBytes&);
/// The same as find_withheld_stores for a block's shared memory: its block alone is replayed. None in a
/// cluster.
std::vector<WithheldStore> find_withheld_stores(const Program&, const TensorMap& inputs,
                                                const MachineOptions&, const SharedBytes&,
                                                const StoreSearchLimits& = {});

}  // namespace assay::vm
