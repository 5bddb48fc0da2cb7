#include "reference/gated_noise.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "reference/kept_state.h"
#include "reference/noise_amplitudes.h"
#include "reference/sampled_chunk.h"

namespace assay {
namespace {

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
        chunk_(s, p.sizes.K, operand_roundoff(x_.k.dtype)) {
    const double u = operand_roundoff(x_.k.dtype);
    split_ = u >= 1;
    amplitudes_ = backward ? noise_amplitudes(p.adjoint, u, x_.decays())
                           : noise_amplitudes(p.arithmetic, u, x_.decays());
    const int64_t chunk = backward ? p.adjoint.state.chunk : p.arithmetic.chunk;
    length_ = chunk > 0 ? chunk : std::max<int64_t>(s.tokens, 1);
    if (backward) {
      d_o_ = &require_input(p, "do", p.sizes.B * p.sizes.T * H_ * V_);
      const int64_t sequences =
          p.cu_seqlens.empty() ? p.sizes.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
      dS_ = find_input(p, "dfinal_state", sequences * H_ * K_ * V_);
    }
    for (const double bonus : x_.read_bonus(s.h)) bonus_.push_back(static_cast<float>(bonus));
    const double chunks = chunks_crossed();
    rests_ = backward ? noise_rests(p.adjoint, u, chunks, x_.decays())
                      : noise_rests(p.arithmetic, u, chunks, x_.decays());
  }

  void run() {
    const int64_t chunks = (slice_.tokens + length_ - 1) / length_;
    SampledState S(K_, V_);
    if (x_.S0) S.load(decoded_state(*x_.S0));
    std::vector<SampledState> starts;
    const bool keeps = !backward_ && !split_;
    const auto kept = keeps ? kept_directions(chunks) : std::vector<Direction>(static_cast<size_t>(chunks));
    for (int64_t i = 0; i < chunks; ++i) {
      read(i);
      if (!backward_) outputs(S, kept[static_cast<size_t>(i)]);
      if (backward_) starts.push_back(S);
      advance(S);
    }
    if (!backward_) {
      visitor(rests_.o).state("final_state", K_, S, true);
      return;
    }
    SampledState G(K_, V_);
    if (dS_) G.load(decoded_state(*dS_));
    while (!starts.empty()) {
      read(static_cast<int64_t>(starts.size()) - 1);
      gradients(starts.back(), G);
      retreat(G);
      starts.pop_back();
    }
    if (x_.S0) visitor(rests_.dk).state("d" + std::string(x_.form.state), K_, G, true);
  }

 private:
  size_t key(int64_t t, int64_t c) const { return static_cast<size_t>(t * K_ + c); }
  size_t value(int64_t t, int64_t v) const { return static_cast<size_t>(t * V_ + v); }

  /// How many chunks' ends what a state holds has crossed, at most: what came before has decayed.
  double chunks_crossed() const {
    std::vector<double> crossed(static_cast<size_t>(K_)), whole(crossed.size());
    double most = 0;
    for (int64_t first = 0; first < slice_.tokens; first += length_) {
      const int64_t tokens = std::min(length_, slice_.tokens - first);
      std::vector<double> g(static_cast<size_t>(tokens * K_)), a(g.size());
      x_.read_decays(slice_, first, tokens, g.data(), a.data());
      std::fill(whole.begin(), whole.end(), 1);
      for (size_t i = 0; i < a.size(); ++i) whole[i % whole.size()] *= a[i];
      for (size_t c = 0; c < crossed.size(); ++c)
        crossed[c] = 1 + whole[c] * crossed[c], most = std::fmax(most, crossed[c]);
    }
    return most;
  }

  NoiseVisitor visitor(double rest) const { return {visit_, length_, rest}; }

  std::vector<double> decoded_state(const Tensor& tensor) const {
    std::vector<double> row(static_cast<size_t>(K_ * V_));
    decode_run(tensor, (slice_.n * H_ + slice_.h) * K_ * V_, K_ * V_, row.data());
    return row;
  }

