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

#include "reference/bounds/norm_wise.h"
#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = Rwkv7::In;
using Out = Rwkv7::Out;

double at(const SliceMatrix& m, int64_t r, int64_t c) {
  return m.values[static_cast<size_t>(r * m.columns + c)];
}
const double* row(const SliceMatrix& m, int64_t r) {
  return m.values.data() + r * m.columns;
}

struct Rwkv7Slice {
  const SliceProblem& p;
  const SliceMatrix &r, &w, &k, &v, &a, &b, &S0;
  int64_t T, K, V;

  explicit Rwkv7Slice(const SliceProblem& p)
      : p(p),
        r(p.inputs[In::r]),
        w(p.inputs[In::w]),
        k(p.inputs[In::k]),
        v(p.inputs[In::v]),
        a(p.inputs[In::a]),
        b(p.inputs[In::b]),
        S0(p.inputs[In::initial_state]),
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
  Errors(const Arithmetic& a, double underflow) : a_(a), model_(a), underflow_(underflow) {}

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
      if (!(most * (1 + both) * magnitude < kOverflow)) error = HUGE_VAL;
    }
  }

 private:
  Arithmetic a_;
  BoundModel model_;
  double underflow_;
};

/// The double recurrence's own arithmetic: e^w (4 u), products, K-term sums.
Arithmetic of_double(int64_t K) {
  constexpr double u = kDoubleRoundoff;
  Arithmetic a;
  a.decay = 6 * u, a.write = 3 * u, a.step = 3 * u, a.removal = (static_cast<double>(K) + 4) * u;
  return a;
}

class Recurrence {
 public:
  Recurrence(int64_t K, int64_t V, const Arithmetic& declared, double underflow)
      : K_(K), V_(V), own_(of_double(K), kOwnUnderflow), declared_(declared, underflow) {}

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

Step forward_step(const Rwkv7Slice& f, int64_t t) {
  return {row(f.w, t), row(f.b, t), row(f.a, t), row(f.k, t), row(f.v, t), 1};
}

std::vector<double> norms(const Rwkv7Slice& f) {
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

ElementBound store(const Storage& storage, const Sum& x, double lost, int64_t K) {
  return storage.element(std::fabs(x.value) + x.own, x.magnitude, x.error, lost,
                         8 * static_cast<double>(K) + 64);
}

std::vector<ElementBound> stored_state(const State& s) {
  const Storage of_state(0, Dtype::fp32);
  std::vector<ElementBound> y;
  for (size_t i = 0; i < s.S.size(); ++i) {
    const size_t j = i % s.own.size();
    y.push_back(of_state.element(s.S[i], std::fabs(s.S[i]) + s.own[j], s.declared[j], 0, 64));
  }
  return y;
}

}  // namespace

SliceBounds Rwkv7::forward_bound(const SliceProblem& p) {
  const Rwkv7Slice f(p);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, decays(p, "w"));
  const double underflow = underflow_of(a, claims_exact(a));
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  const std::vector<double> rho = norms(f);
  const Recurrence recurrence(f.K, f.V, a, underflow);
  State s = recurrence.start(f.S0.values);
  SliceBounds y(Out::count);
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
      y[Out::o].push_back(store(of_o, o.rounded(a.readout), lost, f.K));
    }
  }
  y[Out::final_state] = stored_state(s);
  return y;
}

