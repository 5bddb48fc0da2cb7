// The bound of the gradients against a kernel of the model whose every operation errs as far as it may,
// always upwards on positive inputs: the bound must cover it, and not by much.
#include "reference/bound_adjoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "src/base/numerics/double_double.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

AdjointArithmetic declared(int64_t chunk) {
  AdjointArithmetic a;
  a.state.decay = 0x1p-12, a.state.decay_per_nat = 0x1p-13, a.state.write = 0x1p-11, a.state.step = 0x1p-14;
  a.state.readout = 0x1p-10, a.state.write_decayed = 0x1p-12, a.state.readout_decayed = 0x1p-13;
  a.adjoint = a.state;
  a.adjoint.write = 0x1p-10, a.adjoint.step = 0x1p-13, a.adjoint.readout = 0x1p-9;
  for (Arithmetic* side : {&a.state, &a.adjoint}) {
    side->chunk = chunk, side->boundary = 0x1p-9, side->crossing = 0x1p-10, side->crossing_per_nat = 0x1p-9;
    side->prefix_per_nat = 0x1p-13;
  }
  a.value_readout = 0x1p-11, a.value_readout_decayed = 0x1p-12;
  a.gate_readout = 0x1p-9, a.gate_readout_decayed = 0x1p-12;
  a.state.write_scaled = a.adjoint.write_scaled = 0x1p-10;
  a.state.readout_scaled = a.adjoint.readout_scaled = a.value_readout_scaled = 0x1p-11;
  a.state.stored = a.adjoint.stored = chunk;
  return a;
}

ReferenceResult gla_gradients(const RandomProblem& p) {
  return find_operator("gla").evaluate_adjoint(p.problem);
}

using LongRows = std::vector<std::vector<long double>>;  // [K][V]

/// One slice of the model, all errors at their largest.
struct WorstKernel {
  const RandomProblem& p;
  const AdjointArithmetic& a;
  int64_t T, K, V;

  long double in(const char* name, int64_t t, int64_t width, int64_t c) const {
    return p.inputs.at(name).value(t * width + c);
  }
  static long double crossing(const Arithmetic& side, long double g) {
    return g == 0 ? 1 : std::exp(g) * (1 + side.decay) * std::exp(side.decay_per_nat * -g);
  }
  long double chunk_factor(const Arithmetic& side, int64_t t, int64_t c) const {
    const int64_t first = t / side.chunk * side.chunk, end = std::min(T, first + side.chunk);
    long double nats = 0;
    for (int64_t s = first; s < end; ++s) nats -= in("g", s, K, c);
    return (1 + side.boundary) * (1 + std::min<long double>(side.crossing, side.crossing_per_nat * nats));
  }

  /// What the channel of t's chunk that decays most decays by.
  long double widest(const Arithmetic& side, int64_t t) const {
    const int64_t first = t / side.chunk * side.chunk, end = std::min(T, first + side.chunk);
    long double widest = 0;
    for (int64_t c = 0; c < K; ++c) {
      long double nats = 0;
      for (int64_t s = first; s < end; ++s) nats -= in("g", s, K, c);
      widest = std::max(widest, nats);
    }
    return widest;
  }
  /// What rounding a scaled operand costs in t's chunk.
  long double scaled(const Arithmetic& side, long double at_most, long double decayed, int64_t t) const {
    const long double nats = widest(side, t);
    return 1 + std::min(at_most, std::expm1(nats) + (1 + decayed) * std::exp(side.decay_per_nat * nats) - 1);
  }
  long double prefix(const Arithmetic& side, int64_t t) const {
    return std::exp(side.prefix_per_nat * widest(side, t));
  }

