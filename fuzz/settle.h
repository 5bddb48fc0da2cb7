// Makes the dimensions of a case agree that were drawn one by one, and the case cheap enough.
#pragma once
#include "fuzz/dimensions.h"

namespace assay {

/// Takes away what the case can best do without, until one run is estimated to take at most `budget` lane
/// instructions (cost.h), or nothing is left to take. Packed offsets follow T.
void fit_cost(Case&, double budget);

/// No profile where nothing decays, exact values without decay and with a power of two as their scale, and
/// only layouts that the shapes can have.
void agree(Case&, const Operator&);

/// Its sizes, each the nearest of those that the kernel takes. Packed offsets follow T.
void fit_sizes(Case&, const Kernel&);
/// Heads, widths and formats of another case of the kernel. Strides of views that no longer fit are left out.
void share_shape(Case&, const Case& of, const Operator&);

/// Does it take all that the operator's domain has?
bool takes_all_decays(const KernelLimits&);
/// Decays that all lie where the kernel takes them, in this format: near one where it takes those.
std::string decay_within(const KernelLimits&, Dtype gate_dtype);
/// Are all log decays of the case within what its kernel takes? The inputs are drawn for it where that is
/// less than the operator's domain.
bool within_gate_range(const Case&, const Target&);
/// Nine in ten cases of a kernel with a narrower gate range than the operator's domain get other decays until
/// they are inside, those of decay_within at last.
void settle_gates(Case&, const Target&);

}  // namespace assay
