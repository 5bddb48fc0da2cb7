#include "kernels/declared_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// (1 + u)^n - 1 of fp32; expm1 and log1p of the host err by a few 2^-53, far below the relative 2^-40 added.
double roundings(double n) {
  return std::expm1(n * std::log1p(0x1p-24)) * (1 + 0x1p-40);
}

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
  a.readout = roundings(scope.variables.at("K") + 2);
  a.underflow = 0x1p-126;
  a.output_roundoff = scope.variables.at("u");
  return a;
}

/// Its gradients, made likewise: dq, dk and dg are sums over V, dv over K.
///   adjoint.write  scale rounded to fp32, its products with q and with do.
///   state.readout  dq: V products, V - 1 additions, scale and the product with it.
///   gate_readout   dg: V products, V - 1 additions, the product with the decay.
///   inner          between two recurrences: the longer of both sums, two products beside it.
///   total          a sum over every token.
void add_fp32_gradients(const ExpressionScope& scope, AdjointArithmetic& a) {
  const double K = scope.variables.at("K"), V = scope.variables.at("V");
  a.adjoint.write = roundings(3);
  a.state.readout = roundings(V + 2);
  a.adjoint.readout = roundings(V);
  a.value_readout = roundings(K);
  a.gate_readout = roundings(V + 1);
  a.inner = std::max(a.inner, roundings(std::max(K, V) + 2));
  a.total = roundings(scope.variables.at("B") * scope.variables.at("T"));
}

struct Preset {
  const char* name;
  Arithmetic (*make)(const ExpressionScope&);
};

/// "triton-chunk": chunks of 64 tokens as Triton's libraries write them. Operands of products are of the
/// inputs' format, or TF32 where that is fp32 (10 bits of fraction, cut off); sums and states are fp32;
/// decays are e^(G_i - G_j) of sums of g from the chunk's start, rounded to the operands' format once they
/// have scaled one. u: of the inputs' format; tensor cores sum 64 products within 200 2^-24.
///   decay_per_nat    64 additions, the constant log2(e), its product and the difference: 72 2^-24.
///   prefix_per_nat   two sums of a difference share the additions that a thread makes one after the other;
///                    of m tokens a thread, 64 / m lanes and a tree, the others are 63 (m = 64) or at most
///                    2 (m - 1 + log2 (64 / m)) <= 64; each sum's product with log2(e), and that constant:
///                    70 2^-24.
///   write_decayed    k after its decay, rounded; the exponential: 2^-21.
///   boundary         the state decayed, a product of 64 rows added: 100 2^-24.
///   readout          the state rounded to the operands' format, the scores likewise; q as TF32; sums.
///   readout_decayed  q after its decay, rounded; the exponential.
///   underflow        operands of fp16 lose what is below half of its smallest subnormal.
Arithmetic triton_chunk(const ExpressionScope& scope) {
  const double u = scope.variables.at("u"), of_operand = std::max(u, 0x1p-10), unit = 0x1p-24;
  Arithmetic a;
  a.chunk = 64;
  a.decay_per_nat = 72 * unit;
  a.prefix_per_nat = 70 * unit;
  a.write = u < 0x1p-10 ? 0x1p-9 : 0;  // both operands are cut to TF32
  a.write_decayed = of_operand + 0x1p-21;
  a.boundary = 100 * unit;
  a.readout = of_operand + 0x1p-10 + 200 * unit;
  a.readout_decayed = of_operand + 0x1p-21;
  a.underflow = u == unit_roundoff(Dtype::fp16) ? min_subnormal(Dtype::fp16) / 2 : 0x1p-126;
  a.output_roundoff = u;
  return a;
}

/// Sums of products by tensor cores: 64 of them within 200 2^-24.
double sums_of(double products) {
  return 200 * 0x1p-24 * std::ceil(products / 64);
}

/// A number on its way into a product: in half formats rounded or stored before, `roundings` of these; in
/// fp32 both operands of each of `products` are cut to TF32, 10 bits of fraction.
double operands(const ExpressionScope& scope, int roundings, int products) {
  const double u = scope.variables.at("u");
  return u > 0x1p-24 ? roundings * u : 2 * products * 0x1p-10;
}

