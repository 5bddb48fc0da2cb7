// Why nothing wrote an element of an output, or a place of a workspace: which store should have, and what
// kept it away.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/store_search.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

struct MissingStore {
  enum class Why {
    guarded,    ///< a guard kept the store from it: with that guard the other way the store is reached
    early,      ///< it is written, but by a thread that no barrier holds the reader back for
    misread,    ///< so too, for what was read from a table of which no thread reads some rows
    elsewhere,  ///< the stores that there are go to other elements, some of them more than once
    none        ///< nothing in the launches stores into the buffer
  } why = Why::none;
  /// The guard; where the row of the table is made, or else its load; where the index of the stores that go
  /// elsewhere is declared, or else the store; the last line that uses the output and of which no instruction
  /// is left.
  ChainLink at;
  std::optional<ChainLink> store;
  std::array<uint32_t, 3> block{}, thread{};  ///< that the guard turned away
  std::string table;                          ///< of `misread`
  std::string reached;                        ///< of `elsewhere`: "v = 0..31", or empty where no axis tells
};

/// Of element `flat` of an output of the plan that no store of a run meets. None where it was written after
/// all, the run traps, or nothing can be said.
std::optional<MissingStore> find_missing_store(const Program&, const TensorMap& inputs,
                                               const vm::MachineOptions&, const std::string& output,
                                               int64_t flat, const SourceText&);

/// Of `bytes` bytes of a workspace that were read unwritten: a guard, and that only where the run wrote
/// nothing of the whole workspace; else the reader may be as wrong as the writer.
std::optional<MissingStore> find_missing_scratch(const Program&, const TensorMap& inputs,
                                                 const vm::MachineOptions&, const std::string& workspace,
                                                 uint64_t offset, uint32_t bytes, const SourceText&);

/// The same of bytes of a block's shared memory: the guard, or where a store comes too late the barrier that
/// is a warp's where it should be the block's. `seconds`: counted ones, at most.
std::optional<MissingStore> find_missing_shared(const Program&, const TensorMap& inputs,
                                                const vm::MachineOptions&, const vm::SharedBytes&,
                                                const SourceText&, double seconds);

}  // namespace assay
