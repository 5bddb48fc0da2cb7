#include "fuzz/bit_comparison.h"

#include <fmt/format.h>

#include "src/verification/compare/compare.h"

namespace assay {
std::string trap_text(const Trap& trap) {
  return fmt::format("trap: {}: {} at {}:{}", name_of(trap.kind), trap.message, trap.where.file,
                     trap.where.line);
}

Failure same_bits(const Tensor& expected, const Tensor& got) {
  if (expected.size() != got.size())
    return fmt::format("{}: {} against {}", expected.name, expected.shape_text(), got.shape_text());
  int64_t first = -1;
  const int64_t count = differing_elements(expected, got, &first);
  if (count == 0) return std::nullopt;
  return fmt::format("{}: {:.9g} ({:#x}) against {:.9g} ({:#x}); {} of {} elements differ",
                     expected.element_name(first), expected.value(first), expected.bits(first),
                     got.value(first), got.bits(first), count, expected.size());
}

Failure same_bits(const TensorMap& expected, const TensorMap& got) {
  for (const auto& [name, tensor] : expected) {
    const auto other = got.find(name);
    if (other == got.end()) return fmt::format("{}: missing from the second run", name);
    if (Failure failure = same_bits(tensor, other->second)) return failure;
  }
  return std::nullopt;
}

Failure same_outcome(const Outcome& expected, const Outcome& got) {
  if (expected.trap) return trap_text(*expected.trap);
  if (got.trap) return trap_text(*got.trap);
  return same_bits(expected.outputs, got.outputs);
}

}  // namespace assay