/// "triton-delta-chunk", "triton-kda-chunk": delta rules in chunks of 64 tokens as Triton's libraries write
/// them: X = (1 + N)^-1 of a whole chunk, stored in the inputs' format, as are w = X (beta k e^G), X (beta
/// v), the states at chunks' starts and the updates; states themselves fp32. Formats and decays as those of
/// "triton-chunk". With gates per channel (kda) both operands of k . k and q . k are products with a decay.
///   removal    w: beta k e^G rounded, w stored; the state as an operand; beta v rounded and its product
///              stored: of each part at most three. Two products, X with beta k e^G and w with the state.
///   solve      N, of k . k, and X stored.
///   solved     the sums of X's products.
///   write      the update with its decay, an operand; of kda k with its own, too.
///   readout    q . k as an operand with the updates; the state as one.
Arithmetic triton_delta_chunk(const ExpressionScope& scope, bool by_channel) {
  const int scaled = by_channel ? 2 : 0;
  const double sums_over_keys = sums_of(scope.variables.at("K"));
  Arithmetic a = triton_chunk(scope);
  a.write_decayed = a.readout_decayed = a.prefix_per_nat = 0;  // the bound by norms has no such term
  a.write = operands(scope, 1 + scaled / 2, 1) + 0x1p-21;
  a.readout = operands(scope, 2 + scaled, 2) + sums_over_keys + sums_of(64) + 0x1p-20;
  a.solve_tokens = 0;
  a.removal = operands(scope, 3, 2) + sums_over_keys + sums_of(64) + 0x1p-20;
  a.solve = operands(scope, 1 + scaled, 1) + sums_over_keys + sums_of(64) + 0x1p-20;
  a.solved = sums_of(64);
  return a;
}
Arithmetic triton_delta(const ExpressionScope& scope) {
  return triton_delta_chunk(scope, false);
}
Arithmetic triton_kda(const ExpressionScope& scope) {
  return triton_delta_chunk(scope, true);
}

/// Their gradients, by the longest way that a number takes through operands and what is stored.
///   adjoint.removal  k^T G: q . k, its product with do stored, k e^G, the state dL/dS as an operand, the sum
///                    stored, w as in `removal`: seven, in four products.
///   value_readout    dv: that sum, stored and X^T an operand.
///   dg               through w and X: dv, the state and their product stored, beta k e^G, the matrix of
///                    these as an operand, X twice, their product and its result: nine, in five products.
///   dk, dbeta        and one product more, each part of dk stored: eleven.
///   total            several heads' gradients, each stored, added.
void add_delta_gradients(const ExpressionScope& scope, bool by_channel, AdjointArithmetic& a) {
  const int scaled = by_channel ? 2 : 0;
  const double sums = sums_of(scope.variables.at("K")) + sums_of(scope.variables.at("V")) + 3 * sums_of(64);
  const double way = operands(scope, 11 + scaled, 6) + sums + 0x1p-19;
  a.state.readout = operands(scope, 3 + scaled, 2) + sums + 0x1p-20;
  a.adjoint.write = operands(scope, 1 + scaled, 2) + 0x1p-20;
  a.adjoint.removal = operands(scope, 7 + scaled, 4) + sums + 0x1p-20;
  a.adjoint.readout = way, a.inner = way;
  a.gate_sums = operands(scope, 9 + scaled, 5) + sums + 0x1p-19;
  a.value_readout = operands(scope, 2, 1) + sums_of(64) + 0x1p-20;
  a.total = scope.variables.at("u") + 256 * 0x1p-24;
}

/// "triton-gsa-chunk": both passes of gated slot attention in chunks of 64 tokens as Triton's libraries write
/// them, formats and decays as those of "triton-chunk".
///   logits           q scaled and rounded; the state as an operand, or the scores stored; the part between
///                    chunks stored, and the sum; two products, the exponential of the decay.
///   readout          of the second pass: the state and the scores as operands, over M slots.
///   divide           two exponentials by ex2.approx (2^-22 each, their argument's roundings apart), a sum of
///                    at most 128 terms, the quotient (2^-22), p stored.
///   logits_per_nat   the difference to the largest, its product with log2(e), that constant.
///   own_*            by torch in fp32: log(e^a + e^b) of one exponential, one logarithm, two sums; e^(s - z)
///                    stored in the inputs' format.
Arithmetic triton_gsa(const ExpressionScope& scope) {
  Arithmetic a = triton_chunk(scope);
  const double unit = 0x1p-24, of_slots = sums_of(scope.variables.at("M"));
  a.readout = operands(scope, 2, 2) + of_slots + sums_of(64) + 0x1p-20;
  a.logits = operands(scope, 4, 2) + sums_of(scope.variables.at("K")) + sums_of(64) + 0x1p-20;
  a.divide = operands(scope, 1, 0) + 3 * 0x1p-22 + 140 * unit;
  a.logits_per_nat = 3 * unit;
  a.own_sum = 6 * unit;
  a.own_weights = operands(scope, 1, 0) + 8 * unit;
  a.own_weights_per_nat = 4 * unit;
  return a;
}

