#include "reference/gated_noise.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace assay {
namespace {

constexpr int64_t kBlockTokens = 64;

/// One number per sample.
using Lanes = float __attribute__((vector_size(sizeof(float) * kNoiseSamples)));

/// What is drawn: one family of roundings each.
enum class Source : uint64_t { key, query, key_in_score, query_in_score, read, score, state_copy, adjoint_copy };

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Standard deviations as multiples of a uniform draw from [-1, 1]: u sqrt(number of roundings).
struct Amplitudes {
  float key = 0, query = 0;      ///< scaled operands on their way into S and G
  float read = 0;                ///< the scaled operand that reads a state for o or dv
  bool scaled_in_score = false;  ///< scores are made from scaled operands too
  float o = 0, dq = 0, dk = 0, dv = 0, dg = 0;  ///< scores and copies of that output
};

/// How far roundings of operands that a weight w has scaled agree in sign (rounding_noise.h).
float alike(float w, float u) {
  const float off = 1 - w;
  return off <= u ? off : u * u / off;
}

float amplitude(double u, int roundings) {
  return static_cast<float>(u * std::sqrt(roundings));
}

Amplitudes forward_amplitudes(const Arithmetic& a, double u, bool decays) {
  const auto count = [&](double always, double decayed) {
    return roundings_in(always, u) + (decays ? roundings_in(decayed, u) : 0);
  };
  Amplitudes y;
  y.key = amplitude(u, count(a.write, a.write_decayed));
  y.read = amplitude(u, count(0, a.readout_decayed));
  y.scaled_in_score = y.read > 0;
  y.o = amplitude(u, roundings_in(a.readout, u));
  return y;
}

Amplitudes adjoint_amplitudes(const AdjointArithmetic& a, double u, bool decays) {
  const auto count = [&](double always, double decayed) {
    return roundings_in(always, u) + (decays ? roundings_in(decayed, u) : 0);
  };
  Amplitudes y;
  y.key = amplitude(u, count(a.state.write, a.state.write_decayed));
  y.query = amplitude(u, count(a.adjoint.write, a.adjoint.write_decayed));
  y.read = amplitude(u, count(0, a.value_readout_decayed));
  y.scaled_in_score = y.read > 0;
  y.dq = amplitude(u, count(a.state.readout, a.state.readout_decayed));
  y.dk = amplitude(u, count(a.adjoint.readout, a.adjoint.readout_decayed));
  y.dv = amplitude(u, roundings_in(a.value_readout, u));
  y.dg = amplitude(u, count(a.gate_readout, a.gate_readout_decayed));
  return y;
}

/// A state and how each sample's differs from it.
struct SampledState {
  std::vector<float> value;
  std::vector<Lanes> noise;

  explicit SampledState(size_t size) : value(size), noise(size) {}
};

class GatedNoise {
 public:
  GatedNoise(const Problem& p, const GatedForm& form, const Slice& s, bool backward, const NoiseVisit& visit)
      : x_(p, form),
        slice_(s),
        visit_(visit),
        backward_(backward),
        K_(p.sizes.K),
        V_(p.sizes.V),
        H_(p.sizes.H),
        scale_(static_cast<float>(p.scale)),
        key_(mixed(mixed(static_cast<uint64_t>(s.n)) + static_cast<uint64_t>(s.h))) {
    const double u = operand_roundoff(x_.k.dtype);
    u_ = static_cast<float>(u);
    for (int i = 0; i < kNoiseSamples; ++i)
      common_[i] = static_cast<float>(static_cast<double>(mixed(static_cast<uint64_t>(i))) * 0x1p-63 - 1);
    amplitudes_ = backward ? adjoint_amplitudes(p.adjoint, u, x_.decays())
                           : forward_amplitudes(p.arithmetic, u, x_.decays());
    const int64_t chunk = backward ? p.adjoint.state.chunk : p.arithmetic.chunk;
    chunk_ = chunk > 0 ? chunk : std::max<int64_t>(s.tokens, 1);
    if (backward) {
      d_o_ = &require_input(p, "do", p.sizes.B * p.sizes.T * H_ * V_);
      const int64_t sequences =
          p.cu_seqlens.empty() ? p.sizes.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
      dS_ = find_input(p, "dfinal_state", sequences * H_ * K_ * V_);
    }
    for (const float bonus : x_.read_bonus(s.h)) bonus_.push_back(bonus);
  }

