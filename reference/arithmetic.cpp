#include "reference/arithmetic.h"

#include <algorithm>
#include <iterator>

namespace assay {

std::string_view name_of(ArithmeticUnit unit) {
  switch (unit) {
    case ArithmeticUnit::relative:
      return "relative";
    case ArithmeticUnit::per_nat:
      return "relative, per nat";
    case ArithmeticUnit::absolute:
      return "absolute";
    case ArithmeticUnit::tokens:
      return "tokens";
    case ArithmeticUnit::roundoff:
      return "u of a format";
  }
  return "";
}

bool claims_exact(const Arithmetic& a) {
  return std::all_of(std::begin(kArithmeticFields), std::end(kArithmeticFields),
                     [&](const auto& field) { return field.error(a) == 0; });
}

bool claims_exact(const AdjointArithmetic& a) {
  return claims_exact(a.state) && claims_exact(a.adjoint) &&
         std::all_of(std::begin(kAdjointFields), std::end(kAdjointFields),
                     [&](const auto& field) { return field.error(a) == 0; });
}

}  // namespace assay
