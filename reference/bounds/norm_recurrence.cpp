#include "reference/bounds/norm_recurrence.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

double largest(const double* x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::fmax(most, std::fabs(x[i]));
  return most;
}

/// The double recurrence's own arithmetic: e^w (4 u), products, K-term sums.
Arithmetic of_double(int64_t K) {
  constexpr double u = kDoubleRoundoff;
  Arithmetic a;
  a.decay = 6 * u, a.write = 4 * u, a.step = 3 * u, a.removal = (static_cast<double>(K) + 6) * u;
  return a;
}

}  // namespace

double norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum) * (1 + 0x1p-40);
}

Contraction::Contraction(double beta, double square, double widest) {
  // Below a sixteenth an update's share is larger than what its token alone can make of the error.
  constexpr double kLeast = 0x1p-4, kUp = 1 + 0x1p-40;
  const double rest = 2 - beta * square * kUp;
  known = beta > 0 && widest <= 1 && rest >= kLeast;
  if (!known) return;
  gain = kUp / std::sqrt(beta * rest), share = 2 * beta / rest * kUp;
}

NormRecurrence::NormRecurrence(int64_t K, int64_t V, const Arithmetic& declared, double underflow)
    : K_(K), V_(V), own_(of_double(K), kOwnUnderflow), declared_(declared, underflow) {}

NormState NormRecurrence::start(const std::vector<double>& S) const {
  const std::vector<double> zeros(static_cast<size_t>(V_), 0);
  return {S, zeros, zeros};
}

std::vector<double> NormRecurrence::magnitudes(const NormState& s) const {
  std::vector<double> y(s.S.size());
  const auto V = static_cast<size_t>(V_);
  for (size_t row = 0; row < y.size(); row += V)
    for (size_t j = 0; j < V; ++j) y[row + j] = std::fabs(s.S[row + j]) + s.own[j];
  return y;
}

struct NormRecurrence::Weights {
  std::vector<double> decay;     ///< e^w times the error of e^w
  std::vector<double> weight;    ///< e^w
  std::vector<double> reader;    ///< |y| and its errors as the declared arithmetic reads
  std::vector<double> factor;    ///< |x| and likewise
  double widest = 0, moved = 0;  ///< largest of `weight` and of `decay`

  Weights(const NormStep& s, int64_t K, const Errors& of) {
    for (int64_t c = 0; c < K; ++c) {
      const double e = exponential(s.w[c]) * (1 + 0x1p-50), error = of.model.decay_error(s.w[c]);
      const double removal = of.arithmetic.removal, with_decay = removal + (1 + removal) * error;
      weight.push_back(e), decay.push_back(e * error);
      reader.push_back(std::fabs(s.y[c]) * (s.removal == Removal::of_decayed ? with_decay : removal));
      factor.push_back(s.removal == Removal::then_decayed ? with_decay : removal);
      widest = std::fmax(widest, e), moved = std::fmax(moved, decay.back());
    }
  }
};

[[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]] void NormRecurrence::add_errors(
    const NormStep& s, const Errors& of, const std::vector<double>& magnitudes,
    const std::vector<double>& rho, std::vector<double>& e) const {
  const Weights w(s, K_, of);
  const double step = of.arithmetic.step, write = of.arithmetic.write;
  const bool outer = s.removal == Removal::then_decayed;
  std::vector<double> outer_factor(static_cast<size_t>(K_));
  for (int64_t c = 0; c < K_; ++c)
    outer_factor[static_cast<size_t>(c)] = std::fabs(s.x[c]) * w.factor[static_cast<size_t>(c)];
  const double both = norm(s.x, K_) * norm(s.y, K_);
  const double removed =
      outer ? norm(outer_factor.data(), K_) * norm(s.y, K_) : norm(s.x, K_) * norm(w.reader.data(), K_);
  const double magnitude = (1 + largest(s.x, K_)) * (1 + norm(s.y, K_) * std::sqrt(static_cast<double>(K_))) *
                           (1 + largest(s.written, K_)) * (1 + std::fabs(s.scale));
  const auto V = static_cast<size_t>(V_);
  std::vector<double> read(V, 0), read_error(V, 0), written(V), sum(V, 0), most(V, 0);
  for (int64_t c = 0; c < K_; ++c) {
    const double y = std::fabs(s.y[c]), error = w.reader[static_cast<size_t>(c)];
    const double* S = magnitudes.data() + static_cast<size_t>(c) * V;
    for (size_t j = 0; j < V; ++j) read[j] += y * S[j], read_error[j] += error * S[j];
  }
  for (size_t j = 0; j < V; ++j) {
    const double rate = std::fabs(s.rate(static_cast<int64_t>(j)));
    read[j] *= rate, read_error[j] *= rate, written[j] = std::fabs(s.scale * s.columns[j]) * rate;
  }
  const std::vector<double>& removed_from = outer ? read : read_error;
  for (int64_t c = 0; c < K_; ++c) {
    const auto i = static_cast<size_t>(c);
    const double x = std::fabs(s.x[c]), k = std::fabs(s.written[c]), removal = outer ? outer_factor[i] : x;
    const double of_S = (1 + step) * w.decay[i] + step * w.weight[i],
                 of_written = ((1 + step) * write + step) * k, of_read = step * x,
                 of_removed = (1 + step) * removal;
    const double* S = magnitudes.data() + i * V;
    for (size_t j = 0; j < V; ++j) {
      const double eps =
          of_S * S[j] + of_removed * removed_from[j] + of_written * written[j] + of_read * read[j];
      sum[j] += eps * eps, most[j] = most[j] < S[j] ? S[j] : most[j];
    }
  }
  for (size_t j = 0; j < V; ++j) {
    const double rate = std::fabs(s.rate(static_cast<int64_t>(j)));
    const double kappa = (1 + step) * (w.moved + removed * rate) + step * (w.widest + both * rate);
    const double lost = kUnderflowEvents * of.underflow * std::sqrt(static_cast<double>(K_)) * magnitude *
                        (1 + std::fabs(s.columns[j])) * (1 + rate);
    e[j] = ((rho[j % rho.size()] + kappa) * e[j] + std::sqrt(sum[j]) + lost) * (1 + 0x1p-30);
    if (!(most[j] * (1 + both * rate) * magnitude * (1 + rate) < kOverflow)) e[j] = HUGE_VAL;
  }
}

