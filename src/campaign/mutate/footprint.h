// What a run does to global memory: which bytes it reads and writes, and what it leaves there.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay {

struct Footprint {
  struct Buffer {
    std::vector<bool> read, written;  ///< by byte
    std::vector<std::byte> left;
    bool operator==(const Buffer&) const = default;
  };
  std::map<std::string, Buffer> buffers;
  bool trapped = false;

  /// The same bytes written and left, no byte read that the other does not read; neither trapped.
  bool within(const Footprint& other) const;
  /// The same, whatever is left.
  bool reaches_within(const Footprint& other) const;
};

Footprint footprint_of(const Program&, const TensorMap& inputs, const vm::MachineOptions&);

/// The inputs with elements that tell one way of computing from another where ordinary numbers do not: every
/// one a zero of either sign; or one in sixteen a zero, an infinity, a NaN or a subnormal number.
enum class SpecialValues { zeros, sprinkled };
TensorMap with_special_values(const TensorMap& inputs, SpecialValues, uint64_t seed);

}  // namespace assay