  /// The tokens of a chunk, and what decays between them and the chunk's ends.
  void read(int64_t chunk) {
    first_ = chunk * length_;
    tokens_ = std::min(length_, slice_.tokens - first_);
    const auto rows = [&](const Tensor& tensor, int64_t width, std::vector<float>& y) {
      std::vector<double> row(static_cast<size_t>(tokens_ * width));
      decode_rows(tensor, slice_.first_row + first_, tokens_, H_, slice_.h, width, row.data());
      y.assign(row.begin(), row.end());
    };
    rows(x_.q, K_, q_), rows(x_.k, K_, k_), rows(x_.v, V_, v_);
    if (backward_) rows(*d_o_, V_, do_);
    std::vector<double> g(q_.size()), a(q_.size());
    x_.read_decays(slice_, first_, tokens_, g.data(), a.data());
    chunk_.begin(chunk, tokens_, a, x_.exclusive());
    if (!amplitudes_.scaled_in_score) return;
    key_noise_ = chunk_.in_scores(NoiseSource::key_in_score, amplitudes_.key);
    query_noise_ =
        chunk_.in_scores(NoiseSource::query_in_score, backward_ ? amplitudes_.query : amplitudes_.read);
  }

  /// S over the chunk, and its noise: a rounding of each key that is scaled to the chunk's end.
  void advance(SampledState& S) const {
    chunk_.write(S, keys(), chunk_.after(), v_, 1);
    if (amplitudes_.S_end > 0) chunk_.round(S, NoiseSource::state_end, amplitudes_.S_end);
  }
  /// G likewise in reversed time.
  void retreat(SampledState& G) const {
    const ChunkOperand queries{
        .x = q_, .source = NoiseSource::query, .amplitude = amplitudes_.query, .wide = split_};
    chunk_.write(G, queries, chunk_.into(), do_, scale_);
    if (amplitudes_.G_end > 0) chunk_.round(G, NoiseSource::adjoint_end, amplitudes_.G_end);
  }
  bool noisy_S() const { return amplitudes_.key > 0 || amplitudes_.S_end > 0; }
  bool noisy_G() const { return amplitudes_.query > 0 || amplitudes_.G_end > 0; }

  using Score = SampledScore;
  /// The score scale q_t w k_j.
  Score score(int64_t t, int64_t j, const float* w) const {
    Score y{.K = K_, .q = q_.data() + t * K_, .k = k_.data() + j * K_, .w = w};
    y.scale = scale_, y.u = chunk_.u();
    if (amplitudes_.scaled_in_score)
      y.query_noise = query_noise_.data() + t * K_, y.key_noise = key_noise_.data() + j * K_;
    sampled_loops().score(y);
    return y;
  }
  /// What a score's rounding is relative to: of split operands also sums on the way to it.
  float score_size(float value, float squares) const {
    return split_ ? std::sqrt(value * value + squares) : binade(value);
  }
  Score own_score(int64_t t) const {
    Score y;
    for (int64_t c = 0; c < K_; ++c) {
      const float term = q_[key(t, c)] * bonus_[static_cast<size_t>(c)] * k_[key(t, c)] * scale_;
      y.value += term, y.squares += term * term;
    }
    return y;
  }

  /// What the scores of one token make of the rows that they are multiplied with.
  class ScoredRows {
   public:
    explicit ScoredRows(const GatedNoise& of, float amplitude)
        : of_(of), amplitude_(amplitude), noise_(static_cast<size_t>(of.tokens_)) {
      common_.resize(noise_.size()), squares_.resize(noise_.size());
    }
    /// With the score's own rounding.
    void set(int64_t j, const Score& score, const Lanes& rounding) {
      const auto i = static_cast<size_t>(j);
      noise_[i] = score.noise + rounding * (amplitude_ * of_.score_size(score.value, score.squares));
      common_[i] = score.common, squares_[i] = score.squares;
    }
    /// Row t of y gets those of tokens 0 .. t times their rows.
    void add_to_row(int64_t t, const std::vector<float>& rows, const std::vector<float>& row_squares,
                    SampledRows& y) const {
      const int64_t at = t * y.columns;
      add(1, t + 1, rows.data(), row_squares.data(), at, y);
    }
    /// Rows 0 .. t of y get theirs times row t.
    void add_of_row(int64_t t, const std::vector<float>& rows, const std::vector<float>& row_squares,
                    SampledRows& y) const {
      const int64_t at = t * y.columns;
      add(t + 1, 1, rows.data() + at, row_squares.data() + at, 0, y);
    }

   private:
    void add(int64_t rows, int64_t inner, const float* from, const float* from_squares, int64_t at,
             SampledRows& y) const {
      const SampledLoops& loops = sampled_loops();
      loops.samples_times_numbers({rows, inner, y.columns, noise_.data(), 1, 1, from, y.near.data() + at});
      loops.numbers_times_numbers({rows, inner, y.columns, common_.data(), 1, 1, from, y.common.data() + at});
      loops.numbers_times_numbers(
          {rows, inner, y.columns, squares_.data(), 1, 1, from_squares, y.squares.data() + at});
    }

