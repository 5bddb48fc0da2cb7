#include "reference/bounds/norm_wise.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// Is mu I - M^T M positive semidefinite, M = D + b a^T? With R = mu I - D^2 > 0 and
///   M^T M = D^2 + U C U^T,  U = [a, D b],  C = [[|b|^2, 1], [1, 0]],
/// the block matrix [[R, U], [U^T, C^-1]] has by its two Schur complements as many negative eigenvalues as
/// N = C^-1 - U^T R^-1 U, and as many as C^-1 (one) and R - U C U^T together (Haynsworth). So the answer is
/// yes where N has exactly one, that is where det N < 0:
///   det N = alpha (|b|^2 + gamma) - (1 - beta)^2,  alpha = a^T R^-1 a,  beta = a^T R^-1 D b,  gamma = (Db)^T
///   R^-1 Db.
/// mu exceeds every squared weight by 2^-20 of itself, so R has a relative error below 2^-32 and so has every
/// term; sums of n terms add n 2^-53.
bool bounds(double mu, const std::vector<double>& d, const double* a, const double* b) {
  double alpha = 0, beta = 0, beta_terms = 0, gamma = 0, b_square = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    const double R = mu - d[i] * d[i], x = a[i], y = d[i] * b[i];
    alpha += x * x / R, gamma += y * y / R, beta += x * y / R, beta_terms += std::fabs(x * y) / R;
    b_square += b[i] * b[i];
  }
  const double slack = 0x1p-30 + static_cast<double>(d.size()) * 0x1p-50;
  const double least = std::fabs(1 - beta) - slack * (1 + beta_terms);
  return least > 0 && alpha * (b_square + gamma) * (1 + 4 * slack) < least * least;
}

double length(const double* x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

}  // namespace

double diagonal_plus_rank_one_norm(const std::vector<double>& weights, const double* a, const double* b) {
  const double widest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
  const double rank_one = length(a, weights.size()) * length(b, weights.size());
  constexpr double up = 1 + 0x1p-40;
  if (rank_one == 0) return widest * up;
  double low = widest * widest * (1 + 0x1p-18) + 0x1p-900,
         high = (widest + rank_one) * (widest + rank_one) * up;
  if (!std::isfinite(high)) return HUGE_VAL;
  if (bounds(low, weights, a, b)) return std::sqrt(low) * up;
  for (int i = 0; i < 40 && high > low * (1 + 0x1p-20); ++i) {
    const double middle = low + (high - low) / 2;
    (bounds(middle, weights, a, b) ? high : low) = middle;
  }
  return std::sqrt(high) * up;
}

namespace {

/// Frobenius; the matrix becomes of norm 1.
double normalize(std::vector<double>& a) {
  const double size = length(a.data(), a.size());
  for (double& x : a) x = size > 0 ? x / size : 0;
  return size;
}
/// a^T a.
std::vector<double> gram(const std::vector<double>& a, size_t n) {
  std::vector<double> y(n * n, 0);
  for (size_t m = 0; m < n; ++m)
    for (size_t i = 0; i < n; ++i) {
      const double x = a[m * n + i];
      for (size_t j = 0; x != 0 && j < n; ++j) y[i * n + j] += x * a[m * n + j];
    }
  return y;
}

}  // namespace

/// With B = A^T A, ||A||^128 = ||B^64||_2 <= ||B^64||_F. Each square of a B of norm 1 has at least the norm
/// n^-1/2 and errors of n 2^-53 in each element.
double spectral_norm(const std::vector<double>& rows, size_t n) {
  std::vector<double> a = rows;
  double size = normalize(a);
  if (size == 0) return 0;
  if (!std::isfinite(size)) return HUGE_VAL;
  double log_of = 2 * std::log(size), power = 2;
  for (int i = 0; i < 7; ++i) {
    a = gram(a, n), size = normalize(a);
    log_of += std::log(size);
    if (i < 6) log_of *= 2, power *= 2;
  }
  return std::exp(log_of / power) * (1 + 0x1p-30);
}

}  // namespace assay
