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

OriginKind kind_of_infinity(Operation operation) {
  switch (operation) {
    case Operation::ex2:
      return OriginKind::exp_overflow;
    case Operation::cvt:
      return OriginKind::conversion_overflow;
    case Operation::lg2:
      return OriginKind::logarithm_of_zero;
    case Operation::rcp:
    case Operation::rsqrt:
    case Operation::div:
      return OriginKind::division_by_zero;
    default:
      return OriginKind::accumulation_overflow;
  }
}

bool multiplies(Operation operation) {
  return operation == Operation::mul || operation == Operation::fma || operation == Operation::mad ||
         vm::is_matrix_product(operation);
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

OriginKind origin_kind(const ptx::Form& form, const vm::Event& event) {
  if (!event.born) {
    for (const vm::EventOperand& o : event.operands)
      if (!std::isfinite(o.value) && o.parent < 0) return kind_of(o.source);
    return OriginKind::literal;
  }
  const auto& operands = event.operands;
  const Operation operation = form.operation;
  if (std::isinf(event.result)) {
    // A divisor that is not zero: the quotient itself was too large. To .ftz forms a subnormal is zero.
    if (operation == Operation::div && operands.size() == 2 && operands[1].value != 0 &&
        !(form.ftz && std::fabs(operands[1].value) < 0x1p-126))
      return OriginKind::accumulation_overflow;
    if (operation == Operation::rcp && operands.size() == 1 && std::fabs(operands[0].value) >= 0x1p-126)
      return OriginKind::accumulation_overflow;
    return kind_of_infinity(operation);
  }
  switch (operation) {
    case Operation::div:
      return operands.size() == 2 && operands[1].value == 0 ? OriginKind::division_by_zero
                                                            : OriginKind::infinity_divided_by_infinity;
    case Operation::sin:
    case Operation::cos:
      return OriginKind::infinite_argument;
    case Operation::sqrt:
    case Operation::rsqrt:
    case Operation::lg2:
      return OriginKind::negative_argument;
    default:
      break;
  }
  for (size_t i = 0; multiplies(operation) && i + 1 < operands.size(); i += 2)
    if (is_zero_times_infinity(operands[i].value, operands[i + 1].value))
      return OriginKind::zero_times_infinity;
  return OriginKind::infinity_minus_infinity;
}

}  // namespace assay
