// Spectral norms for the families whose transition is not diagonal.
#pragma once
#include <cstddef>
#include <vector>

namespace assay {

/// An upper bound of ||diag(weights) + b a^T||_2, proved, and within a factor 1 + 2^-8 of it or of the
/// largest weight, whichever is larger. a, b: as many entries as weights, which are >= 0.
double diagonal_plus_rank_one_norm(const std::vector<double>& weights, const double* a, const double* b);

/// An upper bound of the spectral norm of n x n, within a factor n^(1/256) + 2^-30 of it.
double spectral_norm(const std::vector<double>& rows, size_t n);

}  // namespace assay
