// Detects problems in which plain double arithmetic makes no rounding at all.
#pragma once
#include "src/base/tensor/tensor.h"

namespace assay {

bool all_zero(const Tensor&);

/// No decay, and every q, k, v, S_0 a multiple of a power of two: then every S_t is a multiple of
/// 2^state_exponent, every sum q^T S of 2^(q_exponent + state_exponent), and as long as the sums of absolute
/// values stay below 2^53 of these units nothing rounds, in any order. A scale that is a power of two keeps
/// this.
class ExactGrid {
 public:
  ExactGrid() = default;
  ExactGrid(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* g, const Tensor* S0,
            double scale);

  /// `magnitude` >= every |S| entry and partial sum so far; q_sum = sum_c |q_c| (0: only the state is asked
  /// for).
  bool exact(double magnitude, double q_sum) const {
    return possible_ && magnitude < state_limit_ && q_sum * magnitude < output_limit_;
  }

 private:
  bool possible_ = false;
  double state_limit_ = 0, output_limit_ = 0;
};

/// The same for the gradients: S on its grid as above, G = dL/dS on that of scale q do and dS_T, each
/// gradient on the product of its factors' grids. A term with u is a sum (v do, or q u k) times factors that
/// are zero or at least one unit of their grids, so that the sum too is below its limit where the term is, or
/// does not matter.
class AdjointGrid {
 public:
  AdjointGrid() = default;
  /// `u`: the bonus of an exclusive readout, or null.
  AdjointGrid(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& d_o, const Tensor* g,
              const Tensor* S0, const Tensor* dS, const Tensor* u, double scale);

  /// `states`, `adjoints` >= every |S|, |G| entry and partial sum; `companion`: the element's sum of absolute
  /// values; `gradient`: 0 dq, 1 dk, 2 dv, 3 dg, 4 dS_0, 5 du.
  bool exact(int gradient, double states, double adjoints, double companion) const {
    return possible_ && states < state_limit_ && adjoints < adjoint_limit_ && companion < limit_[gradient];
  }

 private:
  bool possible_ = false;
  double state_limit_ = 0, adjoint_limit_ = 0, limit_[6] = {};
};

}  // namespace assay
