// Where a non-finite output element was born: the recording machine's events walked back, then replays that
// look for the nearest inputs that keep the element finite.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/missing_store.h"
#include "src/verification/diagnosis/operand_history.h"
#include "src/verification/diagnosis/unwritten_lines.h"

namespace assay {

struct OriginOptions {
  vm::MachineOptions machine;
  int nearest_inputs = 4;      ///< at most so many inputs are varied, one at a time; 0: none
  int replays = 80;            ///< runs of the plan spent on them, all together
  double replay_seconds = 20;  ///< and at most so long
};

/// What the walk found, with the indices that named causes need beside the printable Origin.
struct OriginTrace {
  Origin origin;
  std::string output;  ///< name of the output walked back from
  int64_t flat = 0;
  /// (input, flat element), as in origin.inputs before the cut.
  std::vector<std::pair<std::string, int64_t>> input_elements;
  std::optional<double> exponent;  ///< of an exp-overflow, in base 2
  /// Kind of the first NaN made on the path from the origin (zero times infinity), or none; where; whether
  /// by a tensor-core sum; whether the zero of that 0 * Inf is a mask.
  std::optional<OriginKind> nan_kind;
  ChainLink nan_at;
  bool nan_in_matrix = false, masked_by_product = false;
  ChainLink masked_at;  ///< the product with that mask, or with the zero that is meant below
  /// The zero of that 0 * Inf, or of the product that a NaN of Inf - Inf met first, is what a select chose,
  /// perhaps converted and stored since.
  bool zero_selected = false;
  /// Of memory that nothing wrote: what should have written it.
  std::optional<MissingStore> missing;
  std::optional<UnwrittenMemory> unwritten;  ///< of a buffer: where that memory is
  std::optional<ChainLink> unwritten_read;   ///< the instruction that read such memory; none: nothing did
  std::optional<ZeroDivisor> divisor;        ///< of a division by zero
  /// Lines that made the origin's operands, nearest first (from the PTX text).
  std::vector<ChainLink> computed_from;
};

/// Runs the plan in the recording machine and walks back from element `flat` of `output`. None where that
/// element is finite on the machine (it came from elsewhere: another engine, a trap before it was written).
std::optional<OriginTrace> find_origin(const Program&, const TensorMap& inputs, const std::string& output,
                                       int64_t flat, const OriginOptions& = {});

/// The same from a run that has been recorded.
std::optional<OriginTrace> describe_origin(const Program&, const TensorMap& inputs, const vm::Recording&,
                                           const TensorMap& outputs, const std::string& output, int64_t flat,
                                           const OriginOptions&);

}  // namespace assay
