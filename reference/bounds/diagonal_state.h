// A state with one decay per row, S_t = diag(e^{g_t}) S_{t-1} + x_t y_t^T, as a kernel of known arithmetic
// makes it: value, companion P and excess E of every entry (bound.h), for the models of single operators.
// Plain double.
#pragma once
#include <cmath>
#include <vector>

#include "reference/bound.h"
#include "reference/bounds/bounded.h"
#include "src/base/numerics/exponential.h"

namespace assay {

class DiagonalState {
 public:
  DiagonalState(const Arithmetic& a, int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        S(static_cast<size_t>(rows * columns)),
        P(S),
        E(S),
        chunk_(a.chunk),
        step_(a.step),
        model_(a),
        written_(model_.written()),
        own_of_excess_(model_.own_of_excess()),
        decayed_(static_cast<size_t>(rows)),
        apart_(decayed_),
        own_(model_.stored() > 1 ? S.size() : 0) {}

  void load(const std::vector<double>& initial) {
    for (size_t i = 0; i < S.size(); ++i) S[i] = initial[i], P[i] = std::fabs(initial[i]);
  }
  /// In reversed time the first token's `step` meets the initial adjoint too.
  void step_initial() {
    for (size_t i = 0; i < E.size(); ++i) E[i] = step_ * P[i];
  }
  /// What is written from now on is of a chunk whose rows decay by at most `nats`.
  void in_chunk(double nats) { written_ = model_.written(nats); }
  /// One row's crossing of g and its new term x y_j; `x_error`, `y_error[j]` bound what is already wrong with
  /// them, `g_error` with g.
  void advance(int64_t row, double g, double x, double x_error, const double* y, const double* y_error,
               double g_error = 0) {
    cross(row, g, g_error);
    write(row, x, x_error, y, y_error);
  }
  /// P <- e^g P, E <- carry E + grow P.
  void cross(int64_t row, double g, double g_error = 0) {
    const double a = exponential(g);
    const ExcessStep e = model_.step(a, g, g_error);
    decayed_[static_cast<size_t>(row)] += (std::fabs(g) + g_error) * (1 + 0x1p-40);
    apart_[static_cast<size_t>(row)] += std::fabs(g);
    for (size_t i = at(row), end = at(row + 1); i < end; ++i) {
      E[i] = E[i] * e.carry + P[i] * e.grow, P[i] *= a, S[i] *= a;
    }
  }
  /// Adds x y: |x^ y^ - x y| <= x_error (|y| + y_error) + |x| y_error, and everything written rounds.
  void write(int64_t row, double x, double x_error, const double* y, const double* y_error) {
    const double size = std::fabs(x);
    for (int64_t j = 0; j < columns; ++j) {
      const size_t i = at(row) + static_cast<size_t>(j);
      const double wrong = y_error ? y_error[j] : 0, y_size = std::fabs(y[j]), term = size * y_size;
      const double off = x_error * (y_size + wrong) + size * wrong;
      S[i] += x * y[j], P[i] += term, E[i] += off + written_ * (term + off);
      if (own_of_excess_ > 0) P[i] = std::fabs(S[i]) + E[i] * own_of_excess_;
    }
  }
  /// Between two tokens, where `tokens` of the sequence's `all` lie before (also in reversed time): the end
  /// of a chunk, a state that is stored. What is read at the token just done is read before.
  void pass(int64_t tokens, int64_t all) {
    const auto ends = [&](int64_t every) { return every > 0 && (tokens % every == 0 || tokens == all); };
    if (ends(chunk_)) end_chunk();
    if (model_.stored() > 1 && ends(model_.stored())) store(++times_stored_);
  }
  /// Does pass change anything?
  bool passes(int64_t tokens) const {
    return (chunk_ > 0 && tokens % chunk_ == 0) || (model_.stored() > 1 && tokens % model_.stored() == 0);
  }
  const BoundModel& model() const { return model_; }
  size_t at(int64_t row) const { return static_cast<size_t>(row * columns); }

  int64_t rows, columns;
  std::vector<double> S, P, E;

 private:
  void end_chunk() {
    for (int64_t r = 0; r < rows; ++r) {
      const double error = model_.chunk_error(decayed_[static_cast<size_t>(r)]);
      decayed_[static_cast<size_t>(r)] = 0;
      for (size_t i = at(r), end = at(r + 1); error > 0 && i < end; ++i) E[i] += error * (P[i] + E[i]);
    }
  }
  void store(int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
      double& decayed = apart_[static_cast<size_t>(r)];
      const size_t i = at(r);
      StoredChannel(n, model_.stored(), decayed).store(&S[i], &P[i], &own_[i], columns);
      decayed = 0;
    }
  }

  int64_t chunk_;
  double step_;
  BoundModel model_;
  double written_, own_of_excess_;
  int64_t times_stored_ = 0;
  std::vector<double> decayed_;  ///< per row: sum of |g| since the chunk's start, rounded up
  std::vector<double> apart_;    ///< since the state was stored
  std::vector<double> own_;      ///< A of bound.h where the state is stored, but not after every token
};

/// Adds S_i x, where the kernel's x is up to `error` off: (S + d) (x + e) - S x = d (x + e) + S e with
/// |d| <= E_i, its terms at most P_i + E_i. S itself is a double that is off by far less than these shares.
inline void add_product(Bounded& y, const DiagonalState& S, size_t i, double x, double error) {
  const double size = std::fabs(x) + error;
  y.value += S.S[i] * x, y.P += S.P[i] * size;
  y.E += S.E[i] * size + error * (std::fabs(S.S[i]) + 0x1p-20 * S.P[i] + kMostOfExcess * S.E[i]);
}
/// sum_j S_ij x_j; `x_error` (none: null) bounds what is wrong with x.
inline Bounded row_product(const DiagonalState& S, int64_t row, const double* x, const double* x_error) {
  Bounded y;
  for (int64_t j = 0; j < S.columns; ++j) {
    add_product(y, S, S.at(row) + static_cast<size_t>(j), x[j], x_error ? x_error[j] : 0);
  }
  return y;
}
/// sum_i S_ij x_i.
inline Bounded column_product(const DiagonalState& S, int64_t j, const double* x, const double* x_error) {
  Bounded y;
  for (int64_t r = 0; r < S.rows; ++r) {
    add_product(y, S, S.at(r) + static_cast<size_t>(j), x[r], x_error ? x_error[r] : 0);
  }
  return y;
}
/// weight sum_j S_ij G_ij.
inline Bounded row_overlap(const DiagonalState& S, const DiagonalState& G, int64_t row, double weight) {
  Bounded y;
  for (int64_t j = 0; j < S.columns; ++j) {
    const size_t i = S.at(row) + static_cast<size_t>(j);
    y.value += weight * S.S[i] * G.S[i], y.P += weight * S.P[i] * G.P[i];
    y.E += weight * (S.P[i] * G.E[i] + S.E[i] * (G.P[i] + G.E[i]));
  }
  return y;
}

/// I of bound.h for a path through t tokens, and its ends.
inline double path_inflation(const Arithmetic& a, int64_t tokens) {
  const BoundModel model(a);
  const double chunks =
      a.chunk > 0 ? std::ceil(static_cast<double>(tokens) / static_cast<double>(a.chunk)) : 0;
  return std::pow(model.inflation_per_token(), static_cast<double>(tokens + 1)) *
         std::pow(model.inflation_per_chunk(), chunks) * model.inflation_of_ends();
}

}  // namespace assay
