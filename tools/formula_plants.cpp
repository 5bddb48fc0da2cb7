// Writes the page of faults of the formula that were planted in kernels, and caught (bench/FORMULA.md):
// formula_plants [TOKENS [JOBS [TERMS [KERNEL [SECONDS]]]]] > bench/FORMULA.md
// TERMS: how many terms of each program; KERNEL: only those whose names begin so; after so many seconds
// nothing more is planted.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/claim.h"
#include "reference/parallel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/exact_run.h"
#include "src/verification/compare/formula.h"
#include "src/verification/compare/output_blocks.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/reference_run.h"
#include "tests/verify/planted_factor.h"

namespace assay {
namespace {

/// A plant counts where it moves the exact output of some block by so much of its root mean square.
constexpr double kCounts = 1e-5;
constexpr float kOutputFactor = 1 + 0x1p-16f;  // 1.5e-5
constexpr float kTermFactors[] = {1 + 0x1p-13f, 1 + 0x1p-6f};

struct Tally {
  int planted = 0, counted = 0, caught = 0, unjudged = 0;
  void add(const Tally& o) {
    planted += o.planted, counted += o.counted, caught += o.caught, unjudged += o.unjudged;
  }
};
struct Row {
  std::string kernel, format, decay;
  Tally outputs, quarters, terms;
  double largest_allowed = 0;  ///< over the output's root mean square
  std::vector<std::string> missed;
  std::mutex mutex;  ///< of the tallies and what is missed
};

/// A program with a fault, and where it is counted.
struct Plant {
  Tally Row::*tally;
  std::string what;
  Program program;
};

/// One case, and the exact run of its clean program.
class Planting {
 public:
  Planting(const Case& c, const Kernel& kernel)
      : resolved_(accepted(c, kernel)),
        inputs_(draw_inputs(resolved_)),
        claim_(claim_of(kernel, resolved_)),
        program_(program_of(kernel, resolved_, inputs_)),
        got_(make_vm_backend({})->run(program_, inputs_)),
        problem_(declared_problem(claim_, inputs_, 1)),
        reference_(evaluate_reference(resolved_, problem_)),
        clean_(exact(program_)) {}

  /// What the verdict allows of the clean program, and what is planted in it.
  std::vector<Plant> plants(size_t terms, Row& row) const {
    std::vector<Plant> all;
    for (const ReferenceOutput& output : reference_.outputs) {
      const Tensor* const got = find(output.name);
      if (!got || !clean_.outputs.contains(output.name)) continue;
      row.largest_allowed = std::fmax(
          row.largest_allowed, compare_formula(*got, clean_.outputs.at(output.name), output).max_allowed);
      const auto scaled = [&](int64_t first) {
        return with_scaled_output(program_, output.name, first, got->size(), kOutputFactor);
      };
      all.push_back({&Row::outputs, output.name, scaled(0)});
      if (got->axes.size() < 2 || got->axes[1].name != "T") continue;
      all.push_back({&Row::quarters, output.name + ", last quarter", scaled(got->size() - got->size() / 4)});
    }
    const std::vector<Term> of_program = terms_of(program_);
    const size_t step = std::max<size_t>(1, of_program.size() / std::max<size_t>(1, terms));
    for (size_t i = step / 2; i < of_program.size() && terms > 0; i += step)
      for (const float factor : kTermFactors)
        all.push_back({&Row::terms, of_program[i].where, with_scaled_term(program_, of_program[i], factor)});
    return all;
  }

  /// Does it move some block of some output by enough? Is some output then not what the reference says?
  void try_plant(const Plant& plant, Row& row) const {
    const vm::ExactRun run = exact(plant.program);
    double most = 0;
    bool caught = false, unjudged = false;
    std::string where;
    for (const ReferenceOutput& output : reference_.outputs) {
      const Tensor* const got = find(output.name);
      const auto moved = run.outputs.find(output.name);
      if (!got || moved == run.outputs.end()) continue;
      const double by = largest_move(output, clean_.outputs.at(output.name), moved->second);
      if (by > most) most = by, where = output.name;
      const FormulaOutput verdict = compare_formula(*got, moved->second, output);
      caught = caught || verdict.violation > 0, unjudged = unjudged || verdict.judged < verdict.elements;
    }
    const bool counts = most >= kCounts;
    const std::lock_guard lock(row.mutex);
    (row.*plant.tally).add({1, counts, counts && caught, counts && !caught && unjudged});
    if (counts && !caught && !unjudged)
      row.missed.push_back(fmt::format("{}: {} by {:.1e}", plant.what, where, most));
  }

 private:
  vm::ExactRun exact(const Program& program) const {
    vm::MachineOptions options;
    options.threads = 1;
    return vm::run_exact(program, inputs_, options);
  }
  const Tensor* find(const std::string& output) const {
    const auto found = got_.outputs.find(output);
    return found == got_.outputs.end() ? nullptr : &found->second;
  }

  /// Of a block, over its root mean square. What no shadow follows moves nothing.
  double largest_move(const ReferenceOutput& output, const vm::ExactOutput& clean,
                      const vm::ExactOutput& moved) const {
    const OutputBlocks blocks(output.name, output.axes, problem_.cu_seqlens);
    double most = 0;
    for (const OutputBlock& b : blocks.blocks()) {
      double squares = 0, move = 0;
      for (int64_t r = 0; r < b.rows; ++r)
        for (int64_t flat = blocks.row(b, r), end = flat + blocks.columns(); flat < end; ++flat) {
          const auto i = static_cast<size_t>(flat);
          const double x = clean.value[i], d = moved.value[i] - x;
          if (!std::isfinite(d)) continue;
          squares += x * x, move += d * d;
        }
      if (squares > 0) most = std::fmax(most, std::sqrt(move / squares));
    }
    return most;
  }

