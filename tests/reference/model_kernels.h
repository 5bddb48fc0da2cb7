// Kernels in plain C++ whose arithmetic is known operation by operation, to test the bound against. One slice
// each: q, k, g are T x K, v is T x V, S is K x V (initial on entry, final on exit), o is T x V.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/operator.h"

namespace assay {

struct ModelSlice {
  int64_t T = 0, K = 0, V = 0;
  std::vector<float> q, k, g, v, S, o;
  float scale = 1;
};

/// Rounding to fp32 with subnormals kept or flushed.
struct Fp32 {
  bool flush = false;
  float operator()(float x) const { return flush && std::fabs(x) < 0x1p-126f ? 0.0f : x; }
};

/// S = fl(fl(a S) + fl(k v)), o = fl(scale fl(sum fl(q S))), a = e^g to at most `ulps` + 1/2 ulp; exact at 0.
struct RecurrentModel {
  Fp32 round;
  std::mt19937_64* random = nullptr;

  static constexpr double kExponential = 5 * 0x1p-24 * 1.01;  // rounding u, then two ulps of at most 2 u each

  float exponential(float x) const {
    if (x == 0) return 1;
    float y = static_cast<float>(std::exp(static_cast<double>(x)));
    for (auto n = (*random)() % 3; n > 0; --n) y = std::nextafter(y, (*random)() % 2 ? 0.0f : 1.0f);
    return round(y);
  }

  static Arithmetic arithmetic(int64_t K, bool flush) {
    constexpr double u = 0x1p-24;
    Arithmetic a;
    a.decay = (1 + kExponential) * (1 + u) - 1;
    a.write = u;
    a.step = u;
    a.stored = 1;
    a.readout =
        std::pow(1 + u, static_cast<double>(K) + 1) - 1;  // product, K - 1 sums (the first is exact), scale
    a.underflow = flush ? 0x1p-126 : 0x1p-149;
    return a;
  }

  void run(ModelSlice& x) const {
    std::vector<float> decays(static_cast<size_t>(x.K));
    for (int64_t t = 0; t < x.T; ++t)
      for (int64_t j = 0; j < x.V; ++j) {
        float sum = 0;
        for (int64_t c = 0; c < x.K; ++c) {
          const size_t i = static_cast<size_t>(t * x.K + c);
          float& S = x.S[static_cast<size_t>(c * x.V + j)];
          float& a = decays[static_cast<size_t>(c)];
          if (j == 0) a = exponential(x.g[i]);
          const float kept = x.g[i] == 0 ? S : round(a * S);
          S = round(kept + round(x.k[i] * x.v[static_cast<size_t>(t * x.V + j)]));
          sum = round(sum + round(x.q[i] * S));
        }
        x.o[static_cast<size_t>(t * x.V + j)] = round(x.scale * sum);
      }
  }
};

/// Chunks of 64 rows by recursive halving: local decays are tree sums F (block start to row, inclusive) and B
/// (after the row to block end); a pair in one 2s-block but different halves has the weight e^F_s e^B_s.
class ChunkModel {
 public:
  explicit ChunkModel(const RecurrentModel& model) : fp32(model) {}

  static constexpr int64_t C = 64;
  static constexpr int kLevels = 7;  // s = 1, 2, .., 64

  static Arithmetic arithmetic(int64_t K, bool flush) {
    constexpr double u = 0x1p-24, e = RecurrentModel::kExponential;
    Arithmetic a;
    a.decay_per_nat = 6 * u * 1.01;                  // six additions of one sign make an exponent
    a.write = (1 + e) * std::pow(1 + u, 2 + C) - 1;  // e^B, k e^B, its product with v, 64 sums
    a.boundary = (1 + e) * (1 + u) * (1 + u) - 1;    // e^L, its product with S, the sum
    a.chunk = a.stored = C;
    // q e^F (e, u), k e^B counted in write; product and K sums; score times v, 64 sums; inter + intra; scale
    a.readout = (1 + e) * std::pow(1 + u, static_cast<double>(K) + C + 6) - 1;
    a.underflow = flush ? 0x1p-126 : 0x1p-149;
    return a;
  }

  void run(ModelSlice& x) const {
    for (int64_t first = 0; first < x.T; first += C) chunk(x, first, std::min(C, x.T - first));
  }

 private:
  RecurrentModel fp32;

  struct Decays {
    std::vector<float> F, B;  ///< e^F, e^B: [level][row][channel]
  };

  Decays decays(const ModelSlice& x, int64_t first, int64_t n) const {
    const size_t plane = static_cast<size_t>(C * x.K);
    std::vector<float> F(plane * kLevels, 0), B(plane * kLevels, 0);
    for (int64_t i = 0; i < n * x.K; ++i)
      F[static_cast<size_t>(i)] = x.g[static_cast<size_t>(first * x.K + i)];
    for (int level = 1; level < kLevels; ++level) {
      const int64_t s = int64_t{1} << (level - 1);
      const float *f = F.data() + plane * static_cast<size_t>(level - 1),
                  *b = B.data() + plane * static_cast<size_t>(level - 1);
      for (int64_t i = 0; i < C; ++i)
        for (int64_t c = 0; c < x.K; ++c) {
          const int64_t block = i / (2 * s) * 2 * s, at = i * x.K + c;
          const bool second = (i / s) % 2;
          const float total_first = f[(block + s - 1) * x.K + c],
                      total_second = f[(block + 2 * s - 1) * x.K + c];
          F[plane * static_cast<size_t>(level) + static_cast<size_t>(at)] =
              second ? f[at] + total_first : f[at];
          B[plane * static_cast<size_t>(level) + static_cast<size_t>(at)] =
              second ? b[at] : b[at] + total_second;
        }
    }
    for (auto* values : {&F, &B})
      for (float& y : *values) y = fp32.exponential(y);
    return {F, B};
  }

