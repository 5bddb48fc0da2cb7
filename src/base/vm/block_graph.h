// Which blocks of a program wrote what which other blocks read. Runs are deterministic, so that a question
// about one output element needs only the blocks behind it to be run again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay::vm {

/// Blocks of each launch, ascending linear indices.
struct BlockSet {
  std::vector<std::vector<uint64_t>> of_launch;
  uint64_t count() const;
};

class BlockGraph {
 public:
  /// Runs the program once, its blocks one after another.
  BlockGraph(const Program&, const TensorMap& inputs, const MachineOptions&);

  /// Every block that a value stored at `byte` of `output` may come from, through any number of launches;
  /// none where nothing wrote it.
  BlockSet behind(uint64_t address) const;
  uint64_t blocks() const { return producers_.size(); }
  bool trapped() const { return trapped_; }

 private:
  class Trace;
  struct Area {
    uint64_t base = 0, bytes = 0;
    std::vector<uint32_t> writers;  ///< by half: block + 1 that wrote it last; empty: none did
  };

  uint32_t* writer(uint64_t address, bool create);

  std::vector<Area> areas_;  ///< ascending base
  size_t last_area_ = 0;
  std::vector<uint32_t> first_block_;             ///< of each launch, in one numbering of all blocks
  std::vector<std::vector<uint32_t>> producers_;  ///< by block
  bool trapped_ = false;
};

}  // namespace assay::vm