  void run() {
    const int64_t chunks = (slice_.tokens + chunk_ - 1) / chunk_;
    SampledState S(states());
    if (x_.S0) load(*x_.S0, S);
    std::vector<SampledState> starts;
    for (int64_t i = 0; i < chunks; ++i) {
      read(i);
      if (!backward_) outputs(S);
      if (backward_) starts.push_back(S);
      advance(S);
    }
    if (!backward_) {
      visit("final_state", 0, K_, V_, S.noise);
      return;
    }
    SampledState G(states());
    if (dS_) load(*dS_, G);
    while (!starts.empty()) {
      read(static_cast<int64_t>(starts.size()) - 1);
      gradients(starts.back(), G);
      retreat(G);
      starts.pop_back();
    }
    if (x_.S0) visit("d" + std::string(x_.form.state), 0, K_, V_, G.noise);
  }

 private:
  size_t states() const { return static_cast<size_t>(K_ * V_); }
  size_t key(int64_t t, int64_t c) const { return static_cast<size_t>(t * K_ + c); }
  size_t value(int64_t t, int64_t v) const { return static_cast<size_t>(t * V_ + v); }

  /// Uniform in [-amplitude, amplitude], one number per sample.
  void draw(Source source, int64_t index, float amplitude, Lanes& y) const {
    uint64_t bits = mixed(key_ + static_cast<uint64_t>(source) * 0x9e3779b97f4a7c15) +
                    static_cast<uint64_t>(chunk_number_) * 0xd1b54a32d192ed03 +
                    static_cast<uint64_t>(index) * 0x8cb92ba72f3d8dd7;
    for (int i = 0; i < kNoiseSamples; i += 4) {
      bits = mixed(bits);
      for (int j = 0; j < 4; ++j)
        y[i + j] = (static_cast<float>(bits >> (16 * j) & 0xffff) - 32767.5f) * (amplitude / 32767.5f);
    }
  }

  /// Of an operand that w has scaled.
  void draw_scaled(Source source, int64_t index, float amplitude, float w, Lanes& y) const {
    draw(source, index, amplitude, y);
    y += common_ * (alike(w, u_) * (amplitude / u_));
  }

  void visit(std::string_view output, int64_t first, int64_t rows, int64_t columns,
             const std::vector<Lanes>& noise) const {
    for (int64_t r = 0; r < rows; r += kBlockTokens) {
      const float* samples = reinterpret_cast<const float*>(noise.data() + r * columns);
      visit_({output, first + r, std::min(kBlockTokens, rows - r), columns, samples});
    }
  }

  void load(const Tensor& tensor, SampledState& S) const {
    std::vector<double> row(states());
    decode_run(tensor, (slice_.n * H_ + slice_.h) * K_ * V_, K_ * V_, row.data());
    std::copy(row.begin(), row.end(), S.value.begin());
  }

  /// The tokens of a chunk, and what decays between them and the chunk's ends.
  void read(int64_t chunk) {
    chunk_number_ = chunk, first_ = chunk * chunk_;
    tokens_ = std::min(chunk_, slice_.tokens - first_);
    const auto rows = [&](const Tensor& tensor, int64_t width, std::vector<float>& y) {
      std::vector<double> row(static_cast<size_t>(tokens_ * width));
      decode_rows(tensor, slice_.first_row + first_, tokens_, H_, slice_.h, width, row.data());
      y.assign(row.begin(), row.end());
    };
    rows(x_.q, K_, q_), rows(x_.k, K_, k_), rows(x_.v, V_, v_);
    if (backward_) rows(*d_o_, V_, do_);
    std::vector<double> g(q_.size()), a(q_.size());
    x_.read_decays(slice_, first_, tokens_, g.data(), a.data());
    a_.assign(a.begin(), a.end());
    into_.resize(a_.size()), after_.resize(a_.size());
    whole_.assign(static_cast<size_t>(K_), 1);
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        float& passed = whole_[static_cast<size_t>(c)];
        const float before = passed;
        passed *= a_[key(t, c)];
        into_[key(t, c)] = x_.exclusive() ? before : passed;
      }
    std::vector<float> later(static_cast<size_t>(K_), 1);
    for (int64_t t = tokens_; t-- > 0;)
      for (int64_t c = 0; c < K_; ++c) {
        after_[key(t, c)] = later[static_cast<size_t>(c)];
        later[static_cast<size_t>(c)] *= a_[key(t, c)];
      }
    if (!amplitudes_.scaled_in_score) return;
    key_noise_.resize(a_.size()), query_noise_.resize(a_.size());
    const float query = backward_ ? amplitudes_.query : amplitudes_.read;
    for (size_t i = 0; i < a_.size(); ++i) {
      draw(Source::key_in_score, static_cast<int64_t>(i), amplitudes_.key, key_noise_[i]);
      draw(Source::query_in_score, static_cast<int64_t>(i), query, query_noise_[i]);
    }
  }

