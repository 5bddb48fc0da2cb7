// The recording machine's log of non-finite results, compact: a NaN that has spread makes millions of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/provenance.h"

namespace assay::vm {

/// A tag beside each value: 0 where no event made it, else event index + 1.
using Tag = uint32_t;

/// An operand as recorded: bits of `type`, the tag it carried, and what it depended on.
struct LoggedOperand {
  uint64_t bits = 0;
  ptx::Type type = ptx::Type::none;
  uint8_t position = 0;  ///< source position in the PTX; of a tensor-core term: 0 a, 1 b, 2 c
  uint8_t k = 0;         ///< tensor-core term
  Tag tag = 0;
  Dependence dependence = kNothing;
};

struct LoggedEvent {
  int32_t site = 0;     ///< index into the recorder's sites: launch and instruction
  uint32_t block = 0;   ///< linear
  uint16_t thread = 0;  ///< linear in the block
  bool born = false;
  uint8_t operand_count = 0;
  uint32_t first_operand = 0;
  uint64_t result_bits = 0;
  ptx::Type result_type = ptx::Type::none;
  Dependence dependence = kNothing;
  uint32_t root =
      0;  ///< earliest birth behind it (or event that met a value from outside), as an event index
};

class EventLog {
 public:
  /// Adds an event and returns its tag. An event that only carries what its instruction and thread have
  /// already carried from the same root (a loop that keeps a NaN) gets the earlier one's tag; when the log is
  /// full, carriers get their parent's.
  Tag add(LoggedEvent event, const LoggedOperand* operands, int count);

  const std::vector<LoggedEvent>& events() const { return events_; }
  const LoggedOperand& operand(const LoggedEvent& e, int i) const { return operands_[e.first_operand + i]; }
  bool truncated() const { return truncated_; }

 private:
  struct Carrier {
    int32_t site;
    uint32_t block, root;
    uint16_t thread;
    bool operator==(const Carrier&) const = default;
  };
  struct CarrierHash {
    size_t operator()(const Carrier&) const;
  };

  std::vector<LoggedEvent> events_;
  std::vector<LoggedOperand> operands_;
  std::unordered_map<Carrier, Tag, CarrierHash> carriers_;
  bool truncated_ = false;
};

bool is_nonfinite(ptx::Type, uint64_t bits);
bool is_nan(ptx::Type, uint64_t bits);
/// Value of one element of a floating-point type (a packed type: of its low half).
double value_of(ptx::Type, uint64_t bits);

}  // namespace assay::vm