  /// Gradients at token t from S_t, S_{t-1}, G_t: all of the run, by name.
  std::map<std::string, std::vector<long double>> run() const {
    std::vector<LongRows> S(static_cast<size_t>(T + 1), LongRows(K, std::vector<long double>(V)));
    std::vector<LongRows> end = S;  // after the chunk's error, where a chunk ends
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < K; ++c)
        for (int64_t v = 0; v < V; ++v) {
          const long double write = (1 + a.state.write) * (1 + a.state.write_decayed) *
                                    scaled(a.state, a.state.write_scaled, a.state.write_decayed, t) *
                                    prefix(a.state, t);
          S[t + 1][c][v] = (1 + a.state.step) * (crossing(a.state, in("g", t, K, c)) * end[t][c][v] +
                                                 write * in("k", t, K, c) * in("v", t, V, v));
          const bool ends = (t + 1) % a.state.chunk == 0 || t + 1 == T;
          end[t + 1][c][v] = S[t + 1][c][v] * (ends ? chunk_factor(a.state, t, c) : 1);
        }
    std::map<std::string, std::vector<long double>> out;
    for (const char* name : {"dq", "dk", "dg"}) out[name].resize(static_cast<size_t>(T * K));
    out["dv"].resize(static_cast<size_t>(T * V)), out["dinitial_state"].resize(static_cast<size_t>(K * V));
    LongRows G(K, std::vector<long double>(V));
    for (int64_t t = T - 1; t >= 0; --t)
      for (int64_t c = 0; c < K; ++c)
        for (int64_t v = 0; v < V; ++v) {
          const long double scale = p.problem.scale, q = in("q", t, K, c), d_o = in("do", t, V, v);
          const long double write = (1 + a.adjoint.write) * (1 + a.adjoint.write_decayed) *
                                    scaled(a.adjoint, a.adjoint.write_scaled, a.adjoint.write_decayed, t) *
                                    prefix(a.adjoint, t);
          G[c][v] = (1 + a.adjoint.step) * (G[c][v] + write * scale * q * d_o);
          const long double to_q = (1 + a.state.readout) * (1 + a.state.readout_decayed) *
                                   scaled(a.state, a.state.readout_scaled, a.state.readout_decayed, t),
                            to_k = (1 + a.adjoint.readout) * (1 + a.adjoint.readout_decayed) *
                                   scaled(a.adjoint, a.adjoint.readout_scaled, a.adjoint.readout_decayed, t),
                            to_v = (1 + a.value_readout) * (1 + a.value_readout_decayed) *
                                   scaled(a.adjoint, a.value_readout_scaled, a.value_readout_decayed, t),
                            to_g = (1 + a.gate_readout) * (1 + a.gate_readout_decayed);
          out["dq"][t * K + c] += to_q * scale * S[t + 1][c][v] * d_o;
          out["dk"][t * K + c] += to_k * G[c][v] * in("v", t, V, v);
          out["dv"][t * V + v] += to_v * G[c][v] * in("k", t, K, c);
          const long double e = crossing(a.adjoint, in("g", t, K, c));
          out["dg"][t * K + c] += to_g * e * end[t][c][v] * G[c][v];
          G[c][v] *= e;
          if (t % a.adjoint.chunk == 0) G[c][v] *= chunk_factor(a.adjoint, t, c);
          out["dinitial_state"][c * V + v] = G[c][v];
        }
    return out;
  }
};

TEST(BoundAdjoint, covers_a_kernel_that_errs_as_far_as_it_may_and_not_much_more) {
  uint64_t seed = 1;
  for (const char* decay : {"logsigmoid", "near-one", "reset", "ladder"})
    for (const int64_t chunk : {4, 7, 64}) {
      RandomShape shape;
      shape.B = 1, shape.T = 30, shape.H = 1, shape.K = 3, shape.V = 5;
      shape.decay = decay, shape.cotangents = true, shape.initial_state = true;
      RandomProblem p;
      draw_problem(shape, seed++, p);
      for (auto& [name, tensor] : p.inputs)
        for (int64_t i = 0; name != "g" && i < tensor.size(); ++i)
          tensor.set(i, name.find("state") != std::string::npos ? 0 : std::fabs(tensor.value(i)));
      p.problem.adjoint = declared(chunk);
      const auto reference = gla_gradients(p);
      const auto worst = WorstKernel{p, p.problem.adjoint, shape.T, shape.K, shape.V}.run();
      for (const ReferenceOutput& out : reference.outputs) {
        double largest = 0;
        for (size_t i = 0; i < out.mid.size(); ++i) {
          const auto error = static_cast<double>(std::fabs(worst.at(out.name)[i] - out.mid[i]));
          EXPECT_LE(error, out.bound[i] * (1 + 1e-9) + out.rad[i])
              << out.name << "[" << i << "] " << decay << " chunk " << chunk;
          if (out.companion[i] > 1e-30) largest = std::max(largest, error / out.bound[i]);
        }
        EXPECT_GT(largest, 0.7) << out.name << " " << decay << " chunk " << chunk;
      }
    }
}

