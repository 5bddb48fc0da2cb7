// State updates per second of the reference's rungs: one update is decay, write, readout and radius of one
// state entry.
#include <benchmark/benchmark.h>

#include <random>

#include "reference/gated_kernels.h"
#include "reference/operator.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

void count_updates(benchmark::State& state, double per_iteration) {
  state.counters["updates/s"] = benchmark::Counter(per_iteration * static_cast<double>(state.iterations()),
                                                   benchmark::Counter::kIsRate);
}

void draw(RandomProblem& p, int64_t T, bool cotangents) {
  RandomShape shape;
  shape.T = T, shape.K = 64, shape.V = 64, shape.initial_state = false, shape.cotangents = cotangents;
  draw_problem(shape, 1, p);
  p.problem.arithmetic = recurrent_fp32(64);
  p.problem.arithmetic.chunk = 64;
}

/// The whole first rung, reading the inputs and the bound included; one thread.
void first_rung_forward(benchmark::State& state) {
  RandomProblem p;
  draw(p, state.range(0), false);
  for (auto _ : state) benchmark::DoNotOptimize(find_operator("gla").evaluate(p.problem));
  count_updates(state, static_cast<double>(state.range(0)) * 64 * 64);
}
BENCHMARK(first_rung_forward)->Arg(4096)->Unit(benchmark::kMillisecond);

void first_rung_adjoint(benchmark::State& state) {
  RandomProblem p;
  draw(p, state.range(0), true);
  for (auto _ : state) benchmark::DoNotOptimize(find_operator("gla").evaluate_adjoint(p.problem));
  count_updates(state, static_cast<double>(state.range(0)) * 64 * 64);
}
BENCHMARK(first_rung_adjoint)->Arg(4096)->Unit(benchmark::kMillisecond);

/// Coefficients and columns for the bare loops, all columns in use.
struct Loops {
  static constexpr int64_t K = 64, tokens = 16, W = kForwardColumns, A = kAdjointColumns;
  std::vector<ForwardCoefficient> forward;
  std::vector<PreciseCoefficient> precise;
  std::vector<AdjointCoefficient> adjoint;
  std::vector<double> v = std::vector<double>(tokens * A, 0.5), d_o = v, dv = v, dv_abs = v, dv_excess = v;
  std::vector<double> S = std::vector<double>(K * W), lo = S, P = S, E = S;
  std::vector<double> o = std::vector<double>(tokens * W), o_lo = o, companion = o, excess = o;
  std::vector<double> states = std::vector<double>((tokens + 1) * adjoint_state_size(K)), G = states;
  std::vector<AdjointSums> sums = std::vector<AdjointSums>(tokens * K);

  Loops() {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < tokens * K; ++i) {
      const double q = normal(random), k = normal(random), a = 0.9;
      forward.push_back({a, k, q, std::fabs(q), a * 1.0001, 1e-7});
      precise.push_back({a, 0x1p-56, k, q, std::fabs(q)});
      adjoint.push_back({a, k, std::fabs(k), q, std::fabs(q), a * 1.0001, 1e-7, a * 1.0002, 2e-7});
    }
    for (double& x : v) x = normal(random);
    for (double& x : d_o) x = normal(random);
  }
};

void forward_loop(benchmark::State& state, const GatedKernels& kernels) {
  Loops x;
  for (auto _ : state)
    kernels.forward({x.tokens, x.K, x.forward.data(), 1e-7, x.v.data(), x.S.data(), x.P.data(), x.E.data(),
                     x.o.data(), x.companion.data(), x.excess.data()});
  count_updates(state, static_cast<double>(x.tokens * x.K * x.W));
}

void double_double_loop(benchmark::State& state, const GatedKernels& kernels) {
  Loops x;
  for (auto _ : state)
    kernels.precise({x.tokens, x.K, x.precise.data(), x.v.data(), x.S.data(), x.lo.data(), x.P.data(),
                     x.o.data(), x.o_lo.data(), x.companion.data()});
  count_updates(state, static_cast<double>(x.tokens * x.K * x.W));
}

/// Both forward passes (checkpoints, states) and the reverse pass, as the adjoint runs them.
void adjoint_loop(benchmark::State& state, const GatedKernels& kernels) {
  Loops x;
  for (auto _ : state) {
    kernels.states({x.tokens, x.K, x.adjoint.data(), 1e-7, x.v.data(), x.states.data(), false});
    kernels.states({x.tokens, x.K, x.adjoint.data(), 1e-7, x.v.data(), x.states.data(), true});
    kernels.reverse({x.tokens, x.K, x.adjoint.data(), 1e-7, x.v.data(), x.d_o.data(), x.states.data(),
                     x.G.data(), x.sums.data(), x.dv.data(), x.dv_abs.data(), x.dv_excess.data()});
  }
  count_updates(state, static_cast<double>(x.tokens * x.K * x.A));
}

/// The whole second rung: a bound that double cannot serve.
void second_rung_forward(benchmark::State& state) {
  RandomProblem p;
  draw(p, state.range(0), false);
  p.problem.arithmetic = {};
  p.problem.arithmetic.readout = p.problem.arithmetic.write = 0x1p-42;
  for (auto _ : state) benchmark::DoNotOptimize(find_operator("gla").evaluate(p.problem));
  count_updates(state, static_cast<double>(state.range(0)) * 64 * 64);
}
BENCHMARK(second_rung_forward)->Arg(1024)->Unit(benchmark::kMillisecond);

/// T = 43,884 with K = V = 64, bound included, on two threads.
void real_length(benchmark::State& state) {
  RandomProblem p;
  draw(p, 43884, false);
  p.problem.threads = 2;
  for (auto _ : state) benchmark::DoNotOptimize(find_operator("gla").evaluate(p.problem));
  count_updates(state, 43884.0 * 64 * 64);
}
BENCHMARK(real_length)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  for (const assay::GatedKernels& kernels : assay::runnable_gated_kernels()) {
    const std::string set(kernels.instruction_set);
    benchmark::RegisterBenchmark(("forward_loop/" + set).c_str(), assay::forward_loop, kernels);
    benchmark::RegisterBenchmark(("adjoint_loop/" + set).c_str(), assay::adjoint_loop, kernels);
    benchmark::RegisterBenchmark(("double_double_loop/" + set).c_str(), assay::double_double_loop, kernels);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
