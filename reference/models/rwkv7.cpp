// The bounds of rwkv7, norm by norm. A recurrence over |D + b a^T| would grow like 2^T where the states
// themselves are bounded; the norm rho_t = ||D_t + b_t a_t^T||_2 says what one step can do to an error.
//
// The kernel's state obeys S^_t = M_t S^_{t-1} + k_t v_t^T + eps with, for each entry (all of it the kernel's
// own roundings of that step),
//   |eps| <= (1 + step) [ d e^w |S^| + removal |b| (|a|^T |S^|) + write |k||v| ]
//            + step [ e^w |S^| + |b| (|a|^T |S^|) + |k||v| ],       d = decay_error(w),
// and with |S^| <= |S| + |S^ - S|, column by column in the Euclidean norm,
//   e_t <= (rho_t + kappa_t) e_{t-1} + ||eps at S||,
//   kappa_t = (1 + step) (max d e^w + removal ||a|| ||b||) + step (max e^w + ||a|| ||b||).
// Then |o^ - o| <= scale ( ||r|| e_t (1 + readout) + readout |r|^T |S_t| ). Nothing is first order.
//
// Backward, G_t = dL/dS_t obeys the transposed recurrence, with f_t for e_t and `adjoint` for `state`; the
// sums G^T b and S^T a carry `inner`, and every gradient its own readout: dr the state's, dk the adjoint's,
// dv `value_readout`, dw `gate_readout`, da and db `inner` once more.
//
// Underflow adds kUnderflowEvents times the operations' magnitudes to every entry of every step. |S| here is
// the double recurrence's, raised by that recurrence's own e_t.
#include "reference/operators/rwkv7.h"

#include "reference/models/norm_wise.h"
#include "reference/models/stored.h"

namespace assay {
namespace {

double at(const SliceMatrix& m, int64_t r, int64_t c) {
  return m.values[static_cast<size_t>(r * m.columns + c)];
}
const double* row(const SliceMatrix& m, int64_t r) {
  return m.values.data() + r * m.columns;
}

struct Problem7 {
  const SliceProblem& p;
  const SliceMatrix &r, &w, &k, &v, &a, &b, &S0;
  int64_t T, K, V;

  explicit Problem7(const SliceProblem& p)
      : p(p),
        r(p.inputs[0]),
        w(p.inputs[1]),
        k(p.inputs[2]),
        v(p.inputs[3]),
        a(p.inputs[4]),
        b(p.inputs[5]),
        S0(p.inputs[6]),
        T(p.slice.tokens),
        K(r.columns),
        V(v.columns) {}
};

/// One state with what two arithmetics make of it: the double one that computes it here, and the declared
/// one.
struct State {
  std::vector<double> S;              ///< K x V
  std::vector<double> own, declared;  ///< per column: ||S^ - S||
};

double norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum) * (1 + 0x1p-40);
}
double largest(const double* x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::fmax(most, std::fabs(x[i]));
  return most;
}

/// Step of S: x = b, y = a read the state, k v is written; of G: x = a, y = b, scale r do is written.
struct Step {
  const double *w, *x, *y, *written, *columns;
  double scale;
};

/// What one arithmetic adds in one step.
class Errors {
 public:
  Errors(const GatedArithmetic& a, double underflow) : a_(a), model_(a), underflow_(underflow) {}

