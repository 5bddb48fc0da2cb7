// What the bounds of delta rules are made of, column by column in the Euclidean norm. A recurrence over
// absolute values |D + x y^T| would grow like 2^T where the states themselves are bounded; the norm rho_t =
// ||D_t + x_t y_t^T||_2 says what one step can do to an error.
//
// One step is S <- D S + x (y^T S) + scale written columns^T, D = diag(e^w), and the arithmetic that makes it
// has S^ <- D S^ + x (y^T S^) + .. + eps with, for each entry (all of it the arithmetic's own roundings),
//   |eps| <= (1 + step) [ d e^w |S^| + |x| (y^T |S^|)_removal + write |written||columns| ]
//            + step [ e^w |S^| + |x| (|y|^T |S^|) + |written||columns| ],       d = decay_error(w),
// where (y^T |S^|)_removal = removal |y|^T |S^|; where the state is read after its decay (y has the factor
// e^w) each term of that sum has the decay's error too, (removal + (1 + removal) d) in place of removal; and
// where it is written before its decay (x has the factor e^w) the outer index has. With |S^| <= |S| + |S^ -
// S|, in the norm,
//   e_t <= (rho_t + kappa_t) e_{t-1} + ||eps at S||,
//   kappa_t = (1 + step) (max d e^w + ||x|| ||y||_removal) + step (max e^w + ||x|| ||y||).
// Columns may have rates: the terms with x and with `written` times a number of their column, and rho too.
// Nothing is first order.
//
// In chunks a kernel makes no state between their ends. What stands for it is the state S^_t that would
// follow exactly from the one at the chunk's start and from the updates u^_t that the kernel has: S^_t = D
// S^_t-1 + x u^_t^T, and what is written beside. What these miss of the exact step is a residual eps_t, one
// number per column, so that
//   e_t <= rho_t e_{t-1} + ||x_t|| |eps_t|,
// and all that is read between the ends is a sum over paths, from the state at the chunk's start and from
// every update since: `paths`, with |S| and |u^| at their largest, and `excess`, by how much decays that are
// made together may be off along them (bound.h). What S^ is off by at the chunk's start is read by its norm,
// `entering`: decays shorten it no less than rho does e_t. The end of a chunk has its own error of all.
//
// Without decays A_t = 1 + x_t y_t^T, and a state at a chunk's start that all of its tokens read as the one
// operand S^ + h, |h| <= held |S^|, gives each of them the residual y_t^T h beside the others. These alone
// make
//   sum_t A_e .. A_t+1 x_t y_t^T h = sum_t A_e .. A_t+1 (A_t - 1) h = (A_e .. A_s+1 - 1) h,
// no more than (1 + the norm of that product) ||h||, however many they are: what passes a window
// (chunk_passage.h) is the less of both counts, token by token and chunk by chunk. A read is y_t^T (S^ + h)
// with errors delta of all else, removal = (1 + held) (1 + delta) - 1, so that beside y_t^T h it misses no
// more than delta (1 + held) = removal - held tells.
//
// Underflow adds kUnderflowEvents times the operations' magnitudes to every entry of
// every step. |S| here is the double recurrence's, raised by that recurrence's own e_t.
#pragma once
#include <cmath>
#include <vector>

#include "reference/bounds/chunk_passage.h"
#include "reference/bounds/storage.h"

namespace assay {

inline double at(const SliceMatrix& m, int64_t r, int64_t c) {
  return m.values[static_cast<size_t>(r * m.columns + c)];
}
inline const double* row(const SliceMatrix& m, int64_t r) {
  return m.values.data() + r * m.columns;
}
/// Euclidean, not below the exact one.
double norm(const double* x, int64_t n);

/// One state with what two arithmetics make of it: the double one that computes it here, and the declared
/// one.
struct NormState {
  std::vector<double> S;              ///< K x V
  std::vector<double> own, declared;  ///< per column: ||S^ - S||
  /// In chunks, K x V: all paths, those from updates since the chunk's start, and the excess of all. Else
  /// empty.
  std::vector<double> paths, updates, excess;
  std::vector<double> entering;  ///< in chunks, per column: `declared` at the chunk's start
  std::vector<double> reach;     ///< and of that with the updates' errors
  std::vector<double> spread;    ///< in chunks, per key channel
  /// In chunks: how errors pass the window that this one is in, per column what they were at its start, the
  /// sum of eps^2 / omega since, and of what was added besides.
  ChunkPassage passage;
  std::vector<double> at_start, squares, added;
  /// In chunks, per column: at least ||h|| of this one, the sum of eps^2 / omega without it, and what it has
  /// added in the window.
  std::vector<double> held, rests, added_held;

