// The instruction instances behind output elements, finite or not: a backward slice over a replay of the
// blocks that matter. Values only: what reached the element through arithmetic, copies and memory, not
// through branches, predicates or addresses.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/output_element.h"
#include "src/base/vm/signature.h"

namespace assay::vm {

/// A value that an instance took: from a register, or, of a load or a landed copy, from memory.
struct SliceOperand {
  std::string name;                  ///< "%f12", "a[k=3]" of a tensor-core sum; empty for memory
  ptx::Type type = ptx::Type::none;  ///< none where the instruction does not say: it carries bits
  uint64_t bits = 0;
  int32_t made_by = -1;  ///< index of the instance that made it, or
  /// Where none did: literal (or integer, special register), input, unwritten, or beyond what the limits let
  /// in.
  Source source = Source::event;
  int64_t input = -1;  ///< input ordinal << 40 | flat element
  /// Repeats an operand whose lower half another instance made (packed or shifted together); after all
  /// others.
  bool other_half = false;
};

struct SliceInstance {
  int32_t launch = 0, module = 0, function = 0, instruction = 0;  ///< module: into ValueSlice::modules
  std::array<uint32_t, 3> block{}, thread{};
  /// With launch, block and thread what tells it from all others of the run: the number of its warp
  /// instruction in its block, and the first half that it made.
  uint32_t record = 0;
  uint8_t half = 0;
  Flow flow = Flow::none;
  ptx::Type type = ptx::Type::none;
  uint64_t bits = 0;  ///< result
  uint32_t first_operand = 0, operand_count = 0;
};

/// Where in a buffer, or in the shared memory of its block, an operand was read that nothing had written.
struct UnwrittenPlace {
  uint32_t operand = 0;  ///< into ValueSlice::operands
  std::string buffer;    ///< empty: shared memory
  uint64_t offset = 0;   ///< bytes
};

struct ValueSlice {
  /// Consumers before producers; of one element [0] wrote it. Empty where nothing wrote it, or the run
  /// trapped.
  std::vector<SliceInstance> instances;
  std::vector<SliceOperand> operands;
  std::vector<int32_t> roots;   ///< of each element the instance that wrote it; -1: none did
  uint64_t element_bits = 0;    ///< of one element
  std::vector<int64_t> inputs;  ///< every input element that an instance read, sorted
  /// Instances, or the log they are found in, were too many: here are the nearest, and those behind the
  /// operands that SliceLimits::follow chose.
  bool truncated = false;
  bool unwritten = false;                        ///< an unwritten value takes part
  std::vector<UnwrittenPlace> unwritten_places;  ///< of operands, ascending; the first 4096
  uint64_t blocks = 0, blocks_of = 0;            ///< replayed, of the program's
  std::vector<std::string> input_names;
  std::vector<std::shared_ptr<const ptx::Module>> modules;
};

struct SliceLimits {
  size_t instances = 1 << 20, operands = 6 << 20;
  uint64_t log_bytes = uint64_t{768} << 20;
  /// Of a slice that is full: the operand beyond it (Source::beyond) that is followed further, with the same
  /// limits again; -1: none. None: nothing is followed.
  std::function<int32_t(const ValueSlice&)> follow;
};

/// Throws BadInput as run() does. `flat` is an element of `output`.
ValueSlice slice_value(const Program&, const TensorMap& inputs, const MachineOptions&,
                       const std::string& output, int64_t flat, const SliceLimits& = {});
/// What stands behind any of several elements, in one replay: what some of them share is there once. Nothing,
/// and truncated, where that is too much.
ValueSlice slice_values(const Program&, const TensorMap& inputs, const MachineOptions&,
                        const std::vector<OutputElement>&, const SliceLimits& = {});

}  // namespace assay::vm
