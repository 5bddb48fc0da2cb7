// Writes the page of what a pass would have seen of every kernel (bench/POWER.md):
// power [TOKENS [JOBS [SECONDS [KERNEL]]]] > bench/POWER.md; no run begins after so many seconds;
// KERNEL: only those whose names begin so.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "kernels/kernel.h"
#include "reference/parallel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

constexpr const char* kDecays[] = {"none", "mild", "near-one", "logsigmoid", "strong", "reset"};
constexpr int64_t kChannels = 32;

/// Of one output under one decay: what its values and their distribution tell, and what the formula does.
struct Seen {
  std::string kernel, output, format, decay;
  PowerOutput values;
  double formula = HUGE_VAL;
};

std::vector<Case> cases_of(int64_t tokens, const std::string& only) {
  std::vector<Case> cases;
  for (const Kernel& kernel : kernels())
    for (const Dtype dtype : kernel.limits.dtypes)
      for (const char* decay : kDecays) {
        if (!kernel.name.starts_with(only)) continue;
        const auto& inputs = find_operator(kernel.operator_name).inputs;
        const bool decays = std::any_of(inputs.begin(), inputs.end(), [](const ArgumentSpec& spec) {
          return spec.role == Role::log_decay;
        });
        if (!decays && decay != std::string_view("none")) continue;  // the same case again
        const bool slots = std::any_of(inputs.begin(), inputs.end(),
                                       [](const ArgumentSpec& spec) { return spec.axes.back() == "M"; });
        Case c;
        c.kernel = kernel.name, c.T = tokens, c.K = c.V = kChannels;
        if (slots) c.M = kChannels;
        c.dtype = dtype, c.decay = decay, c.direction = Direction::both;
        cases.push_back(c);
      }
  return cases;
}

std::vector<Seen> seen_in(const Case& c) {
  VerifyOptions options;
  options.threads = 1, options.twice = false, options.diagnose = false, options.power = true;
  options.rounding_work = HUGE_VAL, options.formula_instructions = 0;
  const auto backend = make_vm_backend({});
  const Kernel& kernel = find_kernel(c.kernel);
  const Verification by_values = verify(c, kernel, *backend, options);
  options.rounding_work = 0, options.formula_instructions = UINT64_MAX;
  const Verification by_formula = verify(c, kernel, *backend, options);
  std::vector<Seen> all;
  if (!by_values.power || !by_formula.power) return all;
  for (const PowerOutput& output : by_values.power->outputs) {
    Seen seen{c.kernel, output.name, std::string(format(c.dtype).name), c.decay, output};
    for (const PowerOutput& other : by_formula.power->outputs)
      if (other.name == output.name && other.by == "formula") seen.formula = other.smallest;
    all.push_back(std::move(seen));
  }
  return all;
}

double median(std::vector<double> x) {
  if (x.empty()) return HUGE_VAL;
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// By kernel, output and format over the decays, the weakest first.
void print_page(const std::vector<Seen>& all, int64_t tokens) {
  struct Row {
    std::vector<double> smallest, late, formula, error;
    std::string weakest;
    double most = -1;
    int zeros = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Row> rows;
  for (const Seen& seen : all) {
    Row& row = rows[{seen.kernel, seen.output, seen.format}];
    row.smallest.push_back(seen.values.smallest), row.late.push_back(seen.values.smallest_late);
    row.formula.push_back(seen.formula), row.error.push_back(seen.values.error);
    row.zeros += seen.values.inconclusive;
    if (seen.values.smallest > row.most) row.most = seen.values.smallest, row.weakest = seen.decay;
  }
  std::vector<std::pair<double, decltype(rows)::key_type>> order;
  for (const auto& [key, row] : rows) order.emplace_back(median(row.smallest), key);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  fmt::print(
      "# What a pass would have seen\n\n"
      "The smallest uniform relative error of an output that is found at {} tokens and {} channels: by its "
      "values alone,\nwith bound and statistic, as of a file or of a GPU (median over {} decays, the same of "
      "errors in the last quarter of\nthe tokens only, and the weakest decay's); and by the formula (the "
      "largest over decays; -: values tell\nmore). Error: RMS of the clean kernel's, "
      "relative. "
      "Zeros: in how many decays zeros would have passed by values.\nWeakest first. Written by `power` "
      "(tools/power.cpp) from {} outputs of clean runs.\n\n"
      "| kernel | output | format | values | last quarter | weakest | its decay | zeros | formula | error |\n"
      "|---|---|---|---:|---:|---:|---|---:|---:|---:|\n",
      tokens, kChannels, std::size(kDecays), all.size());
  for (const auto& [by, key] : order) {
    const Row& row = rows[key];
    const double formula = *std::max_element(row.formula.begin(), row.formula.end());
    fmt::print("| {} | {} | {} | {:.2g} | {:.2g} | {:.2g} | {} | {} | {} | {:.2g} |\n", std::get<0>(key),
               std::get<1>(key), std::get<2>(key), by, median(row.late), row.most, row.weakest, row.zeros,
               std::isfinite(formula) ? fmt::format("{:.1e}", formula) : "-", median(row.error));
  }
}

int run(int64_t tokens, int jobs, double seconds, const std::string& only) {
  const auto start = std::chrono::steady_clock::now();
  if (jobs <= 0) jobs = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<Case> cases = cases_of(tokens, only);
  std::vector<std::vector<Seen>> seen(cases.size());
  parallel_for(static_cast<int64_t>(cases.size()), jobs, [&](int64_t i) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) return;
    try {
      seen[static_cast<size_t>(i)] = seen_in(cases[static_cast<size_t>(i)]);
    } catch (const BadInput&) {
      return;  // a decay or a direction that this kernel does not have
    }
  });
  std::vector<Seen> all;
  for (const auto& of_case : seen) all.insert(all.end(), of_case.begin(), of_case.end());
  print_page(all, tokens);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) try {
  return assay::run(count > 1 ? std::atoll(arguments[1]) : 512, count > 2 ? std::atoi(arguments[2]) : 0,
                    count > 3 ? std::atof(arguments[3]) : HUGE_VAL, count > 4 ? arguments[4] : "");
} catch (const std::exception& error) {
  std::fprintf(stderr, "power: %s\n", error.what());
  return 2;
}
