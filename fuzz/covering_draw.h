// Draws the case that shows most pairs of features that no case of the run has shown.
#pragma once
#include "fuzz/feature_pairs.h"

namespace assay {

/// Whether case `index` of a run is drawn for its pairs: three in four while some never came up, then one in
/// four, for pairs that came up least.
bool covers_pairs(const FeaturePairs&, uint64_t seed, uint64_t index);

/// The best of some candidates, by pairs for what they cost. Each is made greedily: one of the pairs drawn
/// least, then of the other features, in any order, the class that adds most. Deterministic: of seed, index
/// and what note_drawn() was told. Nothing where the kernel takes none of them.
std::optional<Case> draw_covering_case(const FeaturePairs&, const Kernel&, const Operator&, uint64_t seed,
                                       uint64_t index);

}  // namespace assay