    const GatedNoise& of_;
    const float amplitude_;
    std::vector<Lanes> noise_;
    std::vector<float> common_, squares_;
  };

  /// Where a chunk's outputs would be off if the state were kept in the operands' format (kept_state.h), and
  /// the variance of what its keys' roundings make of later chunks' along it.
  struct Direction {
    std::vector<float> rows;
    double variance = 0;
  };
  std::vector<float> state_reads() const {
    std::vector<float> reads(q_.size());
    for (size_t i = 0; i < reads.size(); ++i) reads[i] = scale_ * q_[i] * chunk_.into()[i];
    return reads;
  }
  ChunkOperand keys() const {
    return {.x = k_, .source = NoiseSource::key, .amplitude = amplitudes_.key, .wide = split_};
  }
  ChunkOperand queries() const { return {q_, NoiseSource::read, amplitudes_.read}; }

  std::vector<Direction> kept_directions(int64_t chunks) {
    std::vector<Direction> y(static_cast<size_t>(chunks));
    KeptState state(K_, V_, chunk_.u());
    if (x_.S0) state.load(decoded_state(*x_.S0));
    for (int64_t i = 0; i < chunks; ++i) {
      read(i);
      y[static_cast<size_t>(i)].rows = state.carried(chunk_, state_reads());
      state.advance(chunk_, keys(), v_);
    }
    KeptKeys later(K_, V_);
    for (int64_t i = chunks; i-- > 0;) {
      read(i);
      Direction& of = y[static_cast<size_t>(i)];
      of.variance = later.variance(chunk_, keys(), v_, state_reads(), of.rows);
    }
    return y;
  }

  /// Variances along a direction of what scores make of it.
  struct ScoreVariance {
    const GatedNoise& of;
    const std::vector<float>& direction;
    double sum = 0;
    std::vector<float> by_query = std::vector<float>(of.q_.size()), by_key = by_query;
    std::vector<float> along = {}, ones = std::vector<float>(static_cast<size_t>(of.tokens_), 1.0f);

    /// Before a token's scores.
    void begin(int64_t t) {
      along.assign(ones.size(), 0.0f);
      sampled_loops().contract_numbers(
          {1, t + 1, of.V_, ones.data(), of.v_.data(), direction.data() + t * of.V_, along.data()});
    }
    void add(int64_t t, int64_t j, const Score& score, const float* w) {
      if (j == 0) begin(t);
      const float here = along[static_cast<size_t>(j)];
      const double own = static_cast<double>(of.amplitudes_.o * binade(score.value) * here);
      sum += own * own / 3;
      if (!w || !of.amplitudes_.scaled_in_score) return;
      const float *const q = of.q_.data() + t * of.K_, *const k = of.k_.data() + j * of.K_;
      float* __restrict const query = by_query.data() + t * of.K_;
      float* __restrict const key = by_key.data() + j * of.K_;
      for (int64_t c = 0; c < of.K_; ++c) {
        const float term = q[c] * w[c] * k[c] * of.scale_ * here;
        query[c] += term, key[c] += term;
      }
    }
    double of_all() const {
      double all = sum;
      for (size_t i = 0; i < by_query.size(); ++i) {
        const auto c = static_cast<int64_t>(i) % of.K_;
        const double query =
                         static_cast<double>(of.chunk_.in_score_size(of.amplitudes_.read, c) * by_query[i]),
                     key = static_cast<double>(of.chunk_.in_score_size(of.amplitudes_.key, c) * by_key[i]);
        all += (query * query + key * key) / 3;
      }
      return all;
    }
  };

  void outputs(const SampledState& S, const Direction& kept) const {
    SampledRows o(tokens_, V_);
    chunk_.read(S, chunk_.copied(S, NoiseSource::state_copy, amplitudes_.o), queries(), chunk_.into(), scale_,
                noisy_S(), o);
    ScoreVariance scores{*this, kept.rows};
    ScoredRows scored(*this, amplitudes_.o);
    const std::vector<float> squares = squares_of(v_);
    const auto add = [&](int64_t t, int64_t j, const Score& made, const float* w) {
      if (!split_) scores.add(t, j, made, w);
      Lanes rounding;
      chunk_.draw(NoiseSource::score, t * tokens_ + j, 1, rounding);
      scored.set(j, made, rounding);
      if (t == j) scored.add_to_row(t, v_, squares, o);  // the token's own comes last
    };
    chunk_.for_each_pair([&](int64_t t, int64_t j, const float* w) { add(t, j, score(t, j, w), w); },
                         [&](int64_t t) { add(t, t, own_score(t), nullptr); });
    if (split_) {
      visitor(rests_.o).rows("o", first_, o);
      return;
    }
    const double of_reads =
        variance_of_reads(chunk_, S, amplitudes_.o, queries(), chunk_.into(), scale_, kept.rows);
    const std::vector<float> reads = state_reads();
    const StateReadout readout{reads, chunk_.whole(), kept.rows, kept.variance + of_reads + scores.of_all()};
    visitor(rests_.o).rows("o", first_, o, &readout);
  }

