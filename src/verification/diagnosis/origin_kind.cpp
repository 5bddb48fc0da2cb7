#include "src/verification/diagnosis/origin_kind.h"

#include <cmath>

#include "src/base/vm/matrix_form.h"

namespace assay {
namespace {

/// Operands as a mul, an fma or a tensor-core sum pairs them: factors first, then an addend.
bool is_zero_times_infinity(double a, double b) {
  return (a == 0 && std::isinf(b)) || (std::isinf(a) && b == 0);
}

OriginKind kind_of_infinity(std::string_view opcode) {
  if (opcode.starts_with("ex2.")) return OriginKind::exp_overflow;
  if (opcode.starts_with("cvt.")) return OriginKind::conversion_overflow;
  if (opcode.starts_with("lg2.")) return OriginKind::logarithm_of_zero;
  for (std::string_view pole : {"rcp.", "rsqrt.", "div."})
    if (opcode.starts_with(pole)) return OriginKind::division_by_zero;
  return OriginKind::accumulation_overflow;
}

}  // namespace

OriginKind kind_of(vm::Source source) {
  switch (source) {
    case vm::Source::input:
      return OriginKind::input;
    case vm::Source::unwritten:
      return OriginKind::unwritten_memory;
    case vm::Source::beyond:
      return OriginKind::beyond;
    default:
      return OriginKind::literal;
  }
}

OriginKind origin_kind(std::string_view opcode, const vm::Event& event) {
  if (!event.born) {
    for (const vm::EventOperand& o : event.operands)
      if (!std::isfinite(o.value) && o.parent < 0) return kind_of(o.source);
    return OriginKind::literal;
  }
  const auto& operands = event.operands;
  if (std::isinf(event.result)) {
    // A divisor that is not zero: the quotient itself was too large. To .ftz forms a subnormal is zero.
    const bool flushes = opcode.find(".ftz") != std::string_view::npos;
    if (opcode.starts_with("div.") && operands.size() == 2 && operands[1].value != 0 &&
        !(flushes && std::fabs(operands[1].value) < 0x1p-126))
      return OriginKind::accumulation_overflow;
    if (opcode.starts_with("rcp.") && operands.size() == 1 && std::fabs(operands[0].value) >= 0x1p-126)
      return OriginKind::accumulation_overflow;
    return kind_of_infinity(opcode);
  }
  if (opcode.starts_with("div."))
    return operands.size() == 2 && operands[1].value == 0 ? OriginKind::division_by_zero
                                                          : OriginKind::infinity_divided_by_infinity;
  for (std::string_view root : {"sin.", "cos."})
    if (opcode.starts_with(root)) return OriginKind::infinite_argument;
  for (std::string_view root : {"sqrt.", "rsqrt.", "lg2."})
    if (opcode.starts_with(root)) return OriginKind::negative_argument;
  const bool multiplies = opcode.starts_with("mul.") || opcode.starts_with("fma.") ||
                          opcode.starts_with("mad.") || vm::is_matrix_product(opcode);
  for (size_t i = 0; multiplies && i + 1 < operands.size(); i += 2)
    if (is_zero_times_infinity(operands[i].value, operands[i + 1].value)) return OriginKind::zero_times_infinity;
  return OriginKind::infinity_minus_infinity;
}

}  // namespace assay