  /// S over the chunk, and its noise: a rounding of each key that is scaled to the chunk's end.
  void advance(SampledState& S) const { write(S, Source::key, amplitudes_.key, k_, after_, v_, 1); }
  /// G likewise in reversed time.
  void retreat(SampledState& G) const {
    write(G, Source::query, amplitudes_.query, q_, into_, do_, scale_);
  }

  void write(SampledState& S, Source source, float amplitude, const std::vector<float>& keys,
             const std::vector<float>& weights, const std::vector<float>& values, float scale) const {
    for (int64_t c = 0; c < K_; ++c) {
      float* const to = S.value.data() + c * V_;
      Lanes* const noise = S.noise.data() + c * V_;
      const float decay = whole_[static_cast<size_t>(c)];
      for (int64_t v = 0; v < V_; ++v) to[v] *= decay, noise[v] *= decay;
      for (int64_t t = 0; t < tokens_; ++t) {
        const float x = scale * keys[key(t, c)] * weights[key(t, c)];
        if (x == 0) continue;
        const float* const row = values.data() + t * V_;
        for (int64_t v = 0; v < V_; ++v) to[v] += x * row[v];
        if (amplitude == 0) continue;
        Lanes d;
        draw_scaled(source, t * K_ + c, amplitude, weights[key(t, c)], d);
        d *= x;
        for (int64_t v = 0; v < V_; ++v) noise[v] += d * row[v];
      }
    }
  }

  /// What a copy of a state differs by: its noise, and its own rounding.
  std::vector<Lanes> copied(const SampledState& S, Source source, float amplitude) const {
    std::vector<Lanes> copy = S.noise;
    for (size_t i = 0; amplitude > 0 && i < copy.size(); ++i) {
      Lanes d;
      draw(source, static_cast<int64_t>(i), amplitude, d);
      copy[i] += d * S.value[i];
    }
    return copy;
  }

  /// y_t += sum_c x_tc (copy_c + rounding of x_tc times S_c): rows of columns that read a state by key channels.
  void read_state(const SampledState& S, const std::vector<Lanes>& copy, const std::vector<float>& reads,
                  const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const {
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        const float x = scale * reads[key(t, c)] * weights[key(t, c)];
        if (x == 0) continue;
        Lanes d = {};
        if (amplitudes_.read > 0)
          draw_scaled(Source::read, t * K_ + c, amplitudes_.read, weights[key(t, c)], d), d *= x;
        const Lanes* const from = copy.data() + c * V_;
        const float* const state = S.value.data() + c * V_;
        Lanes* const to = y.data() + t * V_;
        for (int64_t v = 0; v < V_; ++v) to[v] += x * from[v] + d * state[v];
      }
  }
  /// y_tc += weight_tc sum_v copy_cv x_tv, and returns that sum for each amplitude of copies.
  void contract_state(const std::vector<Lanes>& copy, const std::vector<float>& values,
                      const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const {
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        const float w = scale * weights[key(t, c)];
        if (w == 0) continue;
        const Lanes* const from = copy.data() + c * V_;
        const float* const row = values.data() + t * V_;
        Lanes sum = {};
        for (int64_t v = 0; v < V_; ++v) sum += from[v] * row[v];
        y[key(t, c)] += w * sum;
      }
  }

  /// Calls pair(t, j, weights) for every pair of tokens of the chunk whose terms cross decays, j <= t (j < t where the
  /// readout is exclusive), with the decay of each channel between them, and own(t) for a token's own term beside.
  template <typename Pair, typename Own>
  void for_each_pair(const Pair& pair, const Own& own) const {
    std::vector<float> weights(q_.size());
    for (int64_t t = 0; t < tokens_; ++t) {
      const float* const a = a_.data() + t * K_;
      const auto decay = [&] {
        for (int64_t j = 0; j < t; ++j)
          for (int64_t c = 0; c < K_; ++c) weights[key(j, c)] *= a[c];
        std::fill_n(weights.begin() + t * K_, K_, 1.0f);
      };
      if (!x_.exclusive()) decay();
      for (int64_t j = 0; j < t; ++j) pair(t, j, weights.data() + j * K_);
      if (x_.exclusive())
        own(t), decay();
      else
        pair(t, t, weights.data() + t * K_);
    }
  }