namespace {

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const AdjointArithmetic& declared)
      : d_(declared),
        decaying_(decays(p, "w")),
        forward_(arithmetic_of_run(declared.state, decaying_)),
        reverse_(arithmetic_of_run(declared.adjoint, decaying_)),
        underflow_(std::fmax(underflow_of(forward_, claims_exact(forward_)),
                             underflow_of(reverse_, claims_exact(reverse_)))),
        f_(p),
        d_o_(p.cotangents[Out::o]),
        rho_(norms(f_)),
        states_(f_.K, f_.V, forward_, underflow_),
        adjoints_(f_.K, f_.V, reverse_, underflow_),
        S_(states_.start(f_.S0.values), f_.T,
           [this](int64_t t, State& s) {
             states_.advance(forward_step(f_, t - 1), rho_[static_cast<size_t>(t - 1)], s);
           }),
        G_(adjoints_.start(p.cotangents[Out::final_state].values)),
        stored_(forward_.output_roundoff, dtype_of(p, {"v"})),
        of_w_(declared.gate_output_roundoff, dtype_of(p, {"w"})) {
    for (const SliceMatrix& m : p.inputs) y_.emplace_back(m.values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    y_[In::initial_state] = stored_state(G_);
    return std::move(y_);
  }

 private:
  void token(int64_t t) {
    const State after = S_.at(t + 1), &before = S_.at(t);
    const std::vector<double> zeros(static_cast<size_t>(std::max(f_.K, f_.V)), 0);
    // The write of scale r do, as a step with weights one that reads nothing.
    adjoints_.advance({zeros.data(), zeros.data(), zeros.data(), row(f_.r, t), row(d_o_, t), f_.p.scale}, 1,
                      G_);
    lost_ = lost_at(t, before, after);
    const Passed passed = passed_at(t, before);
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, before, after, passed);
    for (int64_t j = 0; j < f_.V; ++j) {
      Sum dv;
      for (int64_t c = 0; c < f_.K; ++c) dv.add({at(f_.k, t, c)}, column_entry(G_, c, j));
      dv.error = norm(row(f_.k, t), f_.K) * G_.declared[static_cast<size_t>(j)];
      const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dv.rounded(readout), lost_, f_.K);
    }
    adjoints_.advance({row(f_.w, t), row(f_.a, t), row(f_.b, t), zeros.data(), zeros.data(), 0},
                      rho_[static_cast<size_t>(t)], G_);
  }

  /// What underflow takes from a gradient of token t.
  double lost_at(int64_t t, const State& before, const State& after) const {
    const double reach = (1 + std::fabs(f_.p.scale)) * ones_plus_sum(f_.r, t) * ones_plus_sum(f_.k, t) *
                         ones_plus_sum(f_.v, t) * ones_plus_sum(f_.a, t) * ones_plus_sum(f_.b, t) *
                         ones_plus_sum(d_o_, t);
    double most = 1;
    for (size_t n = 0; n < G_.S.size(); ++n)
      most = std::fmax(most,
                       std::fmax(std::fabs(G_.S[n]) * (1 + std::fabs(before.S[n])), std::fabs(after.S[n])));
    return unless_over(reach * most, kUnderflowEvents * underflow_ * reach * most);
  }

  /// As sums over key channels see an entry: the column's error is taken as a whole.
  Entry column_entry(const State& s, int64_t c, int64_t j) const {
    return {s.S[static_cast<size_t>(c * f_.V + j)], s.own[static_cast<size_t>(j)]};
  }
  Entry entry(const State& s, int64_t c, int64_t j) const {
    return {s.S[static_cast<size_t>(c * f_.V + j)], s.own[static_cast<size_t>(j)],
            s.declared[static_cast<size_t>(j)]};
  }
  double of_run(double readout, double decayed) const {
    return readout + (decaying_ ? decayed * (1 + readout) : 0);
  }

  /// What passes between the two recurrences at a token: beta = G^T b and alpha = S^T a.
  struct Passed {
    std::vector<Entry> beta, alpha;
  };
  Passed passed_at(int64_t t, const State& before) const {
    Passed y;
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      Sum pull, read;
      for (int64_t c = 0; c < f_.K; ++c)
        pull.add({at(f_.b, t, c)}, column_entry(G_, c, j)),
            read.add({at(f_.a, t, c)}, column_entry(before, c, j));
      pull.error = norm(row(f_.b, t), f_.K) * G_.declared[n];
      read.error = norm(row(f_.a, t), f_.K) * before.declared[n];
      y.beta.push_back(pull.rounded(d_.inner).entry()), y.alpha.push_back(read.rounded(d_.inner).entry());
    }
    return y;
  }

  /// dr, dw, dk, da and db of one key channel.
  void key_channel(int64_t t, int64_t c, const State& before, const State& after, const Passed& passed) {
    Sum dr, dw, dk, da, db;
    const double w = at(f_.w, t, c), weight = exponential(w);
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      const Entry old = entry(before, c, j), g = entry(G_, c, j);
      dr.add({f_.p.scale * at(d_o_, t, j)}, entry(after, c, j));
      dk.add({at(f_.v, t, j)}, g);
      da.add(old, passed.beta[n]), db.add(g, passed.alpha[n]);
      dw.add({weight * old.value, weight * old.own, weight * old.error}, g);
    }
    const BoundModel s_model(forward_), g_model(reverse_);
    const double crossed = std::fmax(s_model.decay_error(w), g_model.decay_error(w));
    const double gate_readout = of_run(d_.gate_readout, d_.gate_readout_decayed);
    const auto i = static_cast<size_t>(t * f_.K + c);
    y_[In::r][i] = store(stored_, dr.rounded(forward_.readout), lost_, f_.V);
    y_[In::w][i] = store(of_w_, dw.rounded(crossed + (1 + crossed) * gate_readout), lost_, f_.V);
    y_[In::k][i] = store(stored_, dk.rounded(reverse_.readout), lost_, f_.V);
    y_[In::a][i] = store(stored_, da.rounded(d_.inner), lost_, f_.V);
    y_[In::b][i] = store(stored_, db.rounded(d_.inner), lost_, f_.V);
  }

  const AdjointArithmetic& d_;
  const bool decaying_;
  const Arithmetic forward_, reverse_;
  const double underflow_;
  const Rwkv7Slice f_;
  const SliceMatrix& d_o_;
  const std::vector<double> rho_;
  const Recurrence states_, adjoints_;
  StateHistory<State> S_;
  State G_;
  const Storage stored_, of_w_;
  double lost_ = 0;
  SliceBounds y_;
};

}  // namespace

SliceBounds Rwkv7::adjoint_bound(const SliceProblem& p) {
  return Reverse(p, p.problem->adjoint).run();
}

}  // namespace assay
