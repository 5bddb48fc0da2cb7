// What threads make near some of their instructions, whether or not anything comes of it: a slice holds only
// what an output is made of.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/vm/machine.h"
#include "src/base/vm/signature.h"

namespace assay::vm {

/// An instruction of a thread, as SliceInstance says it.
struct ThreadMoment {
  int32_t launch = 0;
  std::array<uint32_t, 3> block{}, thread{};
  uint32_t record = 0;
};

/// A float that an instruction made.
struct HeldValue {
  uint32_t record = 0;
  int32_t function = -1, instruction = -1;
  Flow flow = Flow::none;
  double number = 0;
};

struct ThreadValues {
  int32_t launch = 0;
  std::array<uint32_t, 3> block{}, thread{};
  std::shared_ptr<const ptx::Module> module;
  std::vector<HeldValue> values;  ///< in the order in which they are made
};

/// What the lanes of a warp made at once.
struct WarpValues {
  uint32_t mask = 0;  ///< lanes that made one
  std::array<double, 32> number{};
};

struct ValuesNear {
  std::vector<ThreadValues> threads;
  /// Of each moment: what its warp made there, and its lane in it.
  std::vector<WarpValues> warps;
  std::vector<uint8_t> lane;
};

/// Of the moments' threads what they make at most `apart` records of their block before or after one. Nothing
/// of programs whose blocks run in clusters, and where it would be more than `most` values.
ValuesNear values_near(const Program&, const TensorMap& inputs, const MachineOptions&,
                       const std::vector<ThreadMoment>&, uint32_t apart, size_t most);

}  // namespace assay::vm
