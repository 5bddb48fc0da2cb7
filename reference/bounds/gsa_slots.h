// What gated slot attention writes to its slots and how they decay, given or, without g, made from s: with
// how far a kernel's may be from it.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/operator.h"
#include "reference/slice_problem.h"

namespace assay {

/// T x M each. Without g, z_t = log(e^{z_{t-1}} + e^{s_t}), z_1 = s_1, and x = s_t - z_{t-1}:
///   z_t = max(z_{t-1}, s_t) + l      l = log(1 + e^{-|x|})
///   g_t = -max(x, 0) - l      w_t = 1 / (1 + e^{-x}) = 1 - e^{g_t}      g_1 = 0, w_1 = 1 exactly
/// A kernel has z_{t-1} off by at most d, and with r = own_weights + own_weights_per_nat (|x| + d),
/// e = own_sum (1 + |s_t| + |z_t| + |z_{t-1}|)
///   d' = min(1, e^{g_t + d}) d + e^d r l + e      |g^ - g| <= min(1, w_t e^d) d + e^d r |g_t| + e
///   |log w^ - log w| <= d' + r + e
/// as dz_t/dz_{t-1} = e^{g_t}, |dg_t/dz_{t-1}| = w_t, |dlog w_t/dz_{t-1}| = e^{g_t}, and the logarithms of
/// e^{g_t}, w_t, l and |g_t| themselves move by at most d with z_{t-1}: w_t <= -log(1 - w_t) = |g_t|.
/// Below g = -1e4 a decay is 0 in every format: it counts as -1e4.
struct GsaSlots {
  std::vector<double> g, g_error;  ///< log decays
  std::vector<double> w, w_error;  ///< what is written
  bool own = false;                ///< made from s

  GsaSlots(const SliceMatrix& s, const SliceMatrix& g, const Arithmetic&);
};

}  // namespace assay
