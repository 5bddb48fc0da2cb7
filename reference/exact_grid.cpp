#include "reference/exact_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

#include "reference/slices.h"

namespace assay {
namespace {

constexpr int kNoGrid = -2000;  // an element that is not finite
constexpr int kAllZero = 2000;

/// Largest e such that x is a multiple of 2^e.
int lowest_bit(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52) & 2047;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 2047) return kNoGrid;
  if (exponent == 0) return fraction ? std::countr_zero(fraction) - 1074 : kAllZero;
  return exponent - 1075 + std::countr_zero(fraction | (uint64_t{1} << 52));
}

int lowest_bit(const Tensor& tensor) {
  double run[256];
  int lowest = kAllZero;
  for (int64_t i = 0; i < tensor.size(); i += 256) {
    const int64_t count = std::min<int64_t>(256, tensor.size() - i);
    decode_run(tensor, i, count, run);
    for (int64_t j = 0; j < count; ++j) lowest = std::min(lowest, lowest_bit(run[j]));
  }
  return lowest;
}

/// Grid of a product; with an all-zero factor it is zero, and on any grid.
int product_grid(std::initializer_list<int> factors) {
  int exponent = 0;
  for (int e : factors) {
    if (e == kAllZero) return kAllZero;
    exponent += e;
  }
  return exponent;
}

/// Below this nothing on the grid rounds.
double limit(int exponent) {
  return exponent == kAllZero ? HUGE_VAL : std::ldexp(1.0, std::min(exponent, 900) + 53);
}

}  // namespace

bool all_zero(const Tensor& tensor) {
  return lowest_bit(tensor) == kAllZero;
}

ExactGrid::ExactGrid(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* g, const Tensor* S0,
                     double scale) {
  int exponent;
  if (std::fabs(std::frexp(scale, &exponent)) != 0.5 || (g && !all_zero(*g))) return;
  if (std::abs(exponent) > 100) return;  // else scaling a value on the lowest grids could underflow
  const int of_q = lowest_bit(q), of_k = lowest_bit(k), of_v = lowest_bit(v),
            of_S0 = S0 ? lowest_bit(*S0) : kAllZero;
  if (std::min({of_q, of_k, of_v, of_S0}) == kNoGrid) return;
  // A product with an all-zero operand is zero and on any grid. Grids below 2^-900 are left to the radius.
  const int state = std::min(of_k == kAllZero || of_v == kAllZero ? kAllZero : of_k + of_v, of_S0);
  const int output = state == kAllZero || of_q == kAllZero ? kAllZero : of_q + state;
  if (std::min(state, output) < -900) return;
  possible_ = true;
  state_limit_ = limit(state);
  output_limit_ = limit(output);
}

AdjointGrid::AdjointGrid(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& d_o,
                         const Tensor* g, const Tensor* S0, const Tensor* dS, const Tensor* u, double scale) {
  int of_scale;
  if (std::fabs(std::frexp(scale, &of_scale)) != 0.5 || (g && !all_zero(*g))) return;
  if (std::abs(of_scale) > 100) return;
  --of_scale;
  const int of_q = lowest_bit(q), of_k = lowest_bit(k), of_v = lowest_bit(v), of_do = lowest_bit(d_o),
            of_S0 = S0 ? lowest_bit(*S0) : kAllZero, of_dS = dS ? lowest_bit(*dS) : kAllZero,
            of_u = u ? lowest_bit(*u) : kAllZero;
  if (std::min({of_q, of_k, of_v, of_do, of_S0, of_dS, of_u}) == kNoGrid) return;
  const int state = std::min(product_grid({of_k, of_v}), of_S0),
            adjoint = std::min(product_grid({of_scale, of_q, of_do}), of_dS);
  const int pair = product_grid({of_scale, of_v, of_do}), own = product_grid({of_scale, of_u, of_do});
  const int grids[6] = {std::min(product_grid({of_scale, of_do, state}), product_grid({pair, of_u, of_k})),
                        std::min(product_grid({of_v, adjoint}), product_grid({pair, of_u, of_q})),
                        std::min(product_grid({of_k, adjoint}), product_grid({own, of_q, of_k})),
                        product_grid({state, adjoint}),
                        adjoint,
                        product_grid({pair, of_q, of_k})};
  if (std::min({state, adjoint, grids[0], grids[1], grids[2], grids[3], grids[5]}) < -900) return;
  possible_ = true;
  state_limit_ = limit(state), adjoint_limit_ = limit(adjoint);
  for (int i = 0; i < 6; ++i) limit_[i] = limit(grids[i]);
}

}  // namespace assay
