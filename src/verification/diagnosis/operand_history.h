// What stands behind an operand of a recorded event, from a replay that keeps finite values too.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/recording.h"
#include "src/base/vm/value_slice.h"

namespace assay {

/// What a divisor that is zero was made of.
struct ZeroDivisor {
  std::set<std::string> inputs;  ///< names
  /// Exponentials stand behind it, and every one of them gave 0.
  bool exponentials_vanished = false;
};

/// Such a replay of an element's slice, beside one event in it.
class OperandHistory {
 public:
  OperandHistory(const Program&, const TensorMap& inputs, const vm::MachineOptions&,
                 const std::string& output, int64_t flat, const vm::Event& event);

  /// Follows the zero that met an infinity or a NaN back through copies, conversions, memory and products.
  /// True where it ends at a select that chose a literal: a lane that was to count for nothing.
  bool has_selected_zero() const;
  /// The instance that read memory which nothing wrote, nearest behind the event; null where none did.
  const vm::SliceInstance* unwritten_read() const;
  /// Where that instance read: null where it was no buffer's memory.
  const vm::UnwrittenPlace* unwritten_place() const;
  /// Of a quotient or a reciprocal by zero; none where too much stands behind it.
  std::optional<ZeroDivisor> zero_divisor() const;
  const vm::ValueSlice& slice() const { return slice_; }

 private:
  const std::string divisor_name_;  ///< of the event's last operand
  vm::ValueSlice slice_;
  std::vector<int32_t> of_event_;  ///< instances: one, or one per result of the instruction
};

}  // namespace assay
