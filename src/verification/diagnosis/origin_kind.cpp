#include "src/verification/diagnosis/origin_kind.h"

#include <cmath>

#include "src/base/vm/matrix_form.h"

namespace assay {
namespace {

using ptx::Operation;

/// Operands as a mul, an fma or a tensor-core sum pairs them: factors first, then an addend.
bool is_zero_times_infinity(double a, double b) {
  return (a == 0 && std::isinf(b)) || (std::isinf(a) && b == 0);
}

std::string kind_of_infinity(Operation operation) {
  switch (operation) {
    case Operation::ex2:
      return "exp-overflow";
    case Operation::cvt:
      return "conversion-overflow";
    case Operation::lg2:
      return "logarithm-of-zero";
    case Operation::rcp:
    case Operation::rsqrt:
    case Operation::div:
      return "division-by-zero";
    default:
      return "accumulation-overflow";
  }
}

bool multiplies(Operation operation) {
  return operation == Operation::mul || operation == Operation::fma || operation == Operation::mad ||
         vm::is_matrix_product(operation);
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

std::string origin_kind(const ptx::Form& form, const vm::Event& event) {
  if (!event.born) {
    for (const vm::EventOperand& o : event.operands)
      if (!std::isfinite(o.value) && o.parent < 0) return kind_of(o.source);
    return "literal";
  }
  const auto& operands = event.operands;
  const Operation operation = form.operation;
  if (std::isinf(event.result)) {
    // A divisor that is not zero: the quotient itself was too large. To .ftz forms a subnormal is zero.
    if (operation == Operation::div && operands.size() == 2 && operands[1].value != 0 &&
        !(form.ftz && std::fabs(operands[1].value) < 0x1p-126))
      return "accumulation-overflow";
    if (operation == Operation::rcp && operands.size() == 1 && std::fabs(operands[0].value) >= 0x1p-126)
      return "accumulation-overflow";
    return kind_of_infinity(operation);
  }
  switch (operation) {
    case Operation::div:
      return operands.size() == 2 && operands[1].value == 0 ? "division-by-zero" : "infinity-divided-by-infinity";
    case Operation::sin:
    case Operation::cos:
      return "infinite-argument";
    case Operation::sqrt:
    case Operation::rsqrt:
    case Operation::lg2:
      return "negative-argument";
    default:
      break;
  }
  for (size_t i = 0; multiplies(operation) && i + 1 < operands.size(); i += 2)
    if (is_zero_times_infinity(operands[i].value, operands[i + 1].value)) return "zero-times-infinity";
  return "infinity-minus-infinity";
}

}  // namespace assay