void NormRecurrence::advance(const NormStep& s, const std::vector<double>& rho, NormState& state) const {
  const std::vector<double> before = magnitudes(state);
  add_errors(s, own_, before, rho, state.own), add_errors(s, declared_, before, rho, state.declared);
  step(s, state.S);
}

void NormRecurrence::step(const NormStep& s, std::vector<double>& state) const {
  const auto V = static_cast<size_t>(V_);
  std::vector<double> read(V, 0);
  for (int64_t c = 0; c < K_; ++c)
    for (size_t j = 0; j < V; ++j) read[j] += s.y[c] * state[static_cast<size_t>(c) * V + j];
  for (int64_t c = 0; c < K_; ++c) {
    const double e = exponential(s.w[c]), x = s.x[c], k = s.scale * s.written[c];
    for (size_t j = 0; j < V; ++j) {
      double& S = state[static_cast<size_t>(c) * V + j];
      const double rate = s.rate(static_cast<int64_t>(j));
      S = e * S + rate * (x * read[j] + k * s.columns[j]);
    }
  }
}

void NormRecurrence::advance_in_chunk(const NormStep& s, const std::vector<double>& rho,
                                      const Contraction& contraction, const double* update,
                                      const double* residual, const double* rest, NormState& state) const {
  const Arithmetic& a = declared_.arithmetic;
  const auto V = static_cast<size_t>(V_);
  // The factor that an update, or what is written, enters the state with.
  const double* factor = update ? s.x : s.written;
  const double length = norm(factor, K_), raise = 1 + 0x1p-30;
  for (int64_t c = 0; c < K_; ++c) {
    const double e = exponential(s.w[c]) * (1 + 0x1p-50), d = declared_.model.decay_error(s.w[c]);
    const double size = std::fabs(factor[c]) * (update ? 1 : std::fabs(s.scale));
    double& spread = state.spread[static_cast<size_t>(c)];
    const double root = std::sqrt(spread);
    for (size_t j = 0; j < V; ++j) {
      const size_t i = static_cast<size_t>(c) * V + j;
      const double written = size * (update ? update[j] : std::fabs(s.columns[j]));
      const double crossing = state.paths[i] + NormState::unsure(root, state.reach[j]) + state.entering[j];
      state.excess[i] = e * ((1 + d) * state.excess[i] + d * crossing) * raise;
      state.paths[i] = (e * state.paths[i] + written) * raise;
      state.updates[i] = (e * state.updates[i] + written) * raise;
    }
    spread = (e * e * spread + contraction.share * factor[c] * factor[c]) * raise;
  }
  add_errors(s, own_, magnitudes(state), rho, state.own);
  step(s, state.S);
  const double lost = kUnderflowEvents * a.underflow * static_cast<double>(K_) * (1 + length);
  const double pulled = norm(s.x, K_) * norm(s.y, K_);
  std::vector<double> roots, most(V, 0);
  for (const double spread : state.spread) roots.push_back(std::sqrt(spread));
  for (size_t j = 0; j < V; ++j) {
    const double eps = residual ? residual[j] : 0, entered = contraction.gain * eps;
    double &e = state.declared[j], &reach = state.reach[j];
    const double rate = s.rate(static_cast<int64_t>(j));
    const double weight = passage_weight(rate, pulled * std::fabs(rate));
    e = (contraction.after(e, eps, rho[j % rho.size()], length) + lost) * raise;
    const double left = rest ? rest[j] : eps;
    state.squares[j] = (state.squares[j] + eps * eps / weight) * raise;
    state.rests[j] = (state.rests[j] + left * left / weight) * raise;
    state.added[j] += lost * raise;
    reach = contraction.known ? std::sqrt(reach * reach + 2 * entered * entered)
                              : std::fmax(rho[j % rho.size()], 1) * reach + length * eps;
    reach = (reach + lost) * raise;
  }
  for (size_t c = 0; c < roots.size(); ++c)
    for (size_t j = 0; j < V; ++j) {
      const double path = state.paths[c * V + j] + NormState::unsure(roots[c], state.reach[j]);
      most[j] = most[j] < path ? path : most[j];
    }
  for (size_t j = 0; j < V; ++j)
    if (!(most[j] + state.declared[j] < kOverflow)) state.declared[j] = state.reach[j] = HUGE_VAL;
}

