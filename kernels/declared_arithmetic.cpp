#include "kernels/declared_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// "fp32-recurrent": one token after the other in fp32. S is kept in fp32, decayed by expf, exp2f or
/// ex2.approx of g log2(e), and written and read with fused or separate multiplications and additions, sums
/// over K in any order. u = 2^-24.
///   decay          ex2.approx.f32 errs by at most 2 ulp <= 2^-22 (PTX ISA, ex2; expf is tighter: CUDA C++
///                  Programming Guide, 1 ulp), the product with S by u:
///                  (1 + 2^-22)(1 + u) - 1 < 2^-22 + 2^-24 + 2^-45.
///   decay_per_nat  the constant log2(e) and the product g log2(e) err by u each: the exponent by
///                  |g|(2u + u^2) nats.
///   write          k v rounded by itself: u.
///   step           the addition S + k v: u.
///   readout        scale rounded to fp32, K products, K - 1 additions, the product with scale:
///                  (1 + u)^(K + 2) - 1.
///   underflow      results below 2^-126 may be flushed.
Arithmetic fp32_recurrent(const ExpressionScope& scope) {
  const double u = 0x1p-24;
  Arithmetic a;
  a.decay = 0x1p-22 + 0x1p-24 + 0x1p-45;
  a.decay_per_nat = 2 * u + u * u;
  a.write = u;
  a.step = u;
  // expm1 and log1p of the host err by a few 2^-53, far below the relative 2^-40 added.
  a.readout = std::expm1((scope.variables.at("K") + 2) * std::log1p(u)) * (1 + 0x1p-40);
  a.underflow = 0x1p-126;
  a.output_roundoff = scope.variables.at("u");
  return a;
}

struct Preset {
  const char* name;
  Arithmetic (*make)(const ExpressionScope&);
};

constexpr Preset kPresets[] = {{"fp32-recurrent", fp32_recurrent}};

Arithmetic preset_of(const PlanDocument& plan, const ExpressionScope& scope) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (*plan.arithmetic_preset == preset.name) return preset.make(scope);
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw BadInput(fmt::format("{}: no arithmetic preset is called \"{}\"; there are: {}",
                             plan.at("/arithmetic"), *plan.arithmetic_preset, known));
}

double error_value(const std::string& text, const ExpressionScope& scope, const std::string& where) {
  const double value = evaluate(text, scope, where);
  if (!(value >= 0 && std::isfinite(value)))
    throw BadInput(fmt::format("{}: \"{}\" = {}; an error is finite and at least 0", where, text, value));
  return value;
}

}  // namespace

Arithmetic declared_arithmetic(const PlanDocument& plan, const ExpressionScope& scope) {
  Arithmetic result;
  if (plan.arithmetic_preset)
    result = preset_of(plan, scope);
  else if (!plan.arithmetic.contains("output_roundoff"))
    throw BadInput(
        fmt::format("{}: without a preset, output_roundoff must be written (\"u\": that of the case's dtype)",
                    plan.at("/arithmetic")));
  for (const auto& [name, text] : plan.arithmetic) {
    const auto* const field = std::find_if(std::begin(kArithmeticFields), std::end(kArithmeticFields),
                                           [&](const auto& f) { return name == f.name; });
    if (field == std::end(kArithmeticFields)) {
      std::string known = "preset";
      for (const auto& f : kArithmeticFields) known += ", " + std::string(f.name);
      throw BadInput(
          fmt::format("{}: unknown field \"{}\"; known here: {}", plan.at("/arithmetic"), name, known));
    }
    const std::string where = plan.at("/arithmetic/" + name);
    if (const auto* count = std::get_if<int64_t Arithmetic::*>(&field->member))
      result.*(*count) = evaluate_integer(text, scope, where, 0, int64_t{1} << 40);
    else
      result.*std::get<double Arithmetic::*>(field->member) = error_value(text, scope, where);
  }
  return result;
}

}  // namespace assay
