#include "reference/bounds/delta_tile.h"

#include <algorithm>
#include <cmath>

#include "reference/bound.h"

namespace assay {
namespace {

/// Of the doubles that a tile's own matrices are made in: sums of fewer than 2^10 terms.
constexpr double kOwn = 0x1p-40, kUp = 1 + 0x1p-38;

/// Of lower triangles of magnitudes.
TileMatrix product(const TileMatrix& a, const TileMatrix& b) {
  TileMatrix y(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t m = 0; m <= i; ++m)
      for (int64_t j = 0; j <= m; ++j) y(i, j) += a(i, m) * b(m, j) * kUp;
  return y;
}

/// Solves y = a + c y, lower triangles of magnitudes; infinite where the diagonal of c reaches 1.
TileMatrix fixed_point(const TileMatrix& a, const TileMatrix& c) {
  TileMatrix y(a.rows, a.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = a(i, j);
      for (int64_t m = j; m < i; ++m) sum += c(i, m) * y(m, j);
      y(i, j) = c(i, i) < 1 ? sum / (1 - c(i, i)) * kUp : HUGE_VAL;
    }
  return y;
}
/// Solves y = a + y c likewise.
TileMatrix fixed_point_left(const TileMatrix& a, const TileMatrix& c) {
  TileMatrix y(a.rows, a.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = i; j >= 0; --j) {
      double sum = a(i, j);
      for (int64_t m = j + 1; m <= i; ++m) sum += y(i, m) * c(m, j);
      y(i, j) = c(j, j) < 1 ? sum / (1 - c(j, j)) * kUp : HUGE_VAL;
    }
  return y;
}

/// |X| from its substitution in doubles X~: X = X~ - X ((1 + N) X~ - 1), the residual within kOwn (1 + |N|)
/// |X~|.
TileMatrix inverse_of(const TileMatrix& system, const TileMatrix& unit) {
  const int64_t n = system.rows;
  TileMatrix x(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = i == j ? 1 : 0;
      for (int64_t m = j; m < i; ++m) sum -= system(i, m) * x(m, j);
      x(i, j) = sum;
    }
  for (double& value : x.values) value = std::fabs(value);
  TileMatrix off = product(unit, x);
  for (double& value : off.values) value *= kOwn;
  return fixed_point_left(x, off);
}

TileMatrix turned(const TileMatrix& x) {
  TileMatrix y(x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j) y(x.rows - 1 - j, x.columns - 1 - i) = x(i, j);
  return y;
}

/// Row i of a x, of magnitudes.
double times(const TileMatrix& a, const TileMatrix& x, int64_t i, int64_t column) {
  double sum = 0;
  for (int64_t m = 0; m <= i; ++m) sum += a(i, m) * x(m, column);
  return sum * kUp;
}

/// What row i of M loses of a column, by the lesser of both ways.
double of_scores(const DeltaTile& tile, const TileReads& in, int64_t i, int64_t column,
                 const TileMatrix& undone, const TileMatrix& settled, double reach) {
  double all = 0, apart = 0, square = 0;
  for (int64_t m = 0; m < i; ++m) {
    const double off = tile.off(i, m);
    all += off * undone(m, column), apart += off * settled(m, column);
    if (reach < HUGE_VAL) square += off * off * in.shares[static_cast<size_t>(m)];
  }
  return (reach < HUGE_VAL ? std::fmin(all, apart + std::sqrt(square) * reach) : all) * kUp;
}

}  // namespace

DeltaTile::DeltaTile(const TileMatrix& system, const TileMatrix& unit, const TileMatrix& decays,
                     const Arithmetic& a)
    : system(system), unit(unit), sums(system), exact(inverse_of(system, unit)), off(decays) {
  for (size_t i = 0; i < sums.values.size(); ++i)
    sums.values[i] = std::fabs(sums.values[i]) + kOwn * unit.values[i];
  // The diagonal of N is zero, to the last bit.
  for (int64_t i = 0; i < off.rows; ++i)
    for (int64_t j = 0; j < i; ++j) off(i, j) = (a.scores * unit(i, j) + (1 + a.scores) * decays(i, j)) * kUp;
  TileMatrix solve = unit, all = off;
  for (size_t i = 0; i < solve.values.size(); ++i) {
    solve.values[i] = a.solve * (unit.values[i] + off.values[i]) * kUp;
    all.values[i] = (solve.values[i] + off.values[i]) * kUp;
  }
  inverse = fixed_point(exact, product(exact, all));
  residual = product(solve, inverse);
}

DeltaTile DeltaTile::backwards() const {
  DeltaTile y;
  y.system = turned(system), y.unit = turned(unit), y.sums = turned(sums), y.exact = turned(exact),
  y.inverse = turned(inverse), y.off = turned(off);
  TileMatrix made = unit;
  for (size_t i = 0; i < made.values.size(); ++i) made.values[i] = (unit.values[i] + off.values[i]) * kUp;
  const TileMatrix of_made = fixed_point(exact, product(exact, off));
  y.residual = turned(product(product(of_made, residual), made));
  return y;
}

TileUpdates updates_of(const DeltaTile& tile, const TileReads& in, const Arithmetic& a,
                       std::vector<double> error, std::vector<double> reach) {
  const int64_t n = in.y.rows, V = in.y.columns;
  TileUpdates out{TileMatrix(n, V), TileMatrix(n, V), TileMatrix(n, V)};
  // undone: |u^ - du|; settled: the same but for what u^ is off by because the state is.
  TileMatrix u(n, V), off(n, V), w(n, V), du(n, V), undone(n, V), settled(n, V);
  const bool contracts = std::all_of(in.contractions.begin(), in.contractions.end(),
                                     [](const Contraction& c) { return c.known; });
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < V; ++j) {
      double sum = in.y(i, j), terms = std::fabs(sum);
      for (int64_t m = 0; m < i; ++m) {
        sum -= tile.system(i, m) * u(m, j);
        terms += tile.unit(i, m) * std::fabs(u(m, j));
      }
      u(i, j) = sum, off(i, j) = in.own(i, j) + kOwn * terms;
    }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < V; ++j) w(i, j) = times(tile.inverse, in.size, i, j);
  for (int64_t i = 0; i < n; ++i) {
    double of_unit = 0, largest = 0;
    for (int64_t m = 0; m <= i; ++m) of_unit += tile.unit(i, m);
    for (double x : in.size.values) largest = std::fmax(largest, x);
    const double lost =
        kUnderflowEvents * a.underflow * static_cast<double>(n) * of_unit * of_unit * (1 + largest);
    for (int64_t j = 0; j < V; ++j) {
      double& e = error[static_cast<size_t>(j)];
      const auto row = static_cast<size_t>(i);
      const double own = std::fabs(u(i, j)) + times(tile.exact, off, i, j);
      const double known = own + in.reading[row] * e, solved = a.solved * w(i, j);
      double eps = times(tile.residual, in.size, i, j) + in.dy(i, j) + lost + solved;
      for (int64_t m = 0; m < i; ++m) eps += tile.sums(i, m) * du(m, j) * kUp;
      eps += of_scores(tile, in, i, j, undone, settled, contracts ? reach[static_cast<size_t>(j)] : HUGE_VAL);
      const double made = a.update < 1 ? (known + eps) / (1 - a.update) * kUp : HUGE_VAL;
      du(i, j) = solved + a.update * made, eps = (eps + a.update * made) * kUp;
      undone(i, j) = std::fmin(w(i, j), made + du(i, j)), settled(i, j) = own + du(i, j);
      const Contraction& contraction = in.contractions[row];
      double& so_far = reach[static_cast<size_t>(j)];
      so_far = std::sqrt(so_far * so_far + 2 * std::pow(contraction.gain * eps, 2)) * kUp;
      out.rest(i, j) = std::fmax(eps - in.held(i, j), 0) + 0x1p-40 * eps;
      out.residual(i, j) = eps, out.update(i, j) = (contraction.known ? own : known + eps) * kUp;
      e = contraction.after(e, eps, in.carried(i, j), in.entering[row]) * kUp;
    }
  }
  // What overflows meets the zeros of other tokens in the same products: 0 times infinity, in all of its
  // column.
  for (int64_t j = 0; j < V; ++j) {
    double most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::fmax(most, std::fmax(w(i, j), out.update(i, j)));
    most = std::fmax(most, error[static_cast<size_t>(j)]);
    for (int64_t i = 0; i < n; ++i) {
      out.residual(i, j) = unless_over(most, out.residual(i, j));
      out.rest(i, j) = unless_over(most, out.rest(i, j));
    }
  }
  return out;
}

}  // namespace assay