  /// `S`: magnitudes of the state before the step, K x V, at least the exact ones.
  void advance(const Step& s, int64_t K, int64_t V, const std::vector<double>& magnitudes, double rho,
               std::vector<double>& e) const {
    std::vector<double> weight(static_cast<size_t>(K)), decay(weight);
    double widest = 0, moved = 0;
    for (int64_t c = 0; c < K; ++c) {
      const auto i = static_cast<size_t>(c);
      weight[i] = exponential(s.w[c]) * (1 + 0x1p-50), decay[i] = weight[i] * model_.decay_error(s.w[c]);
      widest = std::fmax(widest, weight[i]), moved = std::fmax(moved, decay[i]);
    }
    const double step = a_.step, both = norm(s.x, K) * norm(s.y, K);
    const double kappa = (1 + step) * (moved + a_.removal * both) + step * (widest + both);
    const double magnitude = (1 + largest(s.x, K)) * (1 + norm(s.y, K) * std::sqrt(static_cast<double>(K))) *
                             (1 + largest(s.written, K)) * (1 + std::fabs(s.scale));
    for (int64_t j = 0; j < V; ++j) {
      double read = 0, sum = 0, most = 0;
      for (int64_t c = 0; c < K; ++c) read += std::fabs(s.y[c]) * magnitudes[static_cast<size_t>(c * V + j)];
      for (int64_t c = 0; c < K; ++c) {
        const auto i = static_cast<size_t>(c);
        const double S = magnitudes[static_cast<size_t>(c * V + j)], x = std::fabs(s.x[c]) * read,
                     k = std::fabs(s.scale * s.written[c] * s.columns[j]);
        const double eps =
            (1 + step) * (decay[i] * S + a_.removal * x + a_.write * k) + step * (weight[i] * S + x + k);
        sum += eps * eps, most = std::fmax(most, S);
      }
      const double lost = kUnderflowEvents * underflow_ * std::sqrt(static_cast<double>(K)) * magnitude *
                          (1 + std::fabs(s.columns[j]));
      double& error = e[static_cast<size_t>(j)];
      error = ((rho + kappa) * error + std::sqrt(sum) + lost) * (1 + 0x1p-30);
      if (!(most * (1 + both) * magnitude < kModelOverflow)) error = HUGE_VAL;
    }
  }

 private:
  GatedArithmetic a_;
  BoundModel model_;
  double underflow_;
};

/// The double recurrence's own arithmetic: e^w (4 u), products, K-term sums.
GatedArithmetic of_double(int64_t K) {
  constexpr double u = kDoubleRoundoff;
  GatedArithmetic a;
  a.decay = 6 * u, a.write = 3 * u, a.step = 3 * u, a.removal = (static_cast<double>(K) + 4) * u;
  return a;
}

class Recurrence {
 public:
  Recurrence(int64_t K, int64_t V, const GatedArithmetic& declared, double underflow)
      : K_(K), V_(V), own_(of_double(K), kModelUnderflow), declared_(declared, underflow) {}

  State start(const std::vector<double>& S) const {
    const std::vector<double> zeros(static_cast<size_t>(V_), 0);
    return {S, zeros, zeros};
  }
  std::vector<double> magnitudes(const State& s) const {
    std::vector<double> y(s.S.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::fabs(s.S[i]) + s.own[i % static_cast<size_t>(V_)];
    return y;
  }
  /// S <- D S + x (y^T S) + scale written columns^T.
  void advance(const Step& s, double rho, State& state) const {
    const std::vector<double> before = magnitudes(state);
    own_.advance(s, K_, V_, before, rho, state.own),
        declared_.advance(s, K_, V_, before, rho, state.declared);
    std::vector<double> read(static_cast<size_t>(V_), 0);
    for (int64_t c = 0; c < K_; ++c)
      for (int64_t j = 0; j < V_; ++j)
        read[static_cast<size_t>(j)] += s.y[c] * state.S[static_cast<size_t>(c * V_ + j)];
    for (int64_t c = 0; c < K_; ++c)
      for (int64_t j = 0; j < V_; ++j) {
        double& S = state.S[static_cast<size_t>(c * V_ + j)];
        S = exponential(s.w[c]) * S + s.x[c] * read[static_cast<size_t>(j)] +
            s.scale * s.written[c] * s.columns[j];
      }
  }

 private:
  int64_t K_, V_;
  Errors own_, declared_;
};

Step forward_step(const Problem7& f, int64_t t) {
  return {row(f.w, t), row(f.b, t), row(f.a, t), row(f.k, t), row(f.v, t), 1};
}

std::vector<double> norms(const Problem7& f) {
  std::vector<double> rho(static_cast<size_t>(f.T)), weights(static_cast<size_t>(f.K));
  for (int64_t t = 0; t < f.T; ++t) {
    for (int64_t c = 0; c < f.K; ++c) weights[static_cast<size_t>(c)] = exponential(at(f.w, t, c));
    rho[static_cast<size_t>(t)] = diagonal_plus_rank_one_norm(weights, row(f.a, t), row(f.b, t));
  }
  return rho;
}

/// A number as the double recurrence has it, how far that may be from the exact one, and how far the kernel's
/// may.
struct Entry {
  double value = 0, own = 0, error = 0;
  double most() const { return std::fabs(value) + own; }
};

/// sum_i x_i y_i: also the exact terms' magnitudes.
struct Sum {
  double value = 0, own = 0, magnitude = 0, error = 0;

