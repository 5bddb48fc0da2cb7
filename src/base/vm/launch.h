// A program made ready for the machine: modules decoded, buffers allocated, parameters laid out. Everything
// that can be wrong with the program or its PTX is found here, before anything runs.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/program/buffers.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/permutation.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// The blocks of a launch that run, in order; of a cluster the first.
struct BlockList {
  uint64_t count = 0;
  std::vector<uint64_t> chosen;  ///< by Program::blocks, ascending; empty where all run
  Permutation order{};           ///< of the turns, by MachineOptions::order
  uint64_t operator[](uint64_t turn) const {
    const uint64_t at = order(turn);
    return chosen.empty() ? at : chosen[at];
  }
};

/// The first block of the cluster that `block` is in.
uint64_t first_of_cluster(uint64_t block, const std::array<uint32_t, 3>& grid,
                          const std::array<uint32_t, 3>& cluster);

class PreparedProgram {
 public:
  /// Decodes every launch and allocates every buffer; outputs and workspaces are filled with Program::poison.
  /// Throws BadInput.
  PreparedProgram(const Program&, const TensorMap& inputs, const MachineOptions&,
                  std::span<const LiveStorage> storages = {});

  /// The context of launch `index`: its parameters and its module's variables are in memory now. Valid until
  /// the next call.
  const LaunchContext& enter(size_t index);
  DeviceCalls& calls() { return calls_; }
  /// No warp executes more instructions than these.
  void limit_budget(uint64_t most) {
    context_.instruction_budget = std::min(context_.instruction_budget, most);
  }
  /// Nothing but the program's own instructions reads registers.
  void poison_unsure_only() { context_.poisons_all = false; }
  /// The program's outputs; call once, after the last launch.
  TensorMap take_outputs();
  /// Those of the program's inputs that hold other bytes now, though it does not say that it writes them.
  /// Views, tensors made page by page and what shares its bytes are not compared.
  TensorMap changed(const TensorMap& inputs) const;
  /// Names of module variables in global memory that hold other bytes than the program begins with.
  std::vector<std::string> changed_variables() const;

  /// A launch that no GPU would take: a fault of the program that shows only at its sizes.
  std::optional<Trap> refused_launch() const;
  BlockList blocks(size_t index) const;
  /// Some buffer is made page by page: then one thread runs the blocks.
  bool has_pages() const;

  const Memory& memory() const { return memory_; }
  const Code& code(size_t launch) const { return *codes_[launch]; }

 private:
  struct Variables {
    std::vector<std::vector<std::byte>> data;     ///< by module variable; empty where it is not global
    std::vector<std::vector<std::byte>> initial;  ///< the same, before anything ran
  };

  std::vector<std::vector<std::byte>> initial_variables(const Code&) const;
  void allocate(const TensorMap& inputs);
  void allocate(const Buffer&);
  void place_in_storage(const Buffer&);
  void place(std::span<const LiveStorage>);
  void lay_out_parameters(size_t launch);
  bool runs_together(size_t launch) const;

  const Program& program_;
  MachineOptions options_;
  Memory memory_;
  std::vector<Buffer> buffers_;
  std::map<std::string, Tensor>
      tensors_;  ///< copies of inputs and constants, and the outputs; shapes of what lies elsewhere
  std::map<std::string, std::vector<std::byte>> bytes_;  ///< workspaces, and the memory behind views
  std::map<std::string, uint64_t> addresses_;            ///< buffer -> base; of a view its first element
  std::vector<std::shared_ptr<const Code>> codes_;       ///< by launch
  std::map<const ptx::Module*, Variables> variables_;
  std::vector<std::vector<std::byte>> parameters_;  ///< by launch
  std::vector<std::array<uint32_t, 3>> clusters_;   ///< by launch
  uint64_t grid_workspace_ = 0;                     ///< address
  DeviceCalls calls_;
  LaunchContext context_;
};

/// Decoded entries are kept for later runs of the same PTX text. Throws BadInput.
std::shared_ptr<const Code> decoded(const Module&, const std::string& entry);

}  // namespace assay::vm