TEST(BoundAdjoint, grows_with_every_number_that_a_kernel_declares) {
  RandomShape shape;
  shape.B = 1, shape.T = 20, shape.H = 1, shape.K = 3, shape.V = 4;
  shape.decay = "logsigmoid", shape.cotangents = true, shape.initial_state = true;
  RandomProblem p;
  draw_problem(shape, 9, p);
  const auto total = [&] {
    std::map<std::string, double> sums;
    for (const ReferenceOutput& out : gla_gradients(p).outputs)
      for (double bound : out.bound) sums[out.name] += bound;
    return sums;
  };
  p.problem.adjoint = declared(8);
  const auto before = total();
  struct Change {
    const char* what;
    void (*change)(AdjointArithmetic&);
    std::vector<std::string> grows;
  };
  const Change changes[] = {
      {"state.write", [](auto& a) { a.state.write *= 2; }, {"dq", "dg"}},
      {"state.step", [](auto& a) { a.state.step *= 2; }, {"dq", "dg"}},
      {"state.boundary", [](auto& a) { a.state.boundary *= 2; }, {"dq", "dg"}},
      {"state.readout", [](auto& a) { a.state.readout *= 2; }, {"dq"}},
      {"adjoint.write", [](auto& a) { a.adjoint.write *= 2; }, {"dk", "dv", "dg", "dinitial_state"}},
      {"adjoint.decay", [](auto& a) { a.adjoint.decay *= 2; }, {"dk", "dv", "dg", "dinitial_state"}},
      {"adjoint.crossing", [](auto& a) { a.adjoint.crossing *= 2; }, {"dk", "dv", "dg", "dinitial_state"}},
      {"adjoint.readout", [](auto& a) { a.adjoint.readout *= 2; }, {"dk"}},
      {"state.write_scaled", [](auto& a) { a.state.write_scaled *= 2; }, {"dq", "dg"}},
      {"state.readout_scaled", [](auto& a) { a.state.readout_scaled *= 2; }, {"dq"}},
      {"adjoint.readout_scaled", [](auto& a) { a.adjoint.readout_scaled *= 2; }, {"dk"}},
      {"value_readout_scaled", [](auto& a) { a.value_readout_scaled *= 2; }, {"dv"}},
      {"state.stored", [](auto& a) { a.state.stored = 0; }, {"dq", "dg"}},
      {"value_readout", [](auto& a) { a.value_readout *= 2; }, {"dv"}},
      {"gate_readout", [](auto& a) { a.gate_readout *= 2; }, {"dg"}},
      {"gate_readout_decayed", [](auto& a) { a.gate_readout_decayed *= 2; }, {"dg"}},
      {"output_roundoff", [](auto& a) { a.state.output_roundoff = 0x1p-9; }, {"dq", "dk", "dv"}},
      {"gate_output_roundoff", [](auto& a) { a.gate_output_roundoff = 0x1p-9; }, {"dg"}},
      {"underflow", [](auto& a) { a.state.underflow = 0x1p-30; }, {"dq", "dk", "dv", "dg", "dinitial_state"}},
  };
  for (const Change& row : changes) {
    p.problem.adjoint = declared(8);
    row.change(p.problem.adjoint);
    for (const auto& [name, sum] : total()) {
      const bool grows = std::find(row.grows.begin(), row.grows.end(), name) != row.grows.end();
      if (grows)
        EXPECT_GT(sum, before.at(name)) << row.what << " " << name;
      else
        EXPECT_EQ(sum, before.at(name)) << row.what << " " << name;
    }
  }
}

/// One chunk of 64 tokens in fp32 whose last tokens' cotangents, and so their dg, are far below the others'.
struct SumsOfGates {
  RandomProblem p;
  ReferenceResult exact;
  static constexpr int64_t T = 64, K = 3;

