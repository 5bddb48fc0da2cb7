#include "src/verification/compare/formula.h"

#include <cassert>
#include <cmath>

namespace assay {
namespace {

/// Below it numbers are flushed, clamped, or keep few digits: nothing is judged that finely.
constexpr double kSmallestNormal = 0x1p-126;

/// The exact value is one double: rounded once, when it was put together.
constexpr double kRoundoff = 0x1p-53;
/// Of the output's size, and of an element that is larger.
constexpr double kOfDoubles = 0x1p-44;

/// What that makes of the output: the declared underflow, without the rounding of the output to its format.
double underflow_of(const Tensor& like, const ReferenceOutput& reference, size_t i) {
  if (reference.underflow.empty()) return kSmallestNormal;
  return kSmallestNormal + std::fmax(reference.underflow[i] - min_subnormal(like.dtype) / 2, 0);
}

}  // namespace

double size_of(const ReferenceOutput& reference) {
  double sum = 0;
  int64_t finite = 0;
  for (const double x : reference.mid)
    if (std::isfinite(x)) sum += x * x, ++finite;
  return finite ? std::sqrt(sum / static_cast<double>(finite)) : 0;
}

double allowed_difference(const Tensor& like, const vm::ExactOutput& exact, const ReferenceOutput& reference,
                          double size, size_t element) {
  const double value = std::fabs(exact.value[element]);
  const double rounding = value * kRoundoff + kOfDoubles * std::fmax(size, value);
  return reference.rad[element] + exact.slack[element] + rounding + underflow_of(like, reference, element);
}

FormulaOutput compare_formula(const Tensor& like, const vm::ExactOutput& exact,
                              const ReferenceOutput& reference) {
  assert(exact.value.size() == reference.mid.size());
  FormulaOutput output;
  output.name = reference.name;
  output.elements = like.size();
  const double size = size_of(reference);
  double worst = -1;
  for (size_t i = 0; i < reference.mid.size(); ++i) {
    const double expected = reference.mid[i], allowed = allowed_difference(like, exact, reference, size, i);
    if (!std::isfinite(exact.value[i]) || !std::isfinite(expected) || !std::isfinite(allowed)) continue;
    const double difference = std::fabs(exact.value[i] - expected);
    ++output.judged;
    output.violation += difference > allowed;
    output.max_difference = std::fmax(output.max_difference, difference);
    output.max_allowed = std::fmax(output.max_allowed, allowed);
    const double ratio = difference == 0 ? 0 : difference / allowed;
    if (ratio <= worst) continue;
    worst = ratio;
    const auto flat = static_cast<int64_t>(i);
    output.worst = {{}, flat, exact.value[i], expected, difference, allowed};
  }
  if (output.worst.flat >= 0) output.worst.element = like.element_name(output.worst.flat);
  output.max_difference = size > 0 ? output.max_difference / size : 0;
  output.max_allowed = size > 0 ? output.max_allowed / size : 0;
  return output;
}

}  // namespace assay
