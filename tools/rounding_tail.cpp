// Writes the page of the statistical verdict's tail over clean kernels beside the model's
// (bench/ROUNDING_TAIL.md):
// rounding_tail [ROUNDS [JOBS [SECONDS [KERNEL]]]] > bench/ROUNDING_TAIL.md; no run begins after so many
// seconds; KERNEL: only those whose names begin so.
// A round is every kernel in two formats under every decay below, drawn with the round's number as seed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/claim.h"
#include "reference/parallel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/compare/rounding.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

constexpr size_t kTail = 16;  ///< shares beyond t = 0 .. kTail - 1
constexpr const char* kDecays[] = {"none",   "mild",  "near-one", "logsigmoid",
                                   "strong", "reset", "contrast", "constant:-0.03"};
constexpr const char* kStatistics[] = {"RMS", "slope", "mean"};

/// Of the parts that are blocks, and of those of more than a block.
struct Tail {
  int64_t parts = 0;
  std::array<std::array<int64_t, kTail>, 3> beyond = {};
  double largest_excess = 0;

  void add(const PartStatistics& p) {
    ++parts;
    for (size_t s = 0; s < 3; ++s)
      for (size_t t = 0; t < kTail; ++t) beyond[s][t] += p.evidence[s] > static_cast<double>(t);
    largest_excess = std::fmax(largest_excess, p.part.excess);
  }
  void add(const Tail& o) {
    parts += o.parts;
    for (size_t s = 0; s < 3; ++s)
      for (size_t t = 0; t < kTail; ++t) beyond[s][t] += o.beyond[s][t];
    largest_excess = std::fmax(largest_excess, o.largest_excess);
  }
};
struct Tails {
  Tail blocks, larger, carried;
};

bool uses_slots(const Kernel& kernel) {
  const auto& inputs = find_operator(kernel.operator_name).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const ArgumentSpec& spec) { return spec.axes.back() == "M"; });
}

Case case_of(const Kernel& kernel, Dtype dtype, const char* decay, int64_t round) {
  constexpr int64_t kChannels[] = {16, 24, 16, 32, 16, 24, 16, 32, 16, 64};
  Case c;
  c.kernel = kernel.name;
  c.T = 1024, c.H = 2, c.K = c.V = kChannels[round % std::ssize(kChannels)];
  if (uses_slots(kernel)) c.M = c.K;
  c.dtype = dtype, c.decay = decay, c.seed = static_cast<uint64_t>(round) + 1;
  c.direction = Direction::both, c.initial_state = round % 2 == 1;
  return c;
}

/// Adds what the statistics say of one clean run, by output.
void add_run(const Case& c, const Kernel& kernel, std::map<std::string, Tails>& tails) {
  const ResolvedCase resolved = accepted(c, kernel);
  const TensorMap inputs = draw_inputs(resolved);
  const Claim claim = claim_of(kernel, resolved);
  const Outcome outcome = make_vm_backend({})->run(program_of(kernel, resolved, inputs), inputs);
  const Problem problem = declared_problem(claim, inputs, 1);
  const ReferenceResult reference = evaluate_reference(resolved, problem);
  const auto models = rounding_model({resolved.op, &problem, HUGE_VAL}, reference);
  const int64_t statistics = statistics_in(models, outcome.outputs);
  for (const ReferenceOutput& output : reference.outputs) {
    const auto got = outcome.outputs.find(output.name);
    if (got == outcome.outputs.end()) continue;
    const OutputModel& model = models.at(output.name);
    const RoundingJudgement judgement = judge_rounding(got->second, output, model, statistics);
    Tails& to = tails[output.name];
    for (const PartStatistics& carried : judgement.carried) to.carried.add(carried);
    for (size_t i = 0; i < judgement.parts.size(); ++i)
      if (judgement.parts[i].part.excess > 0)
        (i < model.blocks.blocks().size() ? to.blocks : to.larger).add(judgement.parts[i]);
  }
}

