#include "reference/rounding_noise.h"

#include <cmath>

namespace assay {
namespace {

template <typename Declared, size_t n>
void remove_roundings(const ArithmeticField<Declared> (&fields)[n], double u, Declared& a) {
  for (const auto& field : fields) {
    if (field.unit == ArithmeticUnit::roundoff) a.*std::get<double Declared::*>(field.member) = 0;
    if (field.unit != ArithmeticUnit::relative) continue;
    double& declared = a.*std::get<double Declared::*>(field.member);
    const double rounded = std::pow(1 + u, roundings_in(declared, u)) - 1;
    if (rounded > 0) declared = std::fmax(0, (declared - rounded) / (1 + rounded)) + 0x1p-48;
  }
}

template <typename Declared, size_t n>
bool any_rounding(const ArithmeticField<Declared> (&fields)[n], double u, const Declared& a) {
  for (const auto& field : fields)
    if (field.unit == ArithmeticUnit::relative && roundings_in(field.error(a), u) > 0) return true;
  return false;
}

}  // namespace

double operand_roundoff(Dtype dtype) {
  return dtype == Dtype::bf16 || dtype == Dtype::fp16 ? unit_roundoff(dtype) : 1;
}

int roundings_in(double declared, double u) {
  return static_cast<int>(std::log1p(declared) / std::log1p(u) + 0x1p-20);
}

Arithmetic without_roundings(const Arithmetic& declared, double u) {
  Arithmetic a = declared;
  remove_roundings(kArithmeticFields, u, a);
  return a;
}

AdjointArithmetic without_roundings(const AdjointArithmetic& declared, double u) {
  AdjointArithmetic a = declared;
  a.state = without_roundings(a.state, u), a.adjoint = without_roundings(a.adjoint, u);
  remove_roundings(kAdjointFields, u, a);
  return a;
}

bool rounds_operands(const Arithmetic& a, double u) {
  return any_rounding(kArithmeticFields, u, a);
}

bool rounds_operands(const AdjointArithmetic& a, double u) {
  return rounds_operands(a.state, u) || rounds_operands(a.adjoint, u) || any_rounding(kAdjointFields, u, a);
}

}  // namespace assay
