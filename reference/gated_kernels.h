// The inner loops of the gated family in plain double and double-double, several value columns at once. The
// same source is compiled for three instruction sets; the order of operations is written out and no
// multiply-add is fused, so that all three return the same bits.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay {

/// Value columns that one call of the forward loops carries.
inline constexpr int kForwardColumns = 16;
/// Value columns that one call of the adjoint loops carries.
inline constexpr int kAdjointColumns = 32;

/// One token and key channel, shared by all value columns.
struct ForwardCoefficient {
  double a, k, q, q_abs;  ///< e^g, k, q, |q|
  double carry, grow;     ///< of the excess recurrence (bound.h)
};

/// Tokens x columns of one slice: reads v, updates the K x kForwardColumns states, writes the readouts (scale
/// left out).
struct ForwardTile {
  int64_t tokens = 0, K = 0;
  const ForwardCoefficient* coefficients = nullptr;  ///< tokens x K
  double written = 0;                                ///< of the excess recurrence
  const double* v = nullptr;                         ///< tokens x kForwardColumns
  double *S = nullptr, *P = nullptr, *E = nullptr;   ///< S_t, companion Pm_t, excess E_t
  double *o = nullptr, *o_companion = nullptr,
         *o_excess = nullptr;  ///< q^T S, |q|^T Pm, |q|^T E; tokens x kForwardColumns
  const double *bonus = nullptr, *bonus_abs = nullptr;  ///< u and |u|, K each; for the exclusive readout
  double bonus_error = 0;                               ///< relative error of the terms with u
  /// Where not 0, the state is stored after every token: Pm is |S| plus this times E (bound.h).
  double own_of_excess = 0;
};

struct PreciseCoefficient {
  double a_hi, a_lo, k, q, q_abs;
};

/// As ForwardTile in double-double, with the companion in double and no excess.
struct PreciseTile {
  int64_t tokens = 0, K = 0;
  const PreciseCoefficient* coefficients = nullptr;
  const double* v = nullptr;
  double *S_hi = nullptr, *S_lo = nullptr, *P = nullptr;
  double *o_hi = nullptr, *o_lo = nullptr, *o_companion = nullptr;
  const double* bonus = nullptr;  ///< u, K; for the exclusive readout
};

struct AdjointCoefficient {
  double a, k, k_abs, q, q_abs;
  double carry, grow;                  ///< of the excess of S (bound.h)
  double reverse_carry, reverse_grow;  ///< of the excess of G (bound_adjoint.h)
};

/// Sums over the columns of a tile for one token and key channel; `_abs` are the companions, `_excess` what
/// the largest relative errors of S and G add to them.
struct AdjointSums {
  double dq, dq_abs, dq_excess, dk, dk_abs, dk_excess, dg, dg_abs, dg_excess;
};

/// States are S, Pm and E interleaved: [K][3][kAdjointColumns].
inline constexpr int64_t adjoint_state_size(int64_t K) {
  return K * 3 * kAdjointColumns;
}

/// states[0] is S before the first token; states[1 .. tokens] are written.
struct StateTile {
  int64_t tokens = 0, K = 0;
  const AdjointCoefficient* coefficients = nullptr;
  double written = 0;         ///< of the excess recurrence of S
  const double* v = nullptr;  ///< tokens x kAdjointColumns
  double* states = nullptr;   ///< (keep ? tokens + 1 : 1) x adjoint_state_size(K)
  bool keep = true;           ///< false: only the last state, in place
  double own_of_excess = 0;   ///< as in ForwardTile
};

/// Runs tokens backwards: G (same layout as a state) is dL/dS after the tile's last token on entry, before
/// its first on exit.
struct ReverseTile {
  int64_t tokens = 0, K = 0;
  const AdjointCoefficient* coefficients = nullptr;
  double written = 0;                         ///< of the excess recurrence of G
  const double *v = nullptr, *d_o = nullptr;  ///< tokens x kAdjointColumns; d_o holds scale do
  const double* states = nullptr;             ///< as left by StateTile
  double* G = nullptr;
  AdjointSums* sums = nullptr;                                    ///< tokens x K, added to
  double *dv = nullptr, *dv_abs = nullptr, *dv_excess = nullptr;  ///< tokens x kAdjointColumns, written
  double own_of_excess = 0;                                       ///< as in ForwardTile, of G
};

struct GatedKernels {
  std::string_view instruction_set;
  void (*forward)(const ForwardTile&);
  void (*precise)(const PreciseTile&);
  void (*states)(const StateTile&);
  void (*reverse)(const ReverseTile&);
  /// Reading S_{t-1} + diag(u) k_t v_t^T in place of S_t; the reverse reads S_{t-1} and leaves terms with u
  /// out.
  void (*forward_exclusive)(const ForwardTile&);
  void (*precise_exclusive)(const PreciseTile&);
  void (*reverse_exclusive)(const ReverseTile&);
  /// y_i = exponential(x_i).
  void (*exponentials)(const double* x, int64_t count, double* y);
};

/// The loops for this processor.
const GatedKernels& gated_kernels();
/// All that this processor can run, the plainest first.
std::vector<GatedKernels> runnable_gated_kernels();

}  // namespace assay