  void add(const Entry& x, const Entry& y) {
    value += x.value * y.value, own += x.own * std::fabs(y.value) + x.most() * y.own;
    magnitude += x.most() * y.most(), error += x.error * (y.most() + y.error) + x.most() * y.error;
  }
  Sum rounded(double relative) const {
    return {value, own, magnitude, error + relative * (magnitude + error)};
  }
  Entry entry() const { return {value, own, error}; }
};

ModelledElement store(const Storage& storage, const Sum& x, double lost, int64_t K) {
  return storage.element(std::fabs(x.value) + x.own, x.magnitude, x.error, lost,
                         8 * static_cast<double>(K) + 64);
}

}  // namespace

ModelledValues Rwkv7::forward_bound(const SliceProblem& p) {
  const Problem7 f(p);
  const GatedArithmetic a = arithmetic_of_run(p.problem->arithmetic, decays(p, "w"));
  const double underflow = underflow_of(a, claims_exact(a));
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"})), of_state(0, Dtype::fp32);
  const std::vector<double> rho = norms(f);
  const Recurrence recurrence(f.K, f.V, a, underflow);
  State s = recurrence.start(f.S0.values);
  ModelledValues y{{{}, {}}, true};
  for (int64_t t = 0; t < f.T; ++t) {
    recurrence.advance(forward_step(f, t), rho[static_cast<size_t>(t)], s);
    const double size = norm(row(f.r, t), f.K) * std::fabs(p.scale);
    const double lost = kUnderflowEvents * underflow * (1 + std::fabs(p.scale)) * ones_plus_sum(f.r, t);
    for (int64_t j = 0; j < f.V; ++j) {
      const auto i = static_cast<size_t>(j);
      Sum o;
      for (int64_t c = 0; c < f.K; ++c)
        o.add({p.scale * at(f.r, t, c)}, {s.S[static_cast<size_t>(c * f.V + j)], s.own[i]});
      o.error = size * s.declared[i];
      y.values[0].push_back(store(of_o, o.rounded(a.readout), lost, f.K));
    }
  }
  for (size_t i = 0; i < s.S.size(); ++i) {
    const size_t j = i % static_cast<size_t>(f.V);
    y.values[1].push_back(of_state.element(s.S[i], std::fabs(s.S[i]) + s.own[j], s.declared[j], 0, 64));
  }
  return y;
}

