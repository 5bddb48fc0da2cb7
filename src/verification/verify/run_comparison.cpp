#include "src/verification/verify/run_comparison.h"

#include <fmt/format.h>

#include "src/verification/compare/compare.h"

namespace assay {

int64_t compare_runs(const Outcome& first, const Outcome& second, const std::string& property,
                     Verification& v) {
  if (first.trap || second.trap) {
    if (first.trap && second.trap) return 0;
    const Trap& trap = first.trap ? *first.trap : *second.trap;
    v.properties_failed.push_back(
        fmt::format("{}: only one of the two runs trapped: {}", property, trap.message));
    return 0;
  }
  int64_t total = 0;
  for (const auto& [name, tensor] : first.outputs) {
    const Tensor& other = second.outputs.at(name);
    int64_t at = -1;
    const int64_t differing = differing_elements(tensor, other, &at);
    if (differing == 0) continue;
    total += differing;
    const int digits = format(tensor.dtype).bytes * 2;
    v.properties_failed.push_back(fmt::format("{}: {} elements of {} differ, first {}: {:#0{}x} and {:#0{}x}",
                                              property, differing, name, tensor.element_name(at),
                                              tensor.bits(at), digits + 2, other.bits(at), digits + 2));
  }
  return total;
}

}  // namespace assay
