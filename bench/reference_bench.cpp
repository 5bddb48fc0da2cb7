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

/// The double-double loop for every instruction set this processor has, all columns in use.
void double_double(benchmark::State& state, const GatedKernels& kernels) {
  constexpr int64_t K = 64, tokens = 16, W = kForwardColumns;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<PreciseCoefficient> coefficients;
  std::vector<double> v, S_hi(K * W), S_lo(K * W), P(K * W), o_hi(tokens * W), o_lo(tokens * W),
      companion(tokens * W);
  for (int64_t i = 0; i < tokens * K; ++i) {
    const double q = normal(random);
    coefficients.push_back({0.9, 0x1p-56, normal(random), q, std::fabs(q)});
  }
  for (int64_t i = 0; i < tokens * W; ++i) v.push_back(normal(random));
  for (auto _ : state) {
    kernels.precise({tokens, K, coefficients.data(), v.data(), S_hi.data(), S_lo.data(), P.data(),
                     o_hi.data(), o_lo.data(), companion.data()});
    benchmark::DoNotOptimize(o_hi.data());
  }
  count_updates(state, static_cast<double>(tokens * K * W));
}

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
  for (const assay::GatedKernels& kernels : assay::runnable_gated_kernels())
    benchmark::RegisterBenchmark(("double_double/" + std::string(kernels.instruction_set)).c_str(),
                                 assay::double_double, kernels);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
