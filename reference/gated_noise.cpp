#include "reference/gated_noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace assay {
namespace {

/// One number per sample.
using Lanes = float __attribute__((vector_size(sizeof(float) * kNoiseSamples)));

/// What is drawn: one family of roundings each.
enum class Source : uint64_t {
  key,
  query,
  key_in_score,
  query_in_score,
  read,
  score,
  state_copy,
  adjoint_copy
};

/// A term that has decayed by more is less than 2^-57 of what it was.
constexpr double kNats = 40;

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Standard deviations as multiples of a uniform draw from [-1, 1]: u sqrt(number of roundings).
struct Amplitudes {
  float key = 0, query = 0;                     ///< scaled operands on their way into S and G
  float read = 0;                               ///< the scaled operand that reads a state for o or dv
  bool scaled_in_score = false;                 ///< scores are made from scaled operands too
  float o = 0, dq = 0, dk = 0, dv = 0, dg = 0;  ///< scores and copies of that output
};

/// What no sampled rounding covers may add up to on one path, relative to it.
double forward_rest(const Arithmetic& a, double chunks, bool decays) {
  const double scaled = a.write_decayed + a.write_scaled + a.readout_decayed + a.readout_scaled;
  const double ends = a.write + a.readout + (decays ? scaled : 0) + a.bonus;
  return ends + chunks * (a.boundary + (decays ? a.crossing : 0)) + (decays ? kNats * a.decay_per_nat : 0);
}
double adjoint_rest(const AdjointArithmetic& a, double chunks, bool decays) {
  return forward_rest(a.state, chunks, decays) + forward_rest(a.adjoint, chunks, decays) + a.value_readout +
         a.gate_readout + a.bonus +
         (decays ? a.value_readout_decayed + a.value_readout_scaled + a.gate_readout_decayed : 0);
}

/// The largest power of two that is not above |x|: the spacing of a format there is 2u times it.
float binade(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7f800000u);
}

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
  y.key = amplitude(u, count(a.write, a.write_decayed + a.write_scaled));
  y.read = amplitude(u, count(0, a.readout_decayed + a.readout_scaled));
  y.scaled_in_score = y.read > 0;
  y.o = amplitude(u, roundings_in(a.readout, u));
  return y;
}

Amplitudes adjoint_amplitudes(const AdjointArithmetic& a, double u, bool decays) {
  const auto count = [&](double always, double decayed) {
    return roundings_in(always, u) + (decays ? roundings_in(decayed, u) : 0);
  };
  Amplitudes y;
  y.key = amplitude(u, count(a.state.write, a.state.write_decayed + a.state.write_scaled));
  y.query = amplitude(u, count(a.adjoint.write, a.adjoint.write_decayed + a.adjoint.write_scaled));
  y.read = amplitude(u, count(0, a.value_readout_decayed + a.value_readout_scaled));
  y.scaled_in_score = y.read > 0;
  y.dq = amplitude(u, count(a.state.readout, a.state.readout_decayed + a.state.readout_scaled));
  y.dk = amplitude(u, count(a.adjoint.readout, a.adjoint.readout_decayed + a.adjoint.readout_scaled));
  y.dv = amplitude(u, roundings_in(a.value_readout, u));
  y.dg = amplitude(u, count(a.gate_readout, a.gate_readout_decayed));
  return y;
}

/// One output of a chunk: what reaches no other chunk, what does, and what is common to all.
struct SampledRows {
  std::vector<Lanes> near, far;
  std::vector<float> common;
  std::vector<float> squares;  ///< of the terms

  explicit SampledRows(size_t size) : near(size), far(size), common(size), squares(size) {}
};

/// A state and how each sample's differs from it.
struct SampledState {
  std::vector<float> value;
  std::vector<Lanes> noise;
  std::vector<float> squares;  ///< of the terms

