#include "reference/gated_forward.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "reference/forward_columns.h"
#include "reference/forward_ladder.h"
#include "reference/parallel.h"

namespace assay {
namespace {

/// Counts what no verdict can rest on, and says why.
void explain(ReferenceOutput& out) {
  int64_t overflow = 0, not_finite = 0;
  for (size_t i = 0; i < out.mid.size(); ++i) {
    overflow += std::isinf(out.bound[i]);
    not_finite += std::isfinite(out.bound[i]) && std::isinf(out.rad[i]);
    out.wide += std::isinf(out.bound[i]) || too_wide(out.rad[i], out.bound[i]);
  }
  if (out.wide == 0) return;
  out.undecided = fmt::format("{}: {} of {} elements undecided:", out.name, out.wide, out.mid.size());
  if (overflow) out.undecided += fmt::format(" {} where the kernel's intermediates may overflow;", overflow);
  if (not_finite)
    out.undecided += fmt::format(" {} that follow from inputs that are not finite;", not_finite);
  if (out.wide > overflow + not_finite)
    out.undecided += fmt::format(" {} whose radius exceeds 2^-10 of the bound after rung {};",
                                 out.wide - overflow - not_finite, out.rung);
  out.undecided.pop_back();
}

}  // namespace

ReferenceResult gated_forward(const Problem& problem, const GatedRow& row) {
  const auto start = std::chrono::steady_clock::now();
  const Sizes& s = problem.sizes;
  const GatedTensors x(problem, row.form);
  Problem p = problem;
  p.arithmetic = arithmetic_of_run(problem.arithmetic, x.decays());
  const std::vector<Slice> slices = slices_of(p);
  const int64_t N = p.cu_seqlens.empty() ? s.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
  ReferenceResult result;
  result.outputs.push_back(output_of_zeros("o", {{"B", s.B}, {"T", s.T}, {"H", s.H}, {"V", s.V}}, p.threads));
  result.outputs.push_back(output_of_zeros("final_state", {{"N", N}, {"H", s.H}, {"K", s.K}, {"V", s.V}}));
  result.outputs[0].roundoff = p.arithmetic.output_roundoff;
  std::mutex mutex;
  ForwardProblem f{p,
                   row,
                   x,
                   BoundModel(p.arithmetic),
                   {},
                   claims_exact(p.arithmetic),
                   result.outputs[0],
                   result.outputs[1],
                   mutex};
  if (!x.decays()) f.grid = ExactGrid(x.q, x.k, x.v, nullptr, x.S0, p.scale);
  const int64_t blocks = (s.V + kColumnsPerTask - 1) / kColumnsPerTask;
  parallel_for(static_cast<int64_t>(slices.size()) * blocks, p.threads, [&](int64_t i) {
    const Slice& slice = slices[static_cast<size_t>(i / blocks)];
    const int64_t v0 = i % blocks * kColumnsPerTask;
    climb_ladder(f, slice, v0, evaluate_columns(f, slice, v0));
  });
  for (ReferenceOutput& out : result.outputs) explain(out);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay
