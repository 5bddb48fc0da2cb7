// Every row that has a real meaning, on random operands with random errors, against MPFR: the rounding that
// it claims for itself, the errors that it hands on, and the bound that follows.
#include <gtest/gtest.h>

#include <bit>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <random>

#include "src/base/numerics/format.h"
#include "src/base/vm/instruction_row.h"
#include "src/base/vm/real_exponential.h"

namespace assay::vm {
namespace real_meaning_test {

using Real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<100>,
                                           boost::multiprecision::et_off>;
using ptx::Type;

/// Element format of a register type; false where it is none that a shadow follows.
bool element(Type type, Dtype& dtype, int& halves) {
  halves = type == Type::f16x2 || type == Type::bf16x2 ? 2 : 1;
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      dtype = Dtype::fp16;
      return true;
    case Type::bf16:
    case Type::bf16x2:
      dtype = Dtype::bf16;
      return true;
    case Type::f32:
      dtype = Dtype::fp32;
      return true;
    case Type::tf32:
      dtype = Dtype::tf32;
      return true;
    case Type::f64:
      dtype = Dtype::fp64;
      return true;
    default:
      return false;
  }
}

/// A register cell of 32 lanes.
struct Register {
  alignas(64) uint64_t wide[32] = {};
  alignas(64) uint32_t word[32] = {};
  bool is_wide = false;
  void* data() { return is_wide ? static_cast<void*>(wide) : word; }
  void put(int lane, int half, Dtype dtype, double value) {
    const uint64_t bits = encode(dtype, value);
    if (is_wide)
      wide[lane] = bits;
    else if (format(dtype).bytes == 2)
      word[lane] = (word[lane] & ~(0xffffu << (16 * half))) | static_cast<uint32_t>(bits) << (16 * half);
    else
      word[lane] = static_cast<uint32_t>(bits);
  }
  double get(int lane, int half, Dtype dtype) const {
    if (is_wide) return decode(dtype, wide[lane]);
    return decode(dtype, format(dtype).bytes == 2 ? word[lane] >> (16 * half) & 0xffff : word[lane]);
  }
};

/// The function that an opcode names, on real numbers.
bool real_function(const std::string& opcode, const Real* x, Real& f) {
  using std::abs;
  const std::string root = opcode.substr(0, opcode.find('.'));
  const auto has = [&](const char* word) {
    return (opcode + ".").find(std::string(".") + word + ".") != opcode.npos;
  };
  if (root == "add")
    f = x[0] + x[1];
  else if (root == "sub")
    f = x[0] - x[1];
  else if (root == "mul")
    f = x[0] * x[1];
  else if (root == "fma" || root == "mad")
    f = x[0] * x[1] + x[2];
  else if (root == "div")
    f = x[0] / x[1];
  else if (root == "rcp")
    f = 1 / x[0];
  else if (root == "sqrt")
    f = sqrt(x[0]);
  else if (root == "rsqrt")
    f = 1 / sqrt(x[0]);
  else if (root == "ex2")
    f = pow(Real(2), x[0]);
  else if (root == "lg2")
    f = log(x[0]) / log(Real(2));
  else if (root == "sin")
    f = sin(x[0]);
  else if (root == "cos")
    f = cos(x[0]);
  else if (root == "tanh")
    f = tanh(x[0]);
  else if (root == "abs")
    f = abs(x[0]);
  else if (root == "neg")
    f = -x[0];
  else if (root == "cvt")
    f = x[0];
  else if (root == "min")
    f = x[0] < x[1] ? x[0] : x[1];
  else if (root == "max")
    f = x[0] < x[1] ? x[1] : x[0];
  else
    return false;
  if ((has("sat") || has("relu")) && f < 0) f = 0;
  if (has("sat") && f > 1) f = 1;
  return true;
}

/// Operands where the function is defined and nothing over- or underflows.
double operand(const std::string& opcode, int which, std::mt19937& random) {
  std::uniform_real_distribution<double> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-3, 2), sign(0, 1);
  const double x = std::ldexp(mantissa(random), exponent(random));
  const bool positive =
      opcode.starts_with("sqrt") || opcode.starts_with("rsqrt") || opcode.starts_with("lg2");
  return positive || which == 3 || sign(random) ? x : -x;
}

TEST(RealMeaning, OfEveryRowHoldsTheTrueErrorWithinItsClaims) {
  constexpr unsigned kSeed = 20251121;
  std::mt19937 random(kSeed);
  int checked = 0;
  for (const Row& row : rows()) {
    if (!row.real || !row.lanes) continue;
    const std::string opcode = forms_of(row)[0];
    Dtype result_type = Dtype::fp32;
    int halves = 1, arity = 0;
    ASSERT_TRUE(element(row.result, result_type, halves)) << opcode;
    Register d, source[4];
    d.is_wide = cell_of(row.result) == Cell::wide;
    Dtype types[4] = {};
    int source_halves[4] = {1, 1, 1, 1};
    bool known = true;
    for (; arity < 3 && row.sources[static_cast<size_t>(arity)] != Type::none; ++arity) {
      known = known && element(row.sources[static_cast<size_t>(arity)], types[arity], source_halves[arity]);
      source[arity].is_wide = cell_of(row.sources[static_cast<size_t>(arity)]) == Cell::wide;
    }
    if (!known) continue;  // 8-bit floats in a 16-bit register: no shadow
    const bool narrows = halves == 2 && source_halves[0] == 1;
    for (int k = 0; k < arity; ++k)
      for (int lane = 0; lane < 32; ++lane)
        for (int half = 0; half < source_halves[k]; ++half)
          source[k].put(lane, half, types[k], operand(opcode, k, random));
    row.lanes(d.data(), source[0].data(), source[1].data(), source[2].data(), source[3].data());
    for (int half = 0; half < halves; ++half) {
      alignas(64) double value[3][32], error[3][32], size_of_error[3][32], result[32], local[32],
          slope[3][32] = {}, whole_error[32], whole_bound[32];
      RealStep step{};
      const int used = narrows ? 1 : arity;
      for (int k = 0; k < used; ++k) {
        const int from = narrows ? 1 - half : k;
        for (int lane = 0; lane < 32; ++lane) {
          value[k][lane] = source[from].get(lane, source_halves[from] == 2 ? half : 0, types[from]);
          std::uniform_real_distribution<double> relative(-0x1p-12, 0x1p-12);
          error[k][lane] = lane % 4 == 0 ? 0 : value[k][lane] * relative(random);
          size_of_error[k][lane] = std::fabs(error[k][lane]);
        }
        step.value[k] = value[k], step.error[k] = error[k], step.slope[k] = slope[k];
        step.bound[k] = size_of_error[k];
      }
      for (int lane = 0; lane < 32; ++lane) result[lane] = d.get(lane, half, result_type);
      step.result = result, step.local = local;
      step.result_error = whole_error, step.result_bound = whole_bound;
      row.real(step);
      for (int lane = 0; lane < 32; ++lane) {
        Real at[3], moved[3], f, g;
        double carried = 0, bound = std::fabs(local[lane]);
        for (int k = 0; k < used; ++k) {
          at[k] = Real(value[k][lane]), moved[k] = at[k] + Real(error[k][lane]);
          if (error[k][lane] == 0) continue;
          carried += slope[k][lane] * error[k][lane];
          bound += std::fabs(slope[k][lane] * error[k][lane]);
        }
        ASSERT_TRUE(real_function(opcode, at, f) && real_function(opcode, moved, g)) << opcode;
        const std::string where = opcode + " half " + std::to_string(half) + " of " +
                                  std::to_string(value[0][lane]) + ", seed " + std::to_string(kSeed);
        // Errors are carried in double: 2^-40 of them, or 2^-75 of the value where they nearly cancel.
        const double size = static_cast<double>(abs(f));
        const double own = static_cast<double>(f - Real(result[lane])),
                     whole = static_cast<double>(g - Real(result[lane]));
        EXPECT_NEAR(local[lane], own, std::fabs(own) * 0x1p-40 + size * 0x1p-75) << where;
        EXPECT_NEAR(local[lane] + carried, whole, bound * 0x1p-40 + size * 0x1p-75) << where;
        // Four sums in another order, each to 2^-53 of the bound.
        EXPECT_NEAR(whole_error[lane], local[lane] + carried, bound * 0x1p-50) << where;
        EXPECT_NEAR(whole_bound[lane], bound, bound * 0x1p-50) << where;
        EXPECT_LE(std::fabs(whole), bound * (1 + 0x1p-30) + size * 0x1p-75) << where;
      }
    }
    ++checked;
  }
  EXPECT_GT(checked, 150) << "rows with a real meaning";
}

/// Arguments of an exponential: of all sizes, whole and half steps, those that leave the range, no numbers.
double argument(std::mt19937_64& random) {
  const double odd[] = {0,          -0.0,  865,    866,      -865,      -866, 0x1p-1074,
                        -0x1p-1022, 1e300, -1e300, HUGE_VAL, -HUGE_VAL, NAN};
  switch (random() % 6) {
    case 0:
      return odd[random() % std::size(odd)];
    case 1:
      return static_cast<double>(static_cast<int64_t>(random() % 2000) - 1000) / 2;
    case 2:
      return static_cast<double>(static_cast<int64_t>(random() % 4096) - 2048) / 2048 / 1.4426950408889634;
    default:
      return std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                        static_cast<int>(random() % 40) - 70);
  }
}

TEST(RealMeaning, ExponentialsOfManyLanesHaveTheBitsOfEach) {
  std::mt19937_64 random(11);
  for (const std::string& set : lane_sets())
    for (const Row& row : lane_rows(set)) {
      if (!row.pattern.starts_with("ex2.approx") || row.result != Type::f32) continue;
      for (int round = 0; round < 2000; ++round) {
        alignas(64) double value[32], result[32], zeros[32] = {}, local[32], slope[32], error[32], bound[32];
        for (int lane = 0; lane < 32; ++lane) {
          value[lane] = lane > 0 && random() % 8 == 0 ? value[lane - 1] : argument(random);
          result[lane] = static_cast<float>(std::exp2(value[lane]));
        }
        row.real({result, {value}, {zeros}, {zeros}, local, {slope}, error, bound});
        for (int lane = 0; lane < 32; ++lane)
          ASSERT_EQ(std::bit_cast<uint64_t>(local[lane]) << std::isnan(local[lane]),
                    std::bit_cast<uint64_t>(exponential2_minus(value[lane], result[lane]))
                        << std::isnan(local[lane]))
              << set << ", " << value[lane];
      }
    }
}

}  // namespace real_meaning_test
}  // namespace assay::vm
