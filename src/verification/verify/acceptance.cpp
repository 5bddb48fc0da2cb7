#include "src/verification/verify/acceptance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

void require_dtype(const Kernel& kernel, const char* what, Dtype dtype, const std::vector<Dtype>& accepted) {
  if (std::find(accepted.begin(), accepted.end(), dtype) != accepted.end()) return;
  std::vector<std::string_view> names;
  for (Dtype d : accepted) names.push_back(format(d).name);
  throw BadInput(fmt::format("{}: no {} {}; it takes {}", kernel.name, what, format(dtype).name,
                             fmt::join(names, ", ")));
}

void require_size(const Kernel& kernel, const char* axis, int64_t size, int64_t limit) {
  if (size > limit)
    throw BadInput(fmt::format("{}: {} = {} is beyond its limit of {}", kernel.name, axis, size, limit));
}

/// Inside the operator's domain, but beyond what this kernel promises to take.
std::optional<DomainFault> outside_kernel(const ArgumentSpec& spec, const Tensor& x,
                                          const KernelLimits& limits) {
  if (spec.role == Role::log_decay)
    return outside(x, {limits.gate_min, limits.gate_max},
                   fmt::format("this kernel takes log decays in [{}, {}]", limits.gate_min, limits.gate_max));
  if (spec.role == Role::rate && limits.rate_max < kLargestRate)
    return outside(x, {0, limits.rate_max},
                   fmt::format("this kernel takes rates in [0, {}]", limits.rate_max));
  return std::nullopt;
}

/// Bytes this process may use at most.
double memory_limit() {
  double limit = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  double group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group)
    limit = std::min(limit, group);  // "max": no number, no limit
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    limit = std::min(limit, static_cast<double>(addresses.rlim_cur));
  return limit;
}

}  // namespace

void require_memory(const ResolvedCase& c) {
  // An input is held by the case and by an engine; of an output there are two runs, five numbers of the
  // reference in double and a verdict.
  double bytes = 0;
  // Of a run of some blocks what is larger is made where it is touched.
  const double most = c.case_.blocks.empty() ? HUGE_VAL : static_cast<double>(kLargestHeld);
  for (const SizedArgument& input : c.inputs) {
    const auto held = static_cast<double>(input.shape.bytes());
    if (held <= most) bytes += 2 * held;
  }
  for (const SizedArgument& output : c.outputs) {
    const auto held = static_cast<double>(output.shape.bytes());
    if (held <= most) bytes += 2 * held + (5 * sizeof(double) + 1) * static_cast<double>(output.shape.size());
  }
  const double limit = memory_limit();
  if (bytes <= limit) return;
  throw NotEnoughMemory(
      fmt::format("this case needs about {:.3g} GiB of memory, {:.3g} GiB are there; make it smaller, or run "
                  "some blocks of it "
                  "(--blocks 0,last)",
                  bytes * 0x1p-30, limit * 0x1p-30));
}

ResolvedCase accepted(const Case& c, const Kernel& kernel) {
  const Operator& op = find_operator(kernel.operator_name);
  ResolvedCase resolved = resolve(c, op);
  const std::vector<Direction> directions = directions_of(kernel);
  if (std::find(directions.begin(), directions.end(), c.direction) == directions.end())
    throw BadInput(fmt::format("{}: no entry point for direction {}; it has {}", kernel.name,
                               name_of(c.direction), fmt::join(names_of(directions), ", ")));
  const bool has_gate = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& spec) {
    return spec.role == Role::log_decay && !c.without.contains(std::string(spec.name));
  });
  require_dtype(kernel, "dtype", c.dtype, kernel.limits.dtypes);
  if (has_gate) require_dtype(kernel, "gate dtype", c.gate_dtype, kernel.limits.gate_dtypes);
  require_size(kernel, "K", c.K, kernel.limits.max_K);
  require_size(kernel, "V", c.V, kernel.limits.max_V);
  require_size(kernel, "M", c.M, kernel.limits.max_M);
  if (const std::string why = kernel.refuses ? kernel.refuses(resolved) : ""; !why.empty())
    throw BadInput(fmt::format("{}: {}", kernel.name, why));
  return resolved;
}

std::vector<std::string> domain_faults(const TensorMap& inputs, const Kernel& kernel, const Operator& op) {
  std::vector<std::string> lines;
  for (const DomainFault& fault : outside_domain(op, inputs)) lines.push_back(describe(fault));
  if (!lines.empty()) return lines;
  for (const ArgumentSpec& spec : op.inputs) {
    const auto found = inputs.find(std::string(spec.name));
    if (found == inputs.end()) continue;
    if (const auto fault = outside_kernel(spec, found->second, kernel.limits))
      lines.push_back(describe(*fault));
  }
  return lines;
}

}  // namespace assay