/// Its gradients. dp is made as `readout` is, and stored; p . dp, the difference and dy are fp32, dy stored.
///   inner            dp: the state and do with its decay as operands, the scores' gradient, dp stored: four,
///                    in two products; a sum of M products; dy stored.
///   state.readout    dq: dy with its decay, the state, dA as operands and stored: four, in two products.
///   adjoint.write    p, or q and dy, as operands: two, in one product.
///   adjoint.readout  dk, ds: k or q . k, stored, do or dy with its decay, dL/dS as operands, each of three
///                    parts stored: five, in two products.
///   gate_sums        dg is a sum of q dq and k dk of both passes, which leaves roundings where nothing later
///                    matters; the bound of slots has no such term and judges it as e^g rowsum(S (.) G).
void add_gsa_gradients(const ExpressionScope& scope, AdjointArithmetic& a) {
  const double sums = sums_of(scope.variables.at("K")) + sums_of(scope.variables.at("V")) +
                      sums_of(scope.variables.at("M")) + 2 * sums_of(64);
  a.inner = operands(scope, 5, 2) + sums + 0x1p-19;
  a.state.readout = operands(scope, 4, 2) + sums + 0x1p-20;
  a.adjoint.write = operands(scope, 2, 1) + 0x1p-20;
  a.adjoint.readout = a.value_readout = operands(scope, 5, 2) + sums + 0x1p-20;
  a.gate_sums = operands(scope, 6, 2) + sums + 0x1p-19;
  a.gate_output_roundoff = std::max(a.gate_output_roundoff, scope.variables.at("u"));
}

/// Whose gradients of gates are sums of q dq - k dk, with dq and dk of three rounded operands each, and where
/// q is rounded after its product with `scale`, before its decay, on its way into dL/dS.
///   gate_prefix  the chunk's sum less a prefix: 63 additions each, three or four that put dg together (where
///                the own token's decay does not act on what it reads, q dq is taken away again), 2^-24 each:
///                130, and 131 with what gamma has beyond the first order.
constexpr const char* kSumsOfGates = "triton-chunk";

constexpr const char *kRecurrent = "fp32-recurrent", *kDelta = "triton-delta-chunk",
                     *kKda = "triton-kda-chunk", *kGsa = "triton-gsa-chunk";

constexpr Preset kPresets[] = {{kRecurrent, fp32_recurrent},
                               {"triton-chunk", triton_chunk},
                               {kDelta, triton_delta},
                               {kKda, triton_kda},
                               {kGsa, triton_gsa}};

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

template <class Declared, size_t n>
void set_numbers(Declared& result, const ArithmeticField<Declared> (&fields)[n],
                 const std::map<std::string, std::string>& numbers, const ExpressionScope& scope,
                 const PlanDocument& plan, const std::string& pointer) {
  for (const auto& [name, text] : numbers) {
    const auto* const field =
        std::find_if(std::begin(fields), std::end(fields), [&](const auto& f) { return name == f.name; });
    if (field == std::end(fields)) {
      std::string known = "preset";
      for (const auto& f : fields) known += ", " + std::string(f.name);
      throw BadInput(fmt::format("{}: unknown field \"{}\"; known here: {}", plan.at(pointer), name, known));
    }
    const std::string where = plan.at(pointer + "/" + name);
    if (const auto* count = std::get_if<int64_t Declared::*>(&field->member))
      result.*(*count) = evaluate_integer(text, scope, where, 0, int64_t{1} << 40);
    else
      result.*std::get<double Declared::*>(field->member) = error_value(text, scope, where);
  }
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
  set_numbers(result, kArithmeticFields, plan.arithmetic, scope, plan, "/arithmetic");
  return result;
}

AdjointArithmetic declared_adjoint_arithmetic(const PlanDocument& plan, const ExpressionScope& scope) {
  const Arithmetic forward = declared_arithmetic(plan, scope);
  AdjointArithmetic result;
  result.state = result.adjoint = forward;
  result.value_readout = result.gate_readout = result.total = forward.readout;
  result.value_readout_decayed = result.gate_readout_decayed = forward.readout_decayed;
  result.value_readout_scaled = forward.readout_scaled;
  result.bonus = forward.bonus;
  result.inner = std::max({forward.readout, forward.divide, forward.logits, forward.removal});
  result.gate_output_roundoff = scope.variables.at("u_gate");
  if (plan.arithmetic_preset == kRecurrent) add_fp32_gradients(scope, result);
  if (plan.arithmetic_preset == kSumsOfGates) {
    result.gate_sums = 4 * std::max(scope.variables.at("u"), 0x1p-10);
    result.gate_prefix = 131 * 0x1p-24;
    result.adjoint.write += scope.variables.at("u");
  }
  if (plan.arithmetic_preset == kDelta || plan.arithmetic_preset == kKda)
    add_delta_gradients(scope, plan.arithmetic_preset == kKda, result);
  if (plan.arithmetic_preset == kGsa) add_gsa_gradients(scope, result);
  const std::string pointer = "/arithmetic/backward";
  set_numbers(result.state, kArithmeticFields, plan.backward_state, scope, plan, pointer + "/state");
  set_numbers(result.adjoint, kArithmeticFields, plan.backward_adjoint, scope, plan, pointer + "/adjoint");
  set_numbers(result, kAdjointFields, plan.backward, scope, plan, pointer);
  return result;
}

}  // namespace assay
