// Sizes of a launch file for a run: those at which tiles, warps and vectors end are drawn most often.
#pragma once
#include "src/capsule/launch_file.h"
#include "src/case/random.h"

namespace assay {

/// Sizes at which tiles, warps and vectors end.
inline constexpr int64_t kSizeEdges[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048};

/// The nearest size at or below `value` that the file allows.
int64_t fitted_size(const NamedSize&, int64_t value);
/// `place` tells the sizes of one run apart.
int64_t draw_size(const NamedSize&, const RandomStream&, int64_t place);

}  // namespace assay
