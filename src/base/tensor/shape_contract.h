// Shapes that arguments must have, and the likeliest reason where one does not.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

/// What one argument must look like. Axes carry the operator's letters and this run's sizes.
struct ShapeContract {
  std::string argument;
  std::vector<Axis> axes;
  bool gate = false;  ///< a log decay: per-head gates are told apart from per-channel ones
  /// Shapes of the other arguments by name: one of them given here is told.
  std::map<std::string, std::vector<int64_t>> others;
};

/// The likeliest explanation of a shape that breaks the contract: axes exchanged, missing, of size 1, merged,
/// heads first, a per-head gate for a per-channel one, N against cu_seqlens. Empty where none is likely.
std::string explain_shape(const ShapeContract&, std::span<const int64_t> got);

/// How far a shape is from the contract: 0 where it is the contract's, 1 where a single mistake explains it,
/// more where it can only be said that it differs. Of several possible sizes of a run those are likeliest
/// whose misfits sum up to least.
int shape_misfit(const ShapeContract&, std::span<const int64_t> got);

/// Throws BadInput "initial_state: expected [N=2,H=4,K=64,V=16], got [2,4,16,64] (transposed: K and V look
/// exchanged; ...)" where the shape is not the contract's.
void require_shape(const ShapeContract&, std::span<const int64_t> got);

}  // namespace assay