  const ResolvedCase resolved_;
  const TensorMap inputs_;
  const Claim claim_;
  const Program program_;
  const Outcome got_;
  const Problem problem_;
  const ReferenceResult reference_;
  const vm::ExactRun clean_;
};

bool uses_slots(const Kernel& kernel) {
  const auto& inputs = find_operator(kernel.operator_name).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const ArgumentSpec& spec) { return spec.axes.back() == "M"; });
}

std::vector<Case> cases_of(int64_t tokens, const std::string& only) {
  std::vector<Case> cases;
  for (const Kernel& kernel : kernels())
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32})
      for (const char* decay : {"none", "mild"}) {
        if (!kernel.name.starts_with(only)) continue;
        Case c;
        c.kernel = kernel.name, c.T = tokens, c.K = c.V = 16;
        if (uses_slots(kernel)) c.M = 16;
        c.dtype = dtype, c.decay = decay, c.direction = Direction::both;
        cases.push_back(c);
      }
  return cases;
}

std::string tally_text(const Tally& t) {
  return fmt::format("{}{} of {} of {}", t.caught, t.unjudged > 0 ? fmt::format(" + {}", t.unjudged) : "",
                     t.counted, t.planted);
}

void print_page(const std::deque<Row>& rows, int64_t tokens, double seconds) {
  fmt::print(
      "# Faults of the formula, planted and caught\n\n"
      "One head of {} tokens and 16 channels. An output is made {:.2g} too large, all of it or its last "
      "quarter;\na term (the result of one instruction, of lines spread over the program) 2^-13 and 2^-6 too "
      "large. A plant counts\nwhere it moves the exact values of some block of 64 tokens of a head by {} of "
      "their root mean square,\nmeasured between the exact runs with it and without; it is caught where the "
      "formula's verdict is a violation.\nCells: caught of counted of planted; + those behind which the "
      "verdict says that it follows no value, so that the bound\ndecides. Allowed: the most that the "
      "verdict allows anywhere, over the output's root mean square. {:.0f} s on this machine. Written by "
      "`formula_plants` (tools/formula_plants.cpp).\n\n"
      "| kernel | format | decay | outputs | last quarters | terms | allowed |\n"
      "|---|---|---|---:|---:|---:|---:|\n",
      tokens, static_cast<double>(kOutputFactor) - 1, kCounts, seconds);
  Tally outputs, quarters, terms;
  std::string missed;
  for (const Row& row : rows) {
    if (row.kernel.empty()) continue;  // a format or a direction that this kernel does not have
    fmt::print("| {} | {} | {} | {} | {} | {} | {:.1e} |\n", row.kernel, row.format, row.decay,
               tally_text(row.outputs), tally_text(row.quarters), tally_text(row.terms), row.largest_allowed);
    outputs.add(row.outputs), quarters.add(row.quarters), terms.add(row.terms);
    for (const std::string& m : row.missed)
      missed += fmt::format("- {} {} {}: {}\n", row.kernel, row.format, row.decay, m);
  }
  fmt::print("| all | | | {} | {} | {} | |\n", tally_text(outputs), tally_text(quarters), tally_text(terms));
  fmt::print("\n## Not caught\n\n{}", missed.empty() ? "None.\n" : missed);
}

int run(int64_t tokens, int jobs, size_t terms, const std::string& only, double seconds) {
  if (jobs <= 0) jobs = static_cast<int>(std::thread::hardware_concurrency());
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::vector<Case> cases = cases_of(tokens, only);
  std::deque<Row> rows(cases.size());
  std::vector<std::unique_ptr<Planting>> plantings(cases.size());
  std::vector<std::vector<Plant>> plants(cases.size());
  parallel_for(static_cast<int64_t>(cases.size()), jobs, [&](int64_t at) {
    const auto i = static_cast<size_t>(at);
    const Case& c = cases[i];
    try {
      plantings[i] = std::make_unique<Planting>(c, find_kernel(c.kernel));
      plants[i] = plantings[i]->plants(terms, rows[i]);
      rows[i].kernel = c.kernel, rows[i].format = format(c.dtype).name, rows[i].decay = c.decay;
    } catch (const BadInput& e) {
      fmt::print(stderr, "{}: {}\n", token_of(c), e.what());
    }
  });
  std::vector<std::pair<size_t, size_t>> all;  // case, plant
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t p = 0; p < plants[i].size(); ++p) all.emplace_back(i, p);
  parallel_for(static_cast<int64_t>(all.size()), jobs, [&](int64_t at) {
    const auto [i, p] = all[static_cast<size_t>(at)];
    if (passed() <= seconds) plantings[i]->try_plant(plants[i][p], rows[i]);
  });
  print_page(rows, tokens, passed());
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) try {
  return assay::run(count > 1 ? std::atoll(arguments[1]) : 136, count > 2 ? std::atoi(arguments[2]) : 0,
                    count > 3 ? static_cast<size_t>(std::atoll(arguments[3])) : 12,
                    count > 4 ? arguments[4] : "", count > 5 ? std::atof(arguments[5]) : HUGE_VAL);
} catch (const std::exception& error) {
  std::fprintf(stderr, "formula_plants: %s\n", error.what());
  return 2;
}
