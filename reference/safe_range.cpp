#include "reference/safe_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// Value channels that are looked at: the first ones of a head.
constexpr int64_t kColumns = 4;

const Tensor* held(const TensorMap& inputs, const char* name) {
  const auto found = inputs.find(name);
  return found == inputs.end() || !found->second.is_held() ? nullptr : &found->second;
}

/// S_t = D_t S_t-1 + k_t u_t, u_t = beta_t (v_t - k_t^T D_t S_t-1), and G = dL/dS backwards, by what a token
/// reads, writes and decays. Heads and tokens as in the tensors; several value heads may share a key.
struct DeltaTokens {
  const Tensor *q, *k, *v, *beta, *beta_v, *g, *d_o, *S0, *dS;

  explicit DeltaTokens(const TensorMap& in)
      : q(held(in, "q")),
        k(held(in, "k")),
        v(held(in, "v")),
        beta(held(in, "beta")),
        beta_v(held(in, "beta_v")),
        g(held(in, "g")),
        d_o(held(in, "do")),
        S0(held(in, "initial_state")),
        dS(held(in, "dfinal_state")) {}

  int64_t heads() const { return v->axes[2].size; }
  int64_t K() const { return k->axes[3].size; }
  /// The element of a tensor [B, T, heads, width] at a token counted over all batches.
  double at(const Tensor& x, int64_t token, int64_t head, int64_t c) const {
    const int64_t of = x.axes[2].size, width = x.axes.size() > 3 ? x.axes[3].size : 1;
    return x.value((token * of + head / (heads() / of)) * width + (width > 1 ? c : 0));
  }
  double rate(int64_t token, int64_t head) const { return beta ? at(*beta, token, head, 0) : 1; }
  double decay(int64_t token, int64_t head, int64_t c) const {
    return g ? std::exp(at(*g, token, head, c)) : 1;
  }
  /// A state's column [N, heads, K, V], or zeros.
  std::vector<double> column(const Tensor* states, int64_t sequence, int64_t head, int64_t j) const {
    std::vector<double> y(static_cast<size_t>(K()), 0);
    for (int64_t c = 0; states && c < K(); ++c) {
      const int64_t V = states->axes[3].size;
      y[static_cast<size_t>(c)] = states->value(((sequence * heads() + head) * K() + c) * V + j);
    }
    return y;
  }
};

/// One value channel's state, and what an arithmetic that rounds each update against it is off by.
struct Column {
  std::vector<double> exact, off;
  double rounding;  ///< of an update: relative
  double first;     ///< its sign, where the errors so far have none

  static double along(const std::vector<double>& key, const std::vector<double>& x) {
    double sum = 0;
    for (size_t c = 0; c < key.size(); ++c) sum += key[c] * x[c];
    return sum;
  }
  void decay(const std::vector<double>& weight) {
    for (size_t c = 0; c < weight.size(); ++c) exact[c] *= weight[c], off[c] *= weight[c];
  }
  void write(const std::vector<double>& x, double value) {
    for (size_t c = 0; c < x.size(); ++c) exact[c] += x[c] * value;
  }
  /// The state gains key times rate (value - key^T state). That number is rounded away from what the exact
  /// one is, as the errors so far lie.
  void update(const std::vector<double>& key, double rate, double value) {
    const double right = rate * (value - along(key, exact)), moved = -rate * along(key, off);
    for (size_t c = 0; c < key.size(); ++c) exact[c] += key[c] * right, off[c] += key[c] * moved;
    const double so_far = along(key, off);
    const double rounded = std::copysign(rounding * (right + moved), so_far == 0 ? first : so_far);
    for (size_t c = 0; c < key.size(); ++c) off[c] += key[c] * rounded;
  }
};

struct Walk {
  const DeltaTokens& tokens;
  const Arithmetic& declared;
  double scale;  ///< backward: of what queries write to dL/dS
  bool back;
};

/// One token of head `head`. Returns the square of what the exact state was, before its update or after.
double step(const Walk& w, int64_t t, int64_t head, int64_t j, Column& y) {
  const DeltaTokens& x = w.tokens;
  std::vector<double> key, weight, reader;
  for (int64_t c = 0; c < x.K(); ++c) {
    key.push_back(x.at(*x.k, t, head, c)), weight.push_back(x.decay(t, head, c));
    if (w.back) reader.push_back(x.at(*x.q, t, head, c));
  }
  if (w.back)
    y.write(reader, w.scale * x.at(*x.d_o, t, head, j));
  else
    y.decay(weight);
  const double before = Column::along(y.exact, y.exact);
  y.update(key, x.rate(t, head), w.back ? 0 : x.at(*x.v, t, head, j));
  const double after = Column::along(y.exact, y.exact);
  if (w.back) y.decay(weight);
  return std::fmax(before, after);
}

