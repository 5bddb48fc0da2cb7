// How cost grows with the length: processor seconds and memory of the machine, of the checks and of a whole
// verification (machine, reference, comparison) from T = 1,024 on, each in a process of its own, on one
// thread. growth_bench [KERNEL [LARGEST T [CHART.svg]]]
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/vm/checks/checks.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

constexpr const char* kPhases[] = {"machine", "checks", "verification"};
constexpr const char* kColours[] = {"#1b6ca8", "#c0392b", "#2e8b57"};

struct Cost {
  double seconds = 0, megabytes = 0;
};
using Row = std::vector<Cost>;  ///< by phase

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double run_phase(size_t phase, const std::string& name, int64_t T) {
  Case c;
  c.kernel = name;
  c.B = 1, c.T = T, c.H = 1, c.K = 16, c.V = 16;
  const Kernel& kernel = find_kernel(name);
  const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
  const TensorMap inputs = draw_inputs(resolved);
  const Program program = kernel.plan(resolved, inputs);
  const auto machine = make_vm_backend({.threads = 1});
  const double before = processor_seconds();
  if (phase == 0) {
    const Outcome outcome = machine->run(program, inputs);
    if (outcome.trap) throw BadInput(outcome.trap->message);
  } else if (phase == 1) {
    vm::run_checked(program, inputs, {.threads = 1}, {});
  } else {
    VerifyOptions options;
    options.threads = 1;
    options.twice = options.diagnose = false;
    options.formula_instructions = 0;
    options.inputs = &inputs;
    verify(c, kernel, *machine, options);
  }
  return processor_seconds() - before;
}

/// The largest memory of a process counts its inputs and its outputs too.
Cost measured(size_t phase, const std::string& name, int64_t T) {
  int ends[2];
  if (pipe(ends) != 0) throw BadInput("growth_bench: no pipe");
  const pid_t child = fork();
  if (child == 0) {
    double seconds = NAN;
    try {
      seconds = run_phase(phase, name, T);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    const bool written = write(ends[1], &seconds, sizeof seconds) == sizeof seconds;
    _exit(written && !std::isnan(seconds) ? 0 : 1);
  }
  close(ends[1]);
  Cost cost;
  int status = 0;
  rusage used{};
  const bool read_all = read(ends[0], &cost.seconds, sizeof cost.seconds) == sizeof cost.seconds;
  close(ends[0]);
  wait4(child, &status, 0, &used);
  if (!read_all || status != 0) throw BadInput(fmt::format("{} at T = {} failed", kPhases[phase], T));
  cost.megabytes = static_cast<double>(used.ru_maxrss) / 1024;
  return cost;
}

/// Seconds over tokens, both in powers of two; a line of slope 1 for linear growth.
std::string chart(const std::string& name, const std::vector<int64_t>& lengths,
                  const std::vector<Row>& rows) {
  constexpr double kUnit = 48, kLeft = 70, kTop = 40;
  double lowest = INFINITY, highest = -INFINITY;
  for (const Row& row : rows)
    for (const Cost& cost : row) {
      lowest = std::min(lowest, std::floor(std::log2(cost.seconds)));
      highest = std::max(highest, std::ceil(std::log2(cost.seconds)));
    }
  const double scale = 24, right = kLeft + kUnit * static_cast<double>(lengths.size() - 1),
               bottom = kTop + scale * (highest - lowest);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<text x=\"{}\" y=\"20\">{}: processor seconds over T, one thread</text>\n",
      right + 120, bottom + 40, kLeft, name);
  for (double level = lowest; level <= highest; ++level) {
    const double y = bottom - scale * (level - lowest);
    svg += fmt::format("<path d=\"M{} {}H{}\" stroke=\"#ddd\"/><text x=\"4\" y=\"{}\">{:.3g} s</text>\n",
                       kLeft, y, right, y + 4, std::exp2(level));
  }
  for (size_t i = 0; i < lengths.size(); ++i)
    svg += fmt::format("<text x=\"{}\" y=\"{}\">2^{}</text>\n", kLeft + kUnit * static_cast<double>(i) - 10,
                       bottom + 18, std::lround(std::log2(static_cast<double>(lengths[i]))));
  for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
    std::string path;
    double y = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      y = bottom - scale * (std::log2(rows[i][phase].seconds) - lowest);
      path += fmt::format("{}{} {:.1f}", i ? "L" : "M", kLeft + kUnit * static_cast<double>(i), y);
    }
    svg += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{:.1f}\" "
        "fill=\"{}\">{}</text>\n",
        path, kColours[phase], right + 6, y + 4, kColours[phase], kPhases[phase]);
  }
  return svg + "</svg>\n";
}

void grow(const std::string& name, int64_t largest, const std::string& file) {
  std::vector<int64_t> lengths;
  std::vector<Row> rows;
  fmt::print("{}, B = H = 1, K = V = 16, one thread: processor seconds, MB\n\n| T |", name);
  for (const char* phase : kPhases) fmt::print(" {} | per 2 T |", phase);
  fmt::print("\n|---:|{}\n", "---:|---:|---:|---:|---:|---:|");
  for (int64_t T = 1024; T <= largest; T *= 2) {
    lengths.push_back(T);
    rows.emplace_back();
    fmt::print("| {} |", T);
    for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
      const Cost cost = measured(phase, name, T);
      rows.back().push_back(cost);
      const std::string growth =
          rows.size() < 2 ? "" : fmt::format("{:.2f}", cost.seconds / rows[rows.size() - 2][phase].seconds);
      fmt::print(" {:.4f} s, {:.0f} MB | {} |", cost.seconds, cost.megabytes, growth);
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
  if (!file.empty()) write_file(file, chart(name, lengths, rows));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    assay::grow(argc > 1 ? argv[1] : "gla.chunk", argc > 2 ? std::atoll(argv[2]) : int64_t{1} << 20,
                argc > 3 ? argv[3] : "");
    return 0;
  } catch (const assay::BadInput& error) {
    fmt::print(stderr, "growth_bench: {}\n", error.what());
    return 2;
  }
}