  explicit SumsOfGates(double gate_prefix) {
    RandomShape shape;
    shape.B = 1, shape.T = T, shape.H = 1, shape.K = K, shape.V = 4;
    shape.decay = "near-one", shape.cotangents = true;
    draw_problem(shape, 21, p);
    for (int64_t i = T / 2 * 4; i < T * 4; ++i) p.at("do").set(i, p.at("do").value(i) * 0x1p-30);
    for (int64_t i = 0; i < K * 4; ++i) p.at("dfinal_state").set(i, 0);
    AdjointArithmetic a;
    a.state.chunk = a.adjoint.chunk = T;
    a.gate_sums = 4 * 0x1p-24, a.gate_prefix = gate_prefix;
    p.problem.adjoint = a;
    exact = gla_gradients(p);
  }
  const ReferenceOutput& gradient(const char* name) const {
    for (const ReferenceOutput& out : exact.outputs)
      if (out.name == name) return out;
    throw std::logic_error(name);
  }
  /// Elements of dg past the bound, made as x - prefix + total; without `own` x is left out.
  int past_the_bound(bool own) const {
    const ReferenceOutput &dq = gradient("dq"), &dk = gradient("dk"), &dg = gradient("dg");
    int past = 0;
    for (int64_t c = 0; c < K; ++c) {
      std::vector<float> x(T), prefix(T);
      float sum = 0;
      for (int64_t t = 0; t < T; ++t) {
        const auto at = static_cast<size_t>(t * K + c);
        const auto q = static_cast<float>(p.inputs.at("q").value(t * K + c)),
                   k = static_cast<float>(p.inputs.at("k").value(t * K + c));
        const float read = q * static_cast<float>(dq.mid[at]), written = k * static_cast<float>(dk.mid[at]);
        x[static_cast<size_t>(t)] = read - written;
        prefix[static_cast<size_t>(t)] = sum += x[static_cast<size_t>(t)];
      }
      for (size_t t = 0; t < T; ++t) {
        const size_t at = t * K + static_cast<size_t>(c);
        const float made = (own ? x[t] : 0) - prefix[t] + sum;
        past += std::fabs(static_cast<double>(made) - dg.mid[at]) > dg.bound[at] + dg.rad[at];
      }
    }
    return past;
  }
};

TEST(BoundAdjoint, a_gates_gradient_of_a_total_less_a_prefix_is_off_by_what_the_earlier_tokens_round) {
  EXPECT_GT(SumsOfGates(0).past_the_bound(true), 20);  // by nothing that `gate_sums` covers
  const SumsOfGates declared(131 * 0x1p-24);
  EXPECT_EQ(declared.past_the_bound(true), 0);
  EXPECT_GT(declared.past_the_bound(false), 80);  // the own token left out
}

TEST(BoundAdjoint, counts_the_evaluators_own_roundings_of_terms_that_cancel_in_the_first_adjoint) {
  RandomShape shape;
  shape.T = 3, shape.K = shape.V = 1, shape.decay = "none", shape.cotangents = true;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int n = 0; n < 900; ++n) {
    RandomProblem p;
    draw_problem(shape, 1, p);
    p.problem.adjoint = declared(n % 3 ? 64 : 4);
    DoubleDouble sum;
    const auto set = [&](const char* name, int64_t t, double x) {
      p.at(name).set(t, x);
      return p.at(name).value(t);
    };
    set("dfinal_state", 0, 0);
    for (int64_t t = 2; t >= 0; --t)
      sum += set("q", t, t ? uniform(random) : 1) * set("do", t, t ? -uniform(random) : -sum.hi);
    const ReferenceResult gradients = gla_gradients(p);
    const ReferenceOutput& dS = gradients.outputs.back();
    ASSERT_EQ(dS.name, "dinitial_state");
    EXPECT_LE(std::fabs((DoubleDouble(dS.mid[0]) - sum).hi), dS.rad[0]) << n;
  }
}

TEST(BoundAdjoint, is_infinite_where_an_intermediate_may_overflow_and_nowhere_else) {
  RandomShape shape;
  shape.B = 1, shape.T = 5, shape.H = 2, shape.K = 2, shape.V = 3, shape.cotangents = true;
  RandomProblem p;
  draw_problem(shape, 11, p);
  p.problem.adjoint = declared(8);
  Tensor& q = p.inputs.at("q");
  q.set(1, 0x1p127);  // head 0
  for (const ReferenceOutput& out : gla_gradients(p).outputs)
    for (size_t i = 0; i < out.bound.size(); ++i) {
      const auto width = static_cast<size_t>(out.axes.back().size);
      const bool state = out.name == "dinitial_state";
      const size_t head = state ? i / (width * 2) % 2 : i / width % 2;
      EXPECT_EQ(std::isinf(out.bound[i]), head == 0) << out.name << "[" << i << "]";
    }
}

}  // namespace
}  // namespace assay