/// After how many of a sequence's tokens [first, end) the error is as large as the state ever was; none: -1.
int64_t lost_after(const Walk& w, double sign, int64_t sequence, int64_t first, int64_t end, int64_t head,
                   int64_t j) {
  const Tensor* const start = w.back ? w.tokens.dS : w.tokens.S0;
  Column y{w.tokens.column(start, sequence, head, j), {}, w.declared.update, sign};
  y.off.assign(y.exact.size(), 0);
  double largest = Column::along(y.exact, y.exact);
  for (int64_t i = 0; i < end - first; ++i) {
    largest = std::fmax(largest, step(w, w.back ? end - 1 - i : first + i, head, j, y));
    const double off = Column::along(y.off, y.off);
    if (off > 0 && off >= largest) return i + 1;
  }
  return -1;
}

/// The fewest tokens over the channels that are looked at; none: -1.
int64_t fewest(const Walk& w, int64_t sequence, int64_t first, int64_t end, int64_t head) {
  int64_t least = -1;
  for (int64_t j = 0; j < std::min(kColumns, w.tokens.v->axes[3].size); ++j)
    for (const double sign : {1.0, -1.0}) {
      const int64_t after = lost_after(w, sign, sequence, first, end, head, j);
      if (after >= 0 && (least < 0 || after < least)) least = after;
    }
  return least;
}

std::vector<LostState> lost(const Walk& w, const std::vector<int64_t>& cu_seqlens) {
  const DeltaTokens& x = w.tokens;
  const int64_t batches = x.k->axes[0].size, T = x.k->axes[1].size, of = x.k->axes[2].size;
  std::vector<int64_t> ends = cu_seqlens;
  for (int64_t b = 0; cu_seqlens.empty() && b <= batches; ++b) ends.push_back(b * T);
  std::vector<LostState> all;
  for (size_t n = 0; n + 1 < ends.size(); ++n)
    for (int64_t head = 0; head < x.heads(); ++head) {
      const int64_t first = ends[n], end = ends[n + 1], sequence = static_cast<int64_t>(n),
                    tokens = fewest(w, sequence, first, end, head);
      if (tokens < 0) continue;
      const int64_t key = ((w.back ? end - 1 : first) * of + head / (x.heads() / of)) * x.K();
      all.push_back({w.back, sequence, head, w.back ? end - tokens : first + tokens - 1, tokens,
                     x.k->element_name(key)});
    }
  return all;
}

bool applies(const Operator& op, const Arithmetic& declared, const DeltaTokens& x) {
  if (!(declared.update > 0) || declared.chunk == 0 || !x.q || !x.k || !x.v || x.beta_v) return false;
  if (x.k->axes.size() != 4) return false;  // one write per token
  bool rates = false, other = false;
  for (const ArgumentSpec& argument : op.inputs) {
    rates |= argument.name == "beta" && argument.role == Role::rate;
    other |= argument.role == Role::opposed || argument.role == Role::along;
  }
  return rates && !other;
}

}  // namespace

std::vector<LostState> lost_states(const Operator& op, const Arithmetic& declared,
                                   const std::vector<int64_t>& cu_seqlens, const TensorMap& inputs) {
  const DeltaTokens tokens(inputs);
  if (!applies(op, declared, tokens)) return {};
  return lost({tokens, declared, 1, false}, cu_seqlens);
}

std::vector<LostState> lost_adjoints(const Operator& op, const Arithmetic& declared,
                                     const std::vector<int64_t>& cu_seqlens, const TensorMap& inputs,
                                     double scale) {
  const DeltaTokens tokens(inputs);
  if (!applies(op, declared, tokens) || !tokens.d_o) return {};
  return lost({tokens, declared, scale, true}, cu_seqlens);
}

std::string describe(const LostState& lost) {
  return fmt::format(
      "{}: within {} tokens {} this one on, roundings that the kernel declares may leave {} off by "
      "its own size: the safe range of these keys, rates and decays ends before",
      lost.first, lost.tokens, lost.adjoint ? "back from" : "from", lost.adjoint ? "dL/dS" : "the state");
}

}  // namespace assay
