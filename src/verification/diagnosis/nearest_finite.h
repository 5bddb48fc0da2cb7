// The nearest value of one input element that keeps an output element finite, by bisection with replay.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Runs the plan on changed inputs; true where the watched element comes out finite. Empty optional: no
/// replay is left.
using Replay = std::function<std::optional<bool>(const TensorMap&)>;

/// The largest magnitude below the element's own, of the same sign and with three decimal digits, with which
/// the replay is finite ("-88.2"); where no smaller magnitude helps, the smallest larger one, up to 2^10
/// times. Empty where neither helps, the element is zero or NaN, or replays ran out before both ends were
/// known.
std::string nearest_finite(TensorMap inputs, const std::string& input, int64_t flat, const Replay& replay);

}  // namespace assay