ModelledValues Rwkv7::adjoint_bound(const SliceProblem& p) {
  const Problem7 f(p);
  const GatedAdjointArithmetic& d = p.problem->adjoint;
  const bool decaying = decays(p, "w");
  const GatedArithmetic forward = arithmetic_of_run(d.state, decaying),
                        reverse = arithmetic_of_run(d.adjoint, decaying);
  const double underflow =
      std::fmax(underflow_of(forward, claims_exact(forward)), underflow_of(reverse, claims_exact(reverse)));
  const Storage stored(forward.output_roundoff, dtype_of(p, {"v"})),
      of_w(d.gate_output_roundoff, dtype_of(p, {"w"})), of_state(0, Dtype::fp32);
  const std::vector<double> rho = norms(f);
  const Recurrence states(f.K, f.V, forward, underflow), adjoints(f.K, f.V, reverse, underflow);
  StateHistory<State> S(states.start(f.S0.values), f.T, [&](int64_t t, State& s) {
    states.advance(forward_step(f, t - 1), rho[static_cast<size_t>(t - 1)], s);
  });
  State G = adjoints.start(p.cotangents[1].values);
  const SliceMatrix& d_o = p.cotangents[0];
  const std::vector<double> zeros(static_cast<size_t>(std::max(f.K, f.V)), 0);
  ModelledValues y{{}, true};
  for (const SliceMatrix& m : p.inputs) y.values.emplace_back(m.values.size());
  const double gate_readout = d.gate_readout + (decaying ? d.gate_readout_decayed * (1 + d.gate_readout) : 0);
  const double value_readout =
      d.value_readout + (decaying ? d.value_readout_decayed * (1 + d.value_readout) : 0);
  for (int64_t t = f.T; t >= 1; --t) {
    const int64_t i = t - 1;
    const State after = S.at(t), &before = S.at(t - 1);
    // The write of scale r do, as a step with weights one that reads nothing.
    adjoints.advance({zeros.data(), zeros.data(), zeros.data(), row(f.r, i), row(d_o, i), p.scale}, 1, G);
    const double reach = (1 + std::fabs(p.scale)) * ones_plus_sum(f.r, i) * ones_plus_sum(f.k, i) *
                         ones_plus_sum(f.v, i) * ones_plus_sum(f.a, i) * ones_plus_sum(f.b, i) *
                         ones_plus_sum(d_o, i);
    double most = 1;
    for (size_t n = 0; n < G.S.size(); ++n)
      most =
          std::fmax(most, std::fmax(std::fabs(G.S[n]) * (1 + std::fabs(before.S[n])), std::fabs(after.S[n])));
    const double lost =
        reach * most < kModelOverflow ? kUnderflowEvents * underflow * reach * most : HUGE_VAL;
    // As sums over key channels see an entry: the column's error is taken as a whole.
    const auto column_entry = [&](const State& s, int64_t c, int64_t j) {
      return Entry{s.S[static_cast<size_t>(c * f.V + j)], s.own[static_cast<size_t>(j)]};
    };
    const auto entry = [&](const State& s, int64_t c, int64_t j) {
      return Entry{s.S[static_cast<size_t>(c * f.V + j)], s.own[static_cast<size_t>(j)],
                   s.declared[static_cast<size_t>(j)]};
    };
    std::vector<Entry> beta(static_cast<size_t>(f.V)), alpha(beta);
    for (int64_t j = 0; j < f.V; ++j) {
      const auto n = static_cast<size_t>(j);
      Sum pull, read;
      for (int64_t c = 0; c < f.K; ++c)
        pull.add({at(f.b, i, c)}, column_entry(G, c, j)),
            read.add({at(f.a, i, c)}, column_entry(before, c, j));
      pull.error = norm(row(f.b, i), f.K) * G.declared[n];
      read.error = norm(row(f.a, i), f.K) * before.declared[n];
      beta[n] = pull.rounded(d.inner).entry(), alpha[n] = read.rounded(d.inner).entry();
    }
    for (int64_t c = 0; c < f.K; ++c) {
      Sum dr, dw, dk, da, db;
      const double w = at(f.w, i, c), weight = exponential(w);
      for (int64_t j = 0; j < f.V; ++j) {
        const auto n = static_cast<size_t>(j);
        const Entry old = entry(before, c, j), g = entry(G, c, j);
        dr.add({p.scale * at(d_o, i, j)}, entry(after, c, j));
        dk.add({at(f.v, i, j)}, g);
        da.add(old, beta[n]), db.add(g, alpha[n]);
        dw.add({weight * old.value, weight * old.own, weight * old.error}, g);
      }
      const BoundModel s_model(forward), g_model(reverse);
      const double crossed = std::fmax(s_model.decay_error(w), g_model.decay_error(w));
      const auto at_key = static_cast<size_t>(i * f.K + c);
      y.values[0][at_key] = store(stored, dr.rounded(forward.readout), lost, f.V);
      y.values[1][at_key] = store(of_w, dw.rounded(crossed + (1 + crossed) * gate_readout), lost, f.V);
      y.values[2][at_key] = store(stored, dk.rounded(reverse.readout), lost, f.V);
      y.values[4][at_key] = store(stored, da.rounded(d.inner), lost, f.V);
      y.values[5][at_key] = store(stored, db.rounded(d.inner), lost, f.V);
    }
    for (int64_t j = 0; j < f.V; ++j) {
      Sum dv;
      for (int64_t c = 0; c < f.K; ++c) dv.add({at(f.k, i, c)}, column_entry(G, c, j));
      dv.error = norm(row(f.k, i), f.K) * G.declared[static_cast<size_t>(j)];
      y.values[3][static_cast<size_t>(i * f.V + j)] = store(stored, dv.rounded(value_readout), lost, f.K);
    }
    adjoints.advance({row(f.w, i), row(f.a, i), row(f.b, i), zeros.data(), zeros.data(), 0},
                     rho[static_cast<size_t>(i)], G);
  }
  for (size_t i = 0; i < G.S.size(); ++i) {
    const size_t j = i % static_cast<size_t>(f.V);
    y.values[6][i] = of_state.element(G.S[i], std::fabs(G.S[i]) + G.own[j], G.declared[j], 0, 64);
  }
  return y;
}

}  // namespace assay