  /// The score scale q_t w k_j, and the noise of its scaled operands.
  float score(int64_t t, int64_t j, const float* w, Lanes& noise) const {
    const float *const q = q_.data() + t * K_, *const k = k_.data() + j * K_;
    float sum = 0;
    noise = Lanes{};
    for (int64_t c = 0; c < K_; ++c) sum += q[c] * w[c] * k[c];
    if (amplitudes_.scaled_in_score)
      for (int64_t c = 0; c < K_; ++c)
        noise += (q[c] * w[c] * k[c] * scale_) *
                 (query_noise_[key(t, c)] + key_noise_[key(j, c)] + common_ * (2 * alike(w[c], u_)));
    return sum * scale_;
  }
  float own_score(int64_t t) const {
    float sum = 0;
    for (int64_t c = 0; c < K_; ++c) sum += q_[key(t, c)] * bonus_[static_cast<size_t>(c)] * k_[key(t, c)];
    return sum * scale_;
  }
  void add_row(const Lanes& noise, const float* row, Lanes* y) const {
    for (int64_t v = 0; v < V_; ++v) y[v] += noise * row[v];
  }

  void outputs(const SampledState& S) const {
    std::vector<Lanes> o(v_.size());
    read_state(S, copied(S, Source::state_copy, amplitudes_.o), q_, into_, scale_, o);
    const auto add = [&](int64_t t, int64_t j, float score, Lanes noise) {
      Lanes d;
      draw(Source::score, t * tokens_ + j, amplitudes_.o * score, d);
      noise += d;
      add_row(noise, v_.data() + j * V_, o.data() + t * V_);
    };
    for_each_pair(
        [&](int64_t t, int64_t j, const float* w) {
          Lanes noise;
          const float made = score(t, j, w, noise);
          add(t, j, made, noise);
        },
        [&](int64_t t) { add(t, t, own_score(t), Lanes{}); });
    visit("o", first_, tokens_, V_, o);
  }

  /// What a chunk's gradients are summed up in.
  struct Gradients {
    std::vector<Lanes> dq, dk, dv, dg;  ///< dg: of token t what t has more than t - 1
    Gradients(size_t keys, size_t values, size_t gates) : dq(keys), dk(keys), dv(values), dg(gates) {}
  };

  void gradients(const SampledState& S, const SampledState& G) const {
    Gradients y(q_.size(), v_.size(), q_.size() + static_cast<size_t>(K_));
    contract_state(copied(S, Source::state_copy, amplitudes_.dq), do_, into_, scale_, y.dq);
    contract_state(copied(G, Source::adjoint_copy, amplitudes_.dk), v_, after_, 1, y.dk);
    read_state(G, copied(G, Source::adjoint_copy, amplitudes_.dv), k_, after_, 1, y.dv);
    if (x_.gate) gates_across(S, G, y.dg);
    for_each_pair([&](int64_t t, int64_t j, const float* w) { pair_gradients(t, j, w, y); },
                  [&](int64_t t) {
                    Lanes d;
                    draw(Source::score, t * tokens_ + t, amplitudes_.dv * own_score(t), d);
                    add_row(d, do_.data() + t * V_, y.dv.data() + t * V_);
                  });
    visit("d" + std::string(x_.form.q), first_, tokens_, K_, y.dq);
    visit("d" + std::string(x_.form.k), first_, tokens_, K_, y.dk);
    visit("d" + std::string(x_.form.v), first_, tokens_, V_, y.dv);
    if (x_.gate) visit_gates(y.dg);
  }