  void chunk(ModelSlice& x, int64_t first, int64_t n) const {
    const Fp32 round = fp32.round;
    const Decays e = decays(x, first, n);
    const auto weight = [&](const std::vector<float>& w, int level, int64_t row, int64_t c) {
      return w[static_cast<size_t>((level * C + row) * x.K + c)];
    };
    std::vector<float> A(static_cast<size_t>(n * n), 0);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j)
        for (int64_t c = 0; c < x.K; ++c) {
          float q = round(x.scale * x.q[static_cast<size_t>((first + i) * x.K + c)]),
                k = x.k[static_cast<size_t>((first + j) * x.K + c)];
          if (i != j) {
            const int level = 63 - __builtin_clzll(static_cast<uint64_t>(i ^ j));
            q = round(q * weight(e.F, level, i, c)), k = round(k * weight(e.B, level, j, c));
          }
          float& a = A[static_cast<size_t>(i * n + j)];
          a = round(a + round(q * k));
        }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t w = 0; w < x.V; ++w) {
        float intra = 0, inter = 0;
        for (int64_t j = 0; j <= i; ++j)
          intra = round(intra + round(A[static_cast<size_t>(i * n + j)] *
                                      x.v[static_cast<size_t>((first + j) * x.V + w)]));
        for (int64_t c = 0; c < x.K; ++c) {
          const float q =
              round(round(x.scale * x.q[static_cast<size_t>((first + i) * x.K + c)]) * weight(e.F, 6, i, c));
          inter = round(inter + round(q * x.S[static_cast<size_t>(c * x.V + w)]));
        }
        x.o[static_cast<size_t>((first + i) * x.V + w)] = round(inter + intra);
      }
    for (int64_t c = 0; c < x.K; ++c)
      for (int64_t w = 0; w < x.V; ++w) {
        float added = 0;
        for (int64_t j = 0; j < n; ++j) {
          const float k = round(x.k[static_cast<size_t>((first + j) * x.K + c)] * weight(e.B, 6, j, c));
          added = round(added + round(k * x.v[static_cast<size_t>((first + j) * x.V + w)]));
        }
        float& S = x.S[static_cast<size_t>(c * x.V + w)];
        S = round(round(weight(e.F, 6, C - 1, c) * S) + added);
      }
  }
};

/// Every factor at its largest: what the declared arithmetic allows at worst when all values are positive. In
/// double.
struct WorstCaseModel {
  /// What the channel that decays most decays by in t's chunk.
  static double widest(const ModelSlice& x, int64_t t, int64_t chunk) {
    double most = 0;
    for (int64_t c = 0; c < x.K; ++c) {
      double sum = 0;
      for (int64_t s = t; s < std::min(x.T, t + chunk); ++s) sum -= x.g[static_cast<size_t>(s * x.K + c)];
      most = std::max(most, sum);
    }
    return most;
  }
  static double scaled(double at_most, double decayed, double per_nat, double nats) {
    return std::min(at_most, std::expm1(nats) + (1 + decayed) * std::exp(per_nat * nats) - 1);
  }
  static void run(const ModelSlice& x, Arithmetic a, bool decays, std::vector<double>& o,
                  std::vector<double>& S) {
    if (decays) {
      a.write = (1 + a.write) * (1 + a.write_decayed) - 1;
      a.readout = (1 + a.readout) * (1 + a.readout_decayed) - 1;
    }
    o.assign(static_cast<size_t>(x.T * x.V), 0);
    S.assign(x.S.begin(), x.S.end());
    std::vector<double> decayed(static_cast<size_t>(x.K), 0);
    double scaled_k = 0, scaled_q = 0, prefix = 1;
    for (int64_t t = 0; t < x.T; ++t) {
      if (decays && a.chunk > 0 && t % a.chunk == 0) {
        const double nats = widest(x, t, a.chunk);
        scaled_k = scaled(a.write_scaled, a.write_decayed, a.decay_per_nat, nats);
        scaled_q = scaled(a.readout_scaled, a.readout_decayed, a.decay_per_nat, nats);
        prefix = std::exp(a.prefix_per_nat * nats);
      }
      for (int64_t c = 0; c < x.K; ++c)
        decayed[static_cast<size_t>(c)] -= x.g[static_cast<size_t>(t * x.K + c)];
      for (int64_t j = 0; j < x.V; ++j) {
        double sum = 0;
        for (int64_t c = 0; c < x.K; ++c) {
          const size_t i = static_cast<size_t>(t * x.K + c);
          const double g = x.g[i], d = g == 0 ? 1 : (1 + a.decay) * std::exp(a.decay_per_nat * -g);
          double& s = S[static_cast<size_t>(c * x.V + j)];
          s = (std::exp(g) * d * s + double{x.k[i]} * x.v[static_cast<size_t>(t * x.V + j)] * (1 + a.write) *
                                         (1 + scaled_k) * prefix) *
              (1 + a.step);
          sum += x.q[i] * s;
        }
        o[static_cast<size_t>(t * x.V + j)] = x.scale * sum * (1 + a.readout) * (1 + scaled_q);
      }
      if (a.chunk == 0 || ((t + 1) % a.chunk != 0 && t + 1 != x.T)) continue;
      for (size_t i = 0; i < S.size(); ++i) {
        const double sum = decayed[i / static_cast<size_t>(x.V)];
        S[i] *= (1 + a.boundary) * (1 + std::min(a.crossing, a.crossing_per_nat * sum));
      }
      std::fill(decayed.begin(), decayed.end(), 0);
    }
  }
};

}  // namespace assay