void NormRecurrence::enter_chunk(NormState& state, const ChunkPassage& passage, double held) const {
  state.passage = passage;
  state.held.assign(static_cast<size_t>(V_), 0);
  for (size_t j = 0; held > 0 && j < state.held.size(); ++j) {
    double square = 0;
    for (size_t i = j; i < state.S.size(); i += state.held.size()) square += std::pow(state.most(i), 2);
    state.held[j] = held * (std::sqrt(square) + state.declared[j]) * (1 + 0x1p-30);
  }
  if (passage.begins || state.at_start.empty()) {
    state.at_start = state.declared;
    state.squares.assign(static_cast<size_t>(V_), 0);
    state.rests = state.added = state.added_held = state.squares;
  }
  state.updates.assign(state.S.size(), 0), state.excess = state.updates;
  state.spread.assign(static_cast<size_t>(K_), 0);
  state.paths.resize(state.S.size()), state.entering = state.reach = state.declared;
  for (size_t i = 0; i < state.S.size(); ++i) state.paths[i] = state.most(i);
}

void NormRecurrence::leave_chunk(NormState& state) const {
  const Arithmetic& a = declared_.arithmetic;
  const auto V = static_cast<size_t>(V_);
  for (size_t j = 0; j < V; ++j) {
    double sum = kUnderflowEvents * a.underflow * static_cast<double>(K_);
    sum *= sum;
    for (size_t i = j; i < state.S.size(); i += V) {
      const double updates = state.updates[i] + state.unsure(i) + state.excess[i];
      const double written = (state.excess[i] + a.write * updates) * (1 + a.boundary);
      const double end = written + a.boundary * (state.path(i) + state.excess[i]);
      sum += end * end;
    }
    double e = state.declared[j];
    const ChunkPassage& passage = state.passage;
    state.added_held[j] += state.held[j] > 0 ? (1 + passage.lengthened) * state.held[j] : 0;
    if (std::isfinite(e) && passage.whole < HUGE_VAL) {
      const double before = passage.whole * state.at_start[j] + passage.lengthened * state.added[j];
      const double each = passage.response * std::sqrt(state.squares[j]);
      const double once =
          passage.response * std::sqrt(state.rests[j]) + passage.lengthened * state.added_held[j];
      e = std::fmin(e, (before + std::fmin(each, once)) * (1 + 0x1p-30));
    }
    const double ends = a.boundary * state.entering[j] + std::sqrt(sum);
    state.declared[j] = (e + ends) * (1 + 0x1p-30), state.added[j] += ends * (1 + 0x1p-30);
  }
  state.paths.clear(), state.updates.clear(), state.excess.clear(), state.spread.clear();
}

ElementBound store(const Storage& storage, const NormSum& x, double lost, int64_t K) {
  return storage.element(std::fabs(x.value) + x.own, x.magnitude, x.error, lost,
                         8 * static_cast<double>(K) + 64);
}

std::vector<ElementBound> stored_state(const NormState& s) {
  const Storage of_state(0, Dtype::fp32);
  std::vector<ElementBound> y;
  for (size_t i = 0; i < s.S.size(); ++i) {
    const size_t j = i % s.own.size();
    y.push_back(of_state.element(s.S[i], std::fabs(s.S[i]) + s.own[j], s.declared[j], 0, 64));
  }
  return y;
}

}  // namespace assay