  /// What a chunk's gradients are summed up in.
  struct Gradients {
    SampledRows dq, dk, dv, dg;  ///< dg: of token t what t has more than t - 1
    Gradients(int64_t tokens, int64_t K, int64_t V)
        : dq(tokens, K), dk(tokens, K), dv(tokens, V), dg(tokens + 1, K) {}
  };

  void gradients(const SampledState& S, const SampledState& G) const {
    Gradients y(tokens_, K_, V_);
    const std::vector<float>&into = chunk_.into(), &after = chunk_.after();
    chunk_.contract(chunk_.copied(S, NoiseSource::state_copy, amplitudes_.dq), do_, into, scale_, y.dq.near);
    chunk_.contract(chunk_.copied(G, NoiseSource::adjoint_copy, amplitudes_.dk), v_, after, 1, y.dk.near);
    if (noisy_S())
      chunk_.contract(S.noise, do_, into, scale_, y.dq.far),
          chunk_.contract(S.common, do_, into, scale_, y.dq.common);
    if (noisy_G())
      chunk_.contract(G.noise, v_, after, 1, y.dk.far), chunk_.contract(G.common, v_, after, 1, y.dk.common);
    chunk_.read(G, chunk_.copied(G, NoiseSource::adjoint_copy, amplitudes_.dv),
                {k_, NoiseSource::read, amplitudes_.read}, after, 1, noisy_G(), y.dv);
    chunk_.contract_squares(S.squares, do_, into, scale_, y.dq.squares);
    chunk_.contract_squares(G.squares, v_, after, 1, y.dk.squares);
    if (x_.gate && !split_) gates_across(S, G, y);
    ScoredRows scored(*this, amplitudes_.dv);
    const std::vector<float> squares = squares_of(do_);
    const auto end_of_row = [&](int64_t t, int64_t j) {
      if (t == j) scored.add_of_row(t, do_, squares, y.dv);  // the token's own comes last
    };
    chunk_.for_each_pair(
        [&](int64_t t, int64_t j, const float* w) { pair_gradients(t, j, w, scored, y), end_of_row(t, j); },
        [&](int64_t t) { own_gradients(t, scored, y), end_of_row(t, t); });
    visitor(rests_.dq).rows("d" + std::string(x_.form.q), first_, y.dq);
    visitor(rests_.dk).rows("d" + std::string(x_.form.k), first_, y.dk);
    visitor(rests_.dv).rows("d" + std::string(x_.form.v), first_, y.dv);
    if (x_.gate && !split_) visit_gates(y.dg);
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
  void own_gradients(int64_t t, ScoredRows& scored, Gradients& y) const {
    Lanes rounding;
    chunk_.draw(NoiseSource::score, t * tokens_ + t, 1, rounding);
    scored.set(t, own_score(t), rounding);
    float squares;
    value_score(t, t, squares);
    for (int64_t c = 0; c < K_; ++c) {
      const float u = bonus_[static_cast<size_t>(c)], q = u * q_[key(t, c)], k = u * k_[key(t, c)];
      y.dq.squares[key(t, c)] += squares * k * k, y.dk.squares[key(t, c)] += squares * q * q;
    }
  }

  void pair_gradients(int64_t t, int64_t j, const float* w, ScoredRows& scored, Gradients& y) const {
    Lanes rounding;
    chunk_.draw(NoiseSource::score, t * tokens_ + j, 1, rounding);
    const Score made = score(t, j, w);
    scored.set(j, made, rounding);
    SampledPair pair{.K = K_, .q = made.q, .k = made.k, .w = w, .u = chunk_.u()};
    pair.M = value_score(t, j, pair.squares);
    const float size = score_size(pair.M, pair.squares);
    pair.of_dq = rounding * (amplitudes_.dq * size), pair.of_dk = rounding * (amplitudes_.dk * size);
    pair.of_dg = rounding * (amplitudes_.dg * size);
    pair.query_noise = made.query_noise, pair.key_noise = made.key_noise;
    const auto row = [&](SampledRows& of, int64_t token) {
      const int64_t at = token * K_;
      return SampledPair::Row{of.near.data() + at, of.common.data() + at, of.squares.data() + at};
    };
    pair.dq = row(y.dq, t), pair.dk = row(y.dk, j);
    const int64_t last = x_.exclusive() ? t - 1 : t;  // the last token whose decay the pair crosses
    if (x_.gate && !split_ && last > j) pair.dg_from = row(y.dg, j + 1), pair.dg_to = row(y.dg, last + 1);
    sampled_loops().pair(pair);
  }

  /// Terms of dg that cross a chunk's end: from a state before it to a token of it, from a token of it to
  /// what is after it, and over the whole of it.
  void gates_across(const SampledState& S, const SampledState& G, Gradients& y) const {
    if (amplitudes_.dg > 0)
      across(S, G, chunk_.copied(S, NoiseSource::state_copy, amplitudes_.dg),
             chunk_.copied(G, NoiseSource::adjoint_copy, amplitudes_.dg), std::sqrt(0.5f), y.dg.near);
    if (noisy_S() || noisy_G())
      across(S, G, S.noise, G.noise, 1, y.dg.far), across(S, G, S.common, G.common, 1, y.dg.common);
    // Here y.dq and y.dk hold the squares of what crosses the chunk's ends. Sums that end inside are left
    // in: more.
    for (int64_t c = 0; c < K_; ++c) {
      float over = 0, reads = 0;
      for (int64_t v = 0; v < V_; ++v)
        over += S.squares[static_cast<size_t>(c * V_ + v)] * G.squares[static_cast<size_t>(c * V_ + v)];
      const float whole = chunk_.whole()[static_cast<size_t>(c)];
      for (int64_t t = 0; t < tokens_; ++t) {
        const float q = q_[key(t, c)], k = k_[key(t, c)];
        reads += y.dq.squares[key(t, c)] * q * q;
        y.dg.squares[key(t + 1, c)] += y.dk.squares[key(t, c)] * k * k;
      }
      y.dg.squares[key(0, c)] += over * whole * whole + reads;
    }
  }
  /// Where the states differ by these; both at once where a term takes one of each.
  template <typename Number>
  void across(const SampledState& S, const SampledState& G, const std::vector<Number>& of_S,
              const std::vector<Number>& of_G, float both, std::vector<Number>& dg) const {
    std::vector<Number> reads(q_.size()), writes(q_.size());
    chunk_.contract(of_S, do_, chunk_.into(), scale_, reads);
    chunk_.contract(of_G, v_, chunk_.after(), 1, writes);
    for (int64_t c = 0; c < K_; ++c) {
      Number over = {};
      for (int64_t v = 0; v < V_; ++v) {
        const auto i = static_cast<size_t>(c * V_ + v);
        over += of_S[i] * G.value[i] + of_G[i] * S.value[i];
      }
      dg[key(0, c)] += over * (both * chunk_.whole()[static_cast<size_t>(c)]);
      for (int64_t t = 0; t < tokens_; ++t) {
        const Number read = reads[key(t, c)] * q_[key(t, c)], written = writes[key(t, c)] * k_[key(t, c)];
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
    SampledRows y(tokens_, of_channels ? K_ : 1);
    for (size_t i = 0; i < q_.size(); ++i) {
      const size_t to = of_channels ? i : i / K;
      y.near[to] += dg.near[i], y.far[to] += dg.far[i], y.common[to] += dg.common[i];
      y.squares[to] += dg.squares[i];
    }
    visitor(rests_.dg).rows(name, first_, y);
  }

  const GatedTensors x_;
  const Slice slice_;
  const NoiseVisit& visit_;
  const bool backward_;
  const int64_t K_, V_, H_;
  const float scale_;
  SampledChunk chunk_;
  NoiseAmplitudes amplitudes_;
  NoiseRests rests_;
  bool split_ = false;  ///< operands are split, and none is rounded to its format
  int64_t length_ = 1;
  const Tensor *d_o_ = nullptr, *dS_ = nullptr;
  std::vector<float> bonus_;
  // Of the chunk that is being looked at:
  int64_t first_ = 0, tokens_ = 0;
  std::vector<float> q_, k_, v_, do_;
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