void print_shares(const char* title, const Tail& tail) {
  fmt::print("\n## {}: {}\n\n| t | model: at most |", title, tail.parts);
  for (const char* s : kStatistics) fmt::print(" {} |", s);
  fmt::print("\n|---:|---:|---:|---:|---:|\n");
  for (size_t t = 0; t < kTail; ++t) {
    fmt::print("| {} | {:.2g} |", t, std::exp(-static_cast<double>(t)));
    for (const auto& beyond : tail.beyond)
      fmt::print(" {:.2g} |", static_cast<double>(beyond[t]) / std::fmax(1, static_cast<double>(tail.parts)));
    fmt::print("\n");
  }
}

void print_page(const std::map<std::string, Tail>& by_kernel, const Tails& all, int64_t runs) {
  fmt::print(
      "# The tail of the statistical verdict beside the model's\n\n"
      "Over {} runs of clean kernels: the share of an output's parts whose statistic is more "
      "than\nwhat has probability e^-t at most under the model (src/verification/compare/rounding.h). "
      "Blocks: "
      "64 tokens\nof a head, or 64 rows of a state; larger parts: quarters, sequences, outputs.\n"
      "Written by `rounding_tail` (tools/rounding_tail.cpp).\n",
      runs);
  print_shares("Blocks", all.blocks);
  print_shares("Larger parts", all.larger);
  print_shares("Carried from block to block (in the column of RMS), and along a kept state (of slope)",
               all.carried);
  fmt::print(
      "\n## By kernel\n\nExcess: the largest statistic over what is allowed of it, 1e-9 false alarms a "
      "run; above 1 it is a finding.\n\n"
      "| kernel | parts | RMS beyond t = 1 | slope | mean | largest excess "
      "|\n|---|---:|---:|---:|---:|---:|\n");
  for (const auto& [name, tail] : by_kernel) {
    fmt::print("| {} | {} |", name, tail.parts);
    for (const auto& beyond : tail.beyond)
      fmt::print(" {:.2g} |", static_cast<double>(beyond[1]) / static_cast<double>(tail.parts));
    fmt::print(" {:.2f} |\n", tail.largest_excess);
  }
}

int run(int64_t rounds, int jobs, double seconds, const std::string& only) {
  const auto start = std::chrono::steady_clock::now();
  if (jobs <= 0) jobs = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<Case> cases;
  for (int64_t round = 0; round < rounds; ++round)
    for (const Kernel& kernel : kernels())
      for (const Dtype dtype : {Dtype::bf16, round % 4 == 3 ? Dtype::fp32 : Dtype::fp16})
        for (const char* decay : kDecays)
          if (kernel.name.starts_with(only)) cases.push_back(case_of(kernel, dtype, decay, round));
  std::map<std::string, Tail> by_kernel;
  Tails all;
  std::mutex mutex;
  std::atomic<int64_t> runs = 0;
  parallel_for(static_cast<int64_t>(cases.size()), jobs, [&](int64_t i) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) return;
    const Case& c = cases[static_cast<size_t>(i)];
    std::map<std::string, Tails> tails;
    try {
      add_run(c, find_kernel(c.kernel), tails);
    } catch (const BadInput&) {
      return;  // a format or a direction that this kernel does not have
    }
    ++runs;
    const std::lock_guard lock(mutex);
    for (const auto& [output, tail] : tails) {
      for (const Tail* part : {&tail.blocks, &tail.larger, &tail.carried}) {
        if (part->parts > 0) by_kernel[c.kernel].add(*part);
        if (part->largest_excess > 1)
          fmt::print(stderr, "{} {}: excess {:.3g}\n", token_of(c), output, part->largest_excess);
      }
      all.blocks.add(tail.blocks), all.larger.add(tail.larger), all.carried.add(tail.carried);
    }
  });
  print_page(by_kernel, all, runs);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) try {
  return assay::run(count > 1 ? std::atoll(arguments[1]) : 1, count > 2 ? std::atoi(arguments[2]) : 0,
                    count > 3 ? std::atof(arguments[3]) : HUGE_VAL, count > 4 ? arguments[4] : "");
} catch (const std::exception& error) {
  std::fprintf(stderr, "rounding_tail: %s\n", error.what());
  return 2;
}
