// Writes the page of what is seen of a running state in bf16 (bench/STATES.md):
// kept_states [TOKENS [DECAY]] > bench/STATES.md; no more tokens than that; only that decay.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "kernels/claim.h"
#include "src/base/backend/backend.h"
#include "src/verification/compare/rounding.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

constexpr int64_t kChannels = 64, kChunk = 64;
constexpr double kAsked = 0.1;  ///< of o

Case case_of(const std::string& kernel, const std::string& decay, int64_t T) {
  return parse_token(fmt::format("{0}/T{1}/H1/K{2}/V{2}/bf16/g-fp32/{3}/s1", kernel, T, kChannels, decay));
}

/// Root mean square of what o reads of tokens before the chunk before, over that of o.
double share_of_older(const Case& c) {
  const ResolvedCase resolved = resolve_unchecked(c, find_operator("gla"));
  const TensorMap inputs = draw_inputs(resolved);
  const auto at = [&](const char* name, int64_t t, int64_t i) {
    return inputs.at(name).value(t * kChannels + i);
  };
  // What a state holds of the tokens of its own chunk, of the one before, and of all others.
  std::vector<double> parts[3];
  for (auto& part : parts) part.resize(kChannels * kChannels);
  double older = 0, all = 0;
  for (int64_t t = 0; t < c.T; ++t) {
    if (t % kChunk == 0) {
      for (size_t i = 0; i < parts[0].size(); ++i) parts[2][i] += parts[1][i];
      parts[1] = parts[0], parts[0].assign(parts[0].size(), 0);
    }
    for (int64_t k = 0; k < kChannels; ++k) {
      const double a = std::exp(at("g", t, k));
      for (int64_t v = 0; v < kChannels; ++v) {
        const auto i = static_cast<size_t>(k * kChannels + v);
        for (auto& part : parts) part[i] *= a;
        parts[0][i] += at("k", t, k) * at("v", t, v);
      }
    }
    for (int64_t v = 0; v < kChannels; ++v) {
      double o[3] = {};
      for (int64_t k = 0; k < kChannels; ++k)
        for (size_t p = 0; p < 3; ++p)
          o[p] += at("q", t, k) * parts[p][static_cast<size_t>(k * kChannels + v)];
      const double sum = o[0] + o[1] + o[2];
      older += o[2] * o[2], all += sum * sum;
    }
  }
  return std::sqrt(older / all);
}

/// What the statistics of what states carry say of o: seen, and what may be.
std::string seen_in(const Case& c) {
  const Kernel& kernel = find_kernel(c.kernel);
  const ResolvedCase resolved = accepted(c, kernel);
  const TensorMap inputs = draw_inputs(resolved);
  const Problem problem = declared_problem(claim_of(kernel, resolved), inputs, 0);
  const ReferenceResult reference = evaluate_reference(resolved, problem);
  const Outcome outcome = make_vm_backend({})->run(program_of(kernel, resolved, inputs), inputs);
  const auto models = rounding_model({resolved.op, &problem, HUGE_VAL}, reference);
  const RoundingJudgement o = judge_rounding(outcome.outputs.at("o"), reference.outputs.front(),
                                             models.at("o"), statistics_in(models, outcome.outputs));
  if (o.carried.empty()) return "not judged: " + o.output.skipped;
  const RoundingPart& part = o.carried.front().part;
  return fmt::format("{}{:.3g} of {:.3g}", part.excess > 1 ? "found: " : "", part.carried,
                     part.allowed_carried);
}

void print(const std::string& decay, int64_t longest) {
  std::string shares, kept, clean;
  for (const int64_t T : {1024, 4096, 16384}) {
    if (T > longest) continue;
    const double share = share_of_older(case_of("gla.chunk", decay, T));
    shares += fmt::format(" {:.2g}{} |", share, share >= kAsked ? "" : ", not asked");
    kept += fmt::format(" {} |", seen_in(case_of("gla.chunk@P9", decay, T)));
    clean += fmt::format(" {} |", seen_in(case_of("gla.chunk", decay, T)));
  }
  fmt::print("| {} |{}{}{}\n", decay, shares, kept, clean);
  std::fflush(stdout);
}

int run(int64_t longest, const std::string& only) {
  std::string names, lines;
  for (const char* title : {"share", "bf16 state", "clean"})
    for (const int64_t T : {1024, 4096, 16384})
      if (T <= longest) names += fmt::format(" {}, T = {} |", title, T), lines += "---|";
  fmt::print(
      "# A running state in bf16, looked for in the output\n\n"
      "gla.chunk in bf16, one head of {0} channels, seed 1, and the same kernel whose state is rounded to "
      "bf16 "
      "at the end of\nevery chunk of {1} tokens (gla.chunk@P9). Share: root mean square of what o reads of "
      "tokens "
      "before the chunk before\nits own, over that of o; below {2} nothing is asked. Seen: standard "
      "deviations in "
      "what states carry, of what may be\n(src/verification/compare/rounding.h). Written by `kept_states` "
      "(tools/kept_states.cpp).\n\n| decay |{3}\n|---|{4}\n",
      kChannels, kChunk, kAsked, names, lines);
  for (const char* decay : {"none", "near-one", "late-reset", "constant:-0.001", "constant:-0.003",
                            "constant:-0.01", "constant:-0.03", "edge", "contrast", "spike", "ladder", "rows",
                            "masked", "mild", "logsigmoid", "reset", "strong", "extreme"})
    if (only.empty() || only == decay) print(decay, longest);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) try {
  return assay::run(count > 1 ? std::atoll(arguments[1]) : 16384, count > 2 ? arguments[2] : "");
} catch (const std::exception& error) {
  std::fprintf(stderr, "kept_states: %s\n", error.what());
  return 2;
}