  explicit SampledState(size_t size) : value(size), noise(size), squares(size) {}
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
    for (const double bonus : x_.read_bonus(s.h)) bonus_.push_back(static_cast<float>(bonus));
    const double chunks = std::ceil(static_cast<double>(s.tokens) / static_cast<double>(chunk_));
    rest_ = backward ? adjoint_rest(without_roundings(p.adjoint, u), chunks, x_.decays())
                     : forward_rest(without_roundings(p.arithmetic, u), chunks, x_.decays());
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
      visit("final_state", 0, K_, V_, {}, S.noise, S.squares);
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
    if (x_.S0) visit("d" + std::string(x_.form.state), 0, K_, V_, {}, G.noise, G.squares);
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

  void visit(std::string_view output, int64_t first, int64_t rows, int64_t columns,
             const std::vector<Lanes>& near, const std::vector<Lanes>& far,
             const std::vector<float>& squares) const {
    const auto samples = [&](const std::vector<Lanes>& noise, int64_t r) {
      return noise.empty() ? nullptr : reinterpret_cast<const float*>(noise.data() + r * columns);
    };
    for (int64_t r = 0; r < rows; r += kNoiseBlock)
      visit_({output, first + r, std::min(kNoiseBlock, rows - r), columns, samples(near, r), samples(far, r),
              squares.data() + r * columns, rest_});
  }
  /// Rows of the chunk. Where chunks and blocks do not fit, all of it may reach other blocks.
  void visit(std::string_view output, int64_t columns, SampledRows& y) const {
    for (size_t i = 0; i < y.far.size(); ++i) y.far[i] += common_ * y.common[i];
    if (kNoiseBlock % chunk_ == 0 && y.near.size() <= static_cast<size_t>(kNoiseBlock * columns))
      return visit(output, first_, tokens_, columns, y.near, y.far, y.squares);
    for (size_t i = 0; i < y.far.size(); ++i) y.far[i] += y.near[i];
    visit(output, first_, tokens_, columns, {}, y.far, y.squares);
  }

  void load(const Tensor& tensor, SampledState& S) const {
    std::vector<double> row(states());
    decode_run(tensor, (slice_.n * H_ + slice_.h) * K_ * V_, K_ * V_, row.data());
    std::copy(row.begin(), row.end(), S.value.begin());
    for (size_t i = 0; i < row.size(); ++i) S.squares[i] = S.value[i] * S.value[i];
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
    // What a tile makes of its operands is not known here: their spacing is at most that of a relative u.
    const float query = backward_ ? amplitudes_.query : amplitudes_.read;
    for (size_t i = 0; i < a_.size(); ++i) {
      const float size = scaled_size(1, 1, static_cast<int64_t>(i) % K_);
      draw(Source::key_in_score, static_cast<int64_t>(i), amplitudes_.key * size, key_noise_[i]);
      draw(Source::query_in_score, static_cast<int64_t>(i), query * size, query_noise_[i]);
    }
  }

  /// What a rounding of an operand x is relative to, in units of u: at most `size`, and at most what x has
  /// been scaled by anywhere in its chunk, as what it was before has the format's digits.
  float scaled_size(float x, float size, int64_t c) const {
    return std::fmin(std::fabs(size), std::fabs(x) * (1 - whole_[static_cast<size_t>(c)]) / u_);
  }

  /// S over the chunk, and its noise: a rounding of each key that is scaled to the chunk's end.
  void advance(SampledState& S) const { write(S, Source::key, amplitudes_.key, k_, after_, v_, 1); }
  /// G likewise in reversed time.
  void retreat(SampledState& G) const { write(G, Source::query, amplitudes_.query, q_, into_, do_, scale_); }

  void write(SampledState& S, Source source, float amplitude, const std::vector<float>& keys,
             const std::vector<float>& weights, const std::vector<float>& values, float scale) const {
    for (int64_t c = 0; c < K_; ++c) {
      float* const to = S.value.data() + c * V_;
      Lanes* const noise = S.noise.data() + c * V_;
      const float decay = whole_[static_cast<size_t>(c)];
      float* const squares = S.squares.data() + c * V_;
      for (int64_t v = 0; v < V_; ++v) to[v] *= decay, noise[v] *= decay, squares[v] *= decay * decay;
      for (int64_t t = 0; t < tokens_; ++t) {
        const float x = scale * keys[key(t, c)] * weights[key(t, c)];
        if (x == 0) continue;
        const float* const row = values.data() + t * V_;
        for (int64_t v = 0; v < V_; ++v) to[v] += x * row[v], squares[v] += x * x * row[v] * row[v];
        if (amplitude == 0) continue;
        const float w = weights[key(t, c)], size = scaled_size(x, scale * binade(keys[key(t, c)] * w), c);
        Lanes d;
        draw(source, t * K_ + c, amplitude * size, d);
        d += common_ * (alike(w, u_) * (amplitude / u_) * x);
        for (int64_t v = 0; v < V_; ++v) noise[v] += d * row[v];
      }
    }
  }

  /// What copying a state rounds.
  std::vector<Lanes> copied(const SampledState& S, Source source, float amplitude) const {
    std::vector<Lanes> copy(S.noise.size());
    for (size_t i = 0; amplitude > 0 && i < copy.size(); ++i)
      draw(source, static_cast<int64_t>(i), amplitude * binade(S.value[i]), copy[i]);
    return copy;
  }

