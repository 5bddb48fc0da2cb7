#include "reference/domain.h"

#include <fmt/format.h>

#include <cmath>

#include "reference/slices.h"

namespace assay {
namespace {

bool not_negative(const ArgumentSpec& argument) {
  return argument.not_negative || argument.role == Role::positive;
}

bool inside(const ArgumentSpec& argument, double x) {
  if (not_negative(argument) && !(x >= 0)) return false;
  const Role role = argument.role;
  if (role == Role::rate && !(x >= 0 && x <= kLargestRate)) return false;
  return std::isfinite(x) && (role != Role::log_decay || (x >= kSmallestLogDecay && x <= 0));
}

std::string reason(const ArgumentSpec& argument) {
  if (not_negative(argument)) return "this input must be finite and not negative";
  if (argument.role == Role::rate) return fmt::format("a rate must lie in [0, {:.0f}]", kLargestRate);
  return argument.role == Role::log_decay
             ? fmt::format("a log decay must lie in [{:.0f}, 0]", kSmallestLogDecay)
             : "this input must be finite";
}

}  // namespace

std::vector<DomainFault> outside_domain(const Operator& op, const TensorMap& inputs) {
  std::vector<DomainFault> faults;
  std::vector<ArgumentSpec> arguments = op.inputs;
  for (const ArgumentSpec& cotangent : op.cotangents()) arguments.push_back(cotangent);
  for (const ArgumentSpec& argument : arguments) {
    const auto found = inputs.find(std::string(argument.name));
    if (found == inputs.end()) continue;
    const Tensor& tensor = found->second;
    if (!tensor.is_held()) continue;  // drawn inside the domain, and too large to look through
    DomainFault fault{tensor.name, 0, "", 0, ""};
    double run[256];
    for (int64_t i = 0; i < tensor.size(); i += 256) {
      const int64_t count = std::min<int64_t>(256, tensor.size() - i);
      decode_run(tensor, i, count, run);
      for (int64_t j = 0; j < count; ++j) {
        if (inside(argument, run[j])) continue;
        if (fault.elements++ > 0) continue;
        fault.input = std::string(argument.name), fault.element = tensor.element_name(i + j);
        fault.value = run[j], fault.reason = reason(argument);
      }
    }
    if (fault.elements) faults.push_back(fault);
  }
  return faults;
}

std::string describe(const DomainFault& fault) {
  return fmt::format("{} = {} ({} element{}): {}", fault.element, fault.value, fault.elements,
                     fault.elements == 1 ? "" : "s", fault.reason);
}

}  // namespace assay
