#include "src/verification/diagnosis/origin_kind.h"

#include <cmath>

#include "src/base/vm/matrix_form.h"

namespace assay {
namespace {

/// Operands as a mul, an fma or a tensor-core sum pairs them: factors first, then an addend.
bool is_zero_times_infinity(double a, double b) {
  return (a == 0 && std::isinf(b)) || (std::isinf(a) && b == 0);
}

std::string kind_of_infinity(std::string_view opcode) {
  if (opcode.starts_with("ex2.")) return "exp-overflow";
  if (opcode.starts_with("cvt.")) return "conversion-overflow";
  if (opcode.starts_with("lg2.")) return "logarithm-of-zero";
  for (std::string_view pole : {"rcp.", "rsqrt.", "div."})
    if (opcode.starts_with(pole)) return "division-by-zero";
  return "accumulation-overflow";
}

}  // namespace

std::string kind_of(vm::Source source) {
  switch (source) {
    case vm::Source::input:
      return "input";
    case vm::Source::unwritten:
      return "unwritten-memory";
    case vm::Source::beyond:
      return "beyond";
    default:
      return "literal";
  }
}

std::string origin_kind(std::string_view opcode, const vm::Event& event) {
  if (!event.born) {
    for (const vm::EventOperand& o : event.operands)
      if (!std::isfinite(o.value) && o.parent < 0) return kind_of(o.source);
    return "literal";
  }
  const auto& operands = event.operands;
  if (std::isinf(event.result)) {
    // A divisor that is not zero: the quotient itself was too large. To .ftz forms a subnormal is zero.
    const bool flushes = opcode.find(".ftz") != std::string_view::npos;
    if (opcode.starts_with("div.") && operands.size() == 2 && operands[1].value != 0 &&
        !(flushes && std::fabs(operands[1].value) < 0x1p-126))
      return "accumulation-overflow";
    if (opcode.starts_with("rcp.") && operands.size() == 1 && std::fabs(operands[0].value) >= 0x1p-126)
      return "accumulation-overflow";
    return kind_of_infinity(opcode);
  }
  if (opcode.starts_with("div."))
    return operands.size() == 2 && operands[1].value == 0 ? "division-by-zero"
                                                          : "infinity-divided-by-infinity";
  for (std::string_view root : {"sin.", "cos."})
    if (opcode.starts_with(root)) return "infinite-argument";
  for (std::string_view root : {"sqrt.", "rsqrt.", "lg2."})
    if (opcode.starts_with(root)) return "negative-argument";
  const bool multiplies = opcode.starts_with("mul.") || opcode.starts_with("fma.") ||
                          opcode.starts_with("mad.") || vm::is_matrix_product(opcode);
  for (size_t i = 0; multiplies && i + 1 < operands.size(); i += 2)
    if (is_zero_times_infinity(operands[i].value, operands[i + 1].value)) return "zero-times-infinity";
  return "infinity-minus-infinity";
}

}  // namespace assay