  /// Rows of columns that read a state by key channels: y_t = sum_c x_tc S_c, x rounded, from a rounded
  /// copy.
  void read_state(const SampledState& S, const std::vector<Lanes>& copy, const std::vector<float>& reads,
                  const std::vector<float>& weights, float scale, SampledRows& y) const {
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        const float w = weights[key(t, c)], x = scale * reads[key(t, c)] * w;
        if (x == 0) continue;
        const float* const state = S.value.data() + c * V_;
        Lanes* const near = y.near.data() + t * V_;
        add_scaled(near, x, copy.data() + c * V_, V_);
        for (int64_t v = 0; v < V_; ++v)
          y.squares[value(t, v)] += x * x * S.squares[static_cast<size_t>(c * V_ + v)];
        if (amplitudes_.key > 0 || amplitudes_.query > 0)
          add_scaled(y.far.data() + t * V_, x, S.noise.data() + c * V_, V_);
        if (amplitudes_.read == 0) continue;
        Lanes d;
        const float size = scaled_size(x, scale * binade(reads[key(t, c)] * w), c);
        draw(Source::read, t * K_ + c, amplitudes_.read * size, d);
        const float common = alike(w, u_) * (amplitudes_.read / u_) * x;
        for (int64_t v = 0; v < V_; ++v) near[v] += d * state[v], y.common[value(t, v)] += common * state[v];
      }
  }
  static void add_scaled(Lanes* y, float x, const Lanes* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) y[i] += x * from[i];
  }
  /// The squares of the terms that contract_state adds up.
  void contract_squares(const SampledState& S, const std::vector<float>& values,
                        const std::vector<float>& weights, float scale, std::vector<float>& y) const {
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        const float w = scale * weights[key(t, c)], *const row = values.data() + t * V_;
        float sum = 0;
        for (int64_t v = 0; v < V_; ++v) sum += S.squares[static_cast<size_t>(c * V_ + v)] * row[v] * row[v];
        y[key(t, c)] += w * w * sum;
      }
  }
  /// y_tc += weight_tc sum_v state_cv x_tv.
  void contract_state(const std::vector<Lanes>& state, const std::vector<float>& values,
                      const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const {
    for (int64_t t = 0; t < tokens_; ++t)
      for (int64_t c = 0; c < K_; ++c) {
        const float w = scale * weights[key(t, c)];
        if (w == 0) continue;
        const Lanes* const from = state.data() + c * V_;
        const float* const row = values.data() + t * V_;
        Lanes sum = {};
        for (int64_t v = 0; v < V_; ++v) sum += from[v] * row[v];
        y[key(t, c)] += w * sum;
      }
  }

  /// Calls pair(t, j, weights) for every pair of tokens of the chunk whose terms cross decays, j <= t (j < t
  /// where the readout is exclusive), with the decay of each channel between them, and own(t) for a token's
  /// own term beside.
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

  struct Score {
    float value = 0, common = 0,
          squares = 0;  ///< what of the noise is common to all; the squares of its terms
    Lanes noise = {};   ///< of its scaled operands
  };
  /// The score scale q_t w k_j.
  void score(int64_t t, int64_t j, const float* w, Score& y) const {
    const float *const q = q_.data() + t * K_, *const k = k_.data() + j * K_;
    for (int64_t c = 0; c < K_; ++c) {
      const float term = q[c] * w[c] * k[c] * scale_;
      y.value += term, y.squares += term * term;
    }
    if (amplitudes_.scaled_in_score)
      for (int64_t c = 0; c < K_; ++c) {
        const float term = q[c] * w[c] * k[c] * scale_;
        y.noise += term * (query_noise_[key(t, c)] + key_noise_[key(j, c)]);
        y.common += term * 2 * alike(w[c], u_);
      }
  }
  void own_score(int64_t t, Score& y) const {
    for (int64_t c = 0; c < K_; ++c) {
      const float term = q_[key(t, c)] * bonus_[static_cast<size_t>(c)] * k_[key(t, c)] * scale_;
      y.value += term, y.squares += term * term;
    }
  }
  /// Row t of y gets a score's noise, with the score's own rounding, times a row of columns.
  void add_row(const Score& score, const Lanes& rounding, float amplitude, const float* row, int64_t t,
               SampledRows& y) const {
    const Lanes noise = score.noise + rounding * (amplitude * binade(score.value));
    Lanes* const near = y.near.data() + t * V_;
    float *const common = y.common.data() + t * V_, *const squares = y.squares.data() + t * V_;
    for (int64_t v = 0; v < V_; ++v) near[v] += noise * row[v];
    for (int64_t v = 0; v < V_; ++v)
      common[v] += score.common * row[v], squares[v] += score.squares * row[v] * row[v];
  }

  void outputs(const SampledState& S) const {
    SampledRows o(v_.size());
    read_state(S, copied(S, Source::state_copy, amplitudes_.o), q_, into_, scale_, o);
    const auto add = [&](int64_t t, int64_t j, const Score& made) {
      Lanes rounding;
      draw(Source::score, t * tokens_ + j, 1, rounding);
      add_row(made, rounding, amplitudes_.o, v_.data() + j * V_, t, o);
    };
    for_each_pair(
        [&](int64_t t, int64_t j, const float* w) {
          Score made;
          score(t, j, w, made);
          add(t, j, made);
        },
        [&](int64_t t) {
          Score made;
          own_score(t, made);
          add(t, t, made);
        });
    visit("o", V_, o);
  }

  /// What a chunk's gradients are summed up in.
  struct Gradients {
    SampledRows dq, dk, dv, dg;  ///< dg: of token t what t has more than t - 1
    Gradients(size_t keys, size_t values, size_t gates) : dq(keys), dk(keys), dv(values), dg(gates) {}
  };

  void gradients(const SampledState& S, const SampledState& G) const {
    Gradients y(q_.size(), v_.size(), q_.size() + static_cast<size_t>(K_));
    contract_state(copied(S, Source::state_copy, amplitudes_.dq), do_, into_, scale_, y.dq.near);
    contract_state(copied(G, Source::adjoint_copy, amplitudes_.dk), v_, after_, 1, y.dk.near);
    if (amplitudes_.key > 0) contract_state(S.noise, do_, into_, scale_, y.dq.far);
    if (amplitudes_.query > 0) contract_state(G.noise, v_, after_, 1, y.dk.far);
    read_state(G, copied(G, Source::adjoint_copy, amplitudes_.dv), k_, after_, 1, y.dv);
    contract_squares(S, do_, into_, scale_, y.dq.squares);
    contract_squares(G, v_, after_, 1, y.dk.squares);
    if (x_.gate) gates_across(S, G, y);
    for_each_pair([&](int64_t t, int64_t j, const float* w) { pair_gradients(t, j, w, y); },
                  [&](int64_t t) { own_gradients(t, y); });
    visit("d" + std::string(x_.form.q), K_, y.dq);
    visit("d" + std::string(x_.form.k), K_, y.dk);
    visit("d" + std::string(x_.form.v), V_, y.dv);
    if (x_.gate) visit_gates(y.dg);
  }

  /// scale do_t . v_j.
  float value_score(int64_t t, int64_t j, float& squares) const {
    float sum = 0;
    squares = 0;
    for (int64_t v = 0; v < V_; ++v) {
      const float term = do_[value(t, v)] * v_[value(j, v)] * scale_;
      sum += term, squares += term * term;
    }
    return sum;
  }

  /// The terms with the bonus: in dq and dk they are made in fp32.
  void own_gradients(int64_t t, Gradients& y) const {
    Score made;
    own_score(t, made);
    Lanes rounding;
    draw(Source::score, t * tokens_ + t, 1, rounding);
    add_row(made, rounding, amplitudes_.dv, do_.data() + t * V_, t, y.dv);
    float squares;
    value_score(t, t, squares);
    for (int64_t c = 0; c < K_; ++c) {
      const float u = bonus_[static_cast<size_t>(c)], q = u * q_[key(t, c)], k = u * k_[key(t, c)];
      y.dq.squares[key(t, c)] += squares * k * k, y.dk.squares[key(t, c)] += squares * q * q;
    }
  }

  void pair_gradients(int64_t t, int64_t j, const float* w, Gradients& y) const {
    Score made;
    score(t, j, w, made);
    Lanes rounding;
    draw(Source::score, t * tokens_ + j, 1, rounding);
    add_row(made, rounding, amplitudes_.dv, do_.data() + t * V_, j, y.dv);
    float squares;
    const float M = value_score(t, j, squares);
    const float size = binade(M);
    const Lanes of_dq = rounding * (amplitudes_.dq * size), of_dk = rounding * (amplitudes_.dk * size),
                of_dg = rounding * (amplitudes_.dg * size);
    const int64_t last = x_.exclusive() ? t - 1 : t;  // the last token whose decay the pair crosses
    const bool crossed = x_.gate && last > j;
    for (int64_t c = 0; c < K_; ++c) {
      const size_t of_t = key(t, c), of_j = key(j, c);
      const float q = q_[of_t] * w[c], k = k_[of_j] * w[c], term = q * k_[of_j];
      Lanes dq = of_dq, dk = of_dk, dg = of_dg;
      if (amplitudes_.scaled_in_score) {
        const Lanes &of_key = key_noise_[of_j], &of_query = query_noise_[of_t];
        const float same = M * alike(w[c], u_);
        dq += M * of_key, dk += M * of_query, dg += M * (of_key + of_query);
        y.dq.common[of_t] += same * k, y.dk.common[of_j] += same * q;
        if (crossed)
          y.dg.common[key(j + 1, c)] += 2 * same * term, y.dg.common[key(last + 1, c)] -= 2 * same * term;
      }
      y.dq.near[of_t] += dq * k, y.dk.near[of_j] += dk * q;
      y.dq.squares[of_t] += squares * k * k, y.dk.squares[of_j] += squares * q * q;
      if (!crossed) continue;
      y.dg.squares[key(j + 1, c)] += squares * term * term;
      dg *= term;
      y.dg.near[key(j + 1, c)] += dg, y.dg.near[key(last + 1, c)] -= dg;
    }
  }

  /// Terms of dg that cross a chunk's end: from a state before it to a token of it, from a token of it to
  /// what is after it, and over the whole of it.
  void gates_across(const SampledState& S, const SampledState& G, Gradients& y) const {
    if (amplitudes_.dg > 0)
      across(S, G, copied(S, Source::state_copy, amplitudes_.dg),
             copied(G, Source::adjoint_copy, amplitudes_.dg), std::sqrt(0.5f), y.dg.near);
    if (amplitudes_.key > 0 || amplitudes_.query > 0) across(S, G, S.noise, G.noise, 1, y.dg.far);
    // Here y.dq and y.dk hold the squares of what crosses the chunk's ends. Sums that end inside are left
    // in: more.
    for (int64_t c = 0; c < K_; ++c) {
      float over = 0, reads = 0;
      for (int64_t v = 0; v < V_; ++v)
        over += S.squares[static_cast<size_t>(c * V_ + v)] * G.squares[static_cast<size_t>(c * V_ + v)];
      const float whole = whole_[static_cast<size_t>(c)];
      for (int64_t t = 0; t < tokens_; ++t) {
        const float q = q_[key(t, c)], k = k_[key(t, c)];
        reads += y.dq.squares[key(t, c)] * q * q;
        y.dg.squares[key(t + 1, c)] += y.dk.squares[key(t, c)] * k * k;
      }
      y.dg.squares[key(0, c)] += over * whole * whole + reads;
    }
  }
  /// Where the states differ by these; both at once where a term takes one of each.
  void across(const SampledState& S, const SampledState& G, const std::vector<Lanes>& of_S,
              const std::vector<Lanes>& of_G, float both, std::vector<Lanes>& dg) const {
    std::vector<Lanes> reads(q_.size()), writes(q_.size());
    contract_state(of_S, do_, into_, scale_, reads);
    contract_state(of_G, v_, after_, 1, writes);
    for (int64_t c = 0; c < K_; ++c) {
      Lanes over = {};
      for (int64_t v = 0; v < V_; ++v) {
        const auto i = static_cast<size_t>(c * V_ + v);
        over += of_S[i] * G.value[i] + of_G[i] * S.value[i];
      }
      dg[key(0, c)] += over * (both * whole_[static_cast<size_t>(c)]);
      for (int64_t t = 0; t < tokens_; ++t) {
        const Lanes read = reads[key(t, c)] * q_[key(t, c)], written = writes[key(t, c)] * k_[key(t, c)];
        const int64_t end = x_.exclusive() ? t : t + 1;
        dg[key(0, c)] += read, dg[key(end, c)] -= read;
        dg[key(t + 1, c)] += written;
      }
    }
  }

  void visit_gates(SampledRows& dg) const {
    const auto K = static_cast<size_t>(K_);
    for (size_t i = K; i < dg.near.size(); ++i)
      dg.near[i] += dg.near[i - K], dg.far[i] += dg.far[i - K], dg.common[i] += dg.common[i - K],
          dg.squares[i] += dg.squares[i - K];
    const std::string name = "d" + std::string(x_.form.gate);
    const bool of_channels = x_.gate_columns() == K_;
    SampledRows y(of_channels ? q_.size() : static_cast<size_t>(tokens_));
    for (size_t i = 0; i < q_.size(); ++i) {
      const size_t to = of_channels ? i : i / K;
      y.near[to] += dg.near[i], y.far[to] += dg.far[i], y.common[to] += dg.common[i];
      y.squares[to] += dg.squares[i];
    }
    visit(name, of_channels ? K_ : 1, y);
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
  double rest_ = 0;
  Lanes common_ = {};
  int64_t chunk_ = 1;
  const Tensor *d_o_ = nullptr, *dS_ = nullptr;
  std::vector<float> bonus_;
  // Of the chunk that is being looked at:
  int64_t chunk_number_ = 0, first_ = 0, tokens_ = 0;
  std::vector<float> q_, k_, v_, do_, a_;
  std::vector<float> into_, after_,
      whole_;  ///< decay from the chunk's start to a read, from a write to its end, all
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
