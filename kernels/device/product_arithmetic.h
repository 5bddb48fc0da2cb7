// What tensor-core products lose, as factors of declared arithmetics: relative errors, upper bounds.
#pragma once
#include <initializer_list>

#include "src/base/numerics/format.h"

namespace assay::gated {

inline constexpr double u = 0x1p-24;          ///< unit roundoff of fp32
inline constexpr double ex2_error = 0x1p-22;  ///< of ex2.approx.ftz.f32 (PTX ISA)

/// Sum of `n` roundings, rigorous: (1 + u)^n - 1 <= n u / (1 - n u).
inline double gamma(double n) {
  return n * u / (1 - n * u);
}

/// Truncations of the tensor core over `places` places of a contraction, relative to the sum of |products|
/// (the accumulator is at most that sum).
double contraction(Dtype, double places);

/// Of a contraction of split fp32 operands, what truncations lose; all else of it rounds to nearest.
inline constexpr double split_truncation = 1.01 * 23 * u;
/// The largest of the roundings of products and sums of such operands: the products of their low parts, which
/// are left out.
inline constexpr double split_single = 0x1p-22;

/// Largest (1 + e_1) (1 + e_2) .. - 1, the host's own roundings (2^-53 of 1 each) included.
double compounded(std::initializer_list<double> errors);

/// What a product loses by the formats of its operands; `rounded`: how many of the two are not values of the
/// input's format already.
double operand_error(Dtype, int rounded);

/// What the product of a tile of 16 tokens' inverse with a vector loses by operands (delta/solve_operand.cuh)
/// and sum.
double solved_error(Dtype);

}  // namespace assay::gated