  bool in_chunk() const { return !paths.empty(); }
  /// What updates since the chunk's start are off by, along their paths to an element.
  double unsure(size_t i) const { return unsure(std::sqrt(spread[i / own.size()]), reach[i % own.size()]); }
  static double unsure(double root, double reach) { return root * reach * (1 + 0x1p-40); }
  double path(size_t i) const { return paths[i] + unsure(i); }
  double most(size_t i) const { return std::fabs(S[i]) + own[i % own.size()]; }
};

/// Of a token's step: what its residual adds to an error's square is at most (gain residual)^2.
struct Contraction {
  bool known = false;
  double gain = 0;   ///< 1 / sqrt(p)
  double share = 0;  ///< of its update

  Contraction() = default;
  /// `square`: at least |k|^2; `widest`: of the decays.
  Contraction(double beta, double square, double widest);

  /// The error's norm after the step: `rho`, `length` by the triangle alone.
  double after(double e, double residual, double rho, double length) const {
    const double sum = rho * e + length * residual, entered = gain * residual;
    return known ? std::fmin(sum, std::sqrt(e * e + entered * entered) * (1 + 0x1p-40)) : sum;
  }
};

/// Where a step's decay has a part in its removal.
enum class Removal { before_decay, of_decayed, then_decayed };

struct NormStep {
  const double *w, *x, *y;          ///< of K
  const double *written, *columns;  ///< of K, of V
  double scale = 1;
  const double* rates = nullptr;  ///< of V; null: ones
  Removal removal = Removal::before_decay;

  double rate(int64_t column) const { return rates ? rates[column] : 1; }
};

/// Both arithmetics of one recurrence over K x V.
class NormRecurrence {
 public:
  NormRecurrence(int64_t K, int64_t V, const Arithmetic& declared, double underflow);

  NormState start(const std::vector<double>& S) const;
  /// At least the exact |S|.
  std::vector<double> magnitudes(const NormState&) const;
  /// `rho`: of a column's transition; one for all, or one each.
  void advance(const NormStep&, const std::vector<double>& rho, NormState&) const;

  /// A token's step in a chunk, by the update that stands for it. `update`, `residual`: of V, at least |u|
  /// (|u^| where the contraction is not known) and |eps|; null: of a step that only writes its columns,
  /// which are exact. `rest`: of the residual, without what is held; null: all.
  void advance_in_chunk(const NormStep&, const std::vector<double>& rho, const Contraction&,
                        const double* update, const double* residual, const double* rest, NormState&) const;
  /// Begins a chunk: what a state is there stands for itself; `held`: what it loses, relative, as the one
  /// state that all of the chunk's tokens read.
  void enter_chunk(NormState&, const ChunkPassage&, double held = 0) const;
  /// The end of a chunk, or of the sequence in it.
  void leave_chunk(NormState&) const;

 private:
  /// What one arithmetic adds in one step.
  struct Errors {
    Arithmetic arithmetic;
    BoundModel model;
    double underflow;

    Errors(const Arithmetic& a, double underflow) : arithmetic(a), model(a), underflow(underflow) {}
  };
  /// Of a step: weights, what its reads are made of, and the largest magnitudes.
  struct Weights;

  /// Of doubles.
  void step(const NormStep&, std::vector<double>& S) const;
  void add_errors(const NormStep&, const Errors&, const std::vector<double>& magnitudes,
                  const std::vector<double>& rho, std::vector<double>& e) const;

  int64_t K_, V_;
  Errors own_, declared_;
};

/// std::fmax without the call: of a NaN and a number the number.
inline double larger(double a, double b) {
  return a >= b || std::isnan(b) ? a : b;
}

/// A number as the double recurrence has it, how far that may be from the exact one, and how far the kernel's
/// may.
struct NormEntry {
  double value = 0, own = 0, error = 0;
  double path = 0;  ///< sum of its paths' magnitudes, where it is made of several
  double most() const { return std::fabs(value) + own; }
  double size() const { return larger(path, most()); }
};
inline NormEntry times(double factor, const NormEntry& x) {
  const double size = std::fabs(factor);
  return {factor * x.value, size * x.own, size * x.error, size * x.path};
}

/// sum_i x_i y_i: also the exact terms' magnitudes.
struct NormSum {
  double value = 0, own = 0, magnitude = 0, error = 0;

  void add(const NormEntry& x, const NormEntry& y) {
    value += x.value * y.value, own += x.own * std::fabs(y.value) + x.most() * y.own;
    magnitude += x.size() * y.size(), error += x.error * (y.size() + y.error) + x.size() * y.error;
  }
  NormSum rounded(double relative) const {
    return {value, own, magnitude, error + relative * (magnitude + error)};
  }
  NormEntry entry() const { return {value, own, error, magnitude}; }
};

ElementBound store(const Storage&, const NormSum&, double lost, int64_t K);
/// A state is stored as fp32, as it is.
std::vector<ElementBound> stored_state(const NormState&);

}  // namespace assay