  void pair_gradients(int64_t t, int64_t j, const float* w, Gradients& y) const {
    Lanes scores, rounding;
    const float A = score(t, j, w, scores);
    draw(Source::score, t * tokens_ + j, 1, rounding);
    add_row(scores + rounding * (amplitudes_.dv * A), do_.data() + t * V_, y.dv.data() + j * V_);
    float M = 0;
    for (int64_t v = 0; v < V_; ++v) M += do_[value(t, v)] * v_[value(j, v)];
    M *= scale_;
    const Lanes of_dq = rounding * (amplitudes_.dq * M), of_dk = rounding * (amplitudes_.dk * M),
                of_dg = rounding * (amplitudes_.dg * M);
    const bool crossed = x_.gate && (x_.exclusive() ? t - 1 > j : t > j);
    const int64_t last = x_.exclusive() ? t - 1 : t;  // the last token whose decay the pair crosses
    for (int64_t c = 0; c < K_; ++c) {
      const float q = q_[key(t, c)] * w[c], k = k_[key(j, c)] * w[c];
      Lanes dq = of_dq, dk = of_dk, dg = of_dg;
      if (amplitudes_.scaled_in_score) {
        const Lanes common = common_ * alike(w[c], u_), of_key = key_noise_[key(j, c)] + common,
                    of_query = query_noise_[key(t, c)] + common;
        dq += M * of_key, dk += M * of_query, dg += M * (of_key + of_query);
      }
      y.dq[key(t, c)] += dq * k, y.dk[key(j, c)] += dk * q;
      if (!crossed) continue;
      const Lanes term = dg * (q * k_[key(j, c)]);
      y.dg[key(j + 1, c)] += term, y.dg[key(last + 1, c)] -= term;
    }
  }

  /// Terms of dg that cross a chunk's end: from a state before it to a token of it, from a token of it to what is
  /// after it, and over the whole of it.
  void gates_across(const SampledState& S, const SampledState& G, std::vector<Lanes>& dg) const {
    const float both = amplitudes_.dg / std::sqrt(2.0f);
    const std::vector<Lanes> S_copy = copied(S, Source::state_copy, amplitudes_.dg),
                             G_copy = copied(G, Source::adjoint_copy, amplitudes_.dg),
                             S_of_both = copied(S, Source::state_copy, both),
                             G_of_both = copied(G, Source::adjoint_copy, both);
    std::vector<Lanes> reads(q_.size()), writes(q_.size());
    contract_state(S_copy, do_, into_, scale_, reads);
    contract_state(G_copy, v_, after_, 1, writes);
    for (int64_t c = 0; c < K_; ++c) {
      Lanes over = {};
      for (int64_t v = 0; v < V_; ++v) {
        const auto i = static_cast<size_t>(c * V_ + v);
        over += S_of_both[i] * G.value[i] + G_of_both[i] * S.value[i];
      }
      dg[key(0, c)] += over * whole_[static_cast<size_t>(c)];
      for (int64_t t = 0; t < tokens_; ++t) {
        const Lanes read = reads[key(t, c)] * q_[key(t, c)], written = writes[key(t, c)] * k_[key(t, c)];
        const int64_t end = x_.exclusive() ? t : t + 1;
        dg[key(0, c)] += read, dg[key(end, c)] -= read;
        dg[key(t + 1, c)] += written;
      }
    }
  }

  void visit_gates(std::vector<Lanes>& dg) const {
    for (size_t i = static_cast<size_t>(K_); i < dg.size(); ++i) dg[i] += dg[i - static_cast<size_t>(K_)];
    const std::string name = "d" + std::string(x_.form.gate);
    if (x_.gate_columns() == K_) return visit(name, first_, tokens_, K_, dg);
    std::vector<Lanes> of_tokens(static_cast<size_t>(tokens_));
    for (size_t i = 0; i < q_.size(); ++i) of_tokens[i / static_cast<size_t>(K_)] += dg[i];
    visit(name, first_, tokens_, 1, of_tokens);
  }

  const GatedTensors x_;
  const Slice slice_;
  const NoiseVisit& visit_;
  const bool backward_;
  const int64_t K_, V_, H_;
  const float scale_;
  const uint64_t key_;
  Amplitudes amplitudes_;
  float u_ = 1;
  Lanes common_ = {};
  int64_t chunk_ = 1;
  const Tensor *d_o_ = nullptr, *dS_ = nullptr;
  std::vector<float> bonus_;
  // Of the chunk that is being looked at:
  int64_t chunk_number_ = 0, first_ = 0, tokens_ = 0;
  std::vector<float> q_, k_, v_, do_, a_;
  std::vector<float> into_, after_, whole_;  ///< decay from the chunk's start to a read, from a write to its end, all
  std::vector<Lanes> key_noise_, query_noise_;
};

}  // namespace

void gated_forward_noise(const Problem& p, const GatedForm& form, const Slice& s, const NoiseVisit& visit) {
  GatedNoise(p, form, s, false, visit).run();
}

void gated_adjoint_noise(const Problem& p, const GatedForm& form, const Slice& s, const NoiseVisit& visit) {
  GatedNoise(p, form, s, true, visit).run();
}

}  // namespace assay
