// Samples of what the declared roundings of operands do to the outputs of the gated family
// (rounding_noise.h).
#pragma once
#include "reference/gated_form.h"
#include "reference/rounding_noise.h"

namespace assay {

/// Of one slice, chunk by chunk as the kernel declares its chunks; the gradient of an input that all slices
/// share is left out. Memory: kNoiseSamples + 1 states per chunk.
void gated_forward_noise(const Problem&, const GatedForm&, const Slice&, const NoiseVisit&);
void gated_adjoint_noise(const Problem&, const GatedForm&, const Slice&, const NoiseVisit&);

}  // namespace assay
