// Formats against MPFR, which rounds to any precision and exponent range.
#include "src/base/numerics/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/multiprecision.h"

namespace assay {
namespace {

/// x rounded to nearest-even by MPFR in the format's precision and exponent range, subnormals and overflow
/// included.
double rounded_by_mpfr(const Format& f, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  mpfr_t y;
  mpfr_init2(y, static_cast<mpfr_prec_t>(f.precision));
  const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
  mpfr_set_emin(f.min_exponent - f.precision + 2);  // MPFR's significands lie in [1/2, 1)
  mpfr_set_emax(f.max_exponent + 1);
  const int direction = mpfr_set_d(y, x, MPFR_RNDN);
  mpfr_subnormalize(y, mpfr_check_range(y, direction, MPFR_RNDN), MPFR_RNDN);
  const double rounded = mpfr_get_d(y, MPFR_RNDN);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  mpfr_clear(y);
  return rounded;
}

bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

constexpr Dtype kFloats[] = {Dtype::fp64, Dtype::fp32, Dtype::tf32, Dtype::fp16, Dtype::bf16};

TEST(Format, every_16_bit_pattern_survives_decoding_and_encoding) {
  for (Dtype d : {Dtype::fp16, Dtype::bf16}) {
    int64_t nan = 0;
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      const double value = decode(d, bits);
      if (std::isnan(value)) {
        ++nan;
        EXPECT_TRUE(std::isnan(decode(d, encode(d, value))));
      } else {
        ASSERT_EQ(encode(d, value), bits) << format(d).name;
        ASSERT_TRUE(same(rounded_by_mpfr(format(d), value), value)) << format(d).name << " " << bits;
      }
    }
    EXPECT_EQ(nan, 2 * ((int64_t{1} << (format(d).precision - 1)) - 1));
  }
}

TEST(Format, every_midpoint_of_16_bit_neighbours_goes_to_the_even_one_and_its_own_neighbours_do_not) {
  for (Dtype d : {Dtype::fp16, Dtype::bf16}) {
    const uint64_t infinity = encode(d, HUGE_VAL);
    for (uint64_t bits = 0; bits + 1 < infinity; ++bits) {
      const double below = decode(d, bits), above = decode(d, bits + 1), middle = below + (above - below) / 2;
      ASSERT_EQ(encode(d, middle), bits % 2 ? bits + 1 : bits);
      ASSERT_EQ(encode(d, std::nextafter(middle, 0)), bits);
      ASSERT_EQ(encode(d, std::nextafter(middle, HUGE_VAL)), bits + 1);
      ASSERT_EQ(encode(d, -middle), encode(d, middle) | 0x8000);
    }
  }
}

TEST(Format, rounds_as_mpfr_does_on_samples_of_every_exponent) {
  std::mt19937_64 random(1);
  for (Dtype d : kFloats) {
    const Format& f = format(d);
    for (int i = 0; i < 200000; ++i) {
      const int exponent = f.min_exponent - f.precision - 3 +
                           static_cast<int>(random() % static_cast<uint64_t>(f.max_exponent - f.min_exponent +
                                                                             f.precision + 6));
      double x =
          std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52), std::min(exponent, 1023));
      // Half of the samples lie on a midpoint or next to one.
      if (i % 2 && exponent > -1000 && exponent < 1023) {
        const double spacing = ulp(d, round_to(d, x));
        x = std::floor(x / spacing) * spacing + spacing / 2;
        if (i % 6 == 1) x = std::nextafter(x, 0);
        if (i % 6 == 3) x = std::nextafter(x, HUGE_VAL);
      }
      if (random() % 2) x = -x;
      ASSERT_TRUE(same(round_to(d, x), rounded_by_mpfr(f, x)))
          << f.name << " " << x << " got " << round_to(d, x) << " mpfr " << rounded_by_mpfr(f, x);
      ASSERT_TRUE(same(decode(d, encode(d, x)), round_to(d, x))) << f.name << " " << x;
    }
  }
}

TEST(Format, a_run_is_encoded_as_its_elements) {
  std::mt19937_64 random(5);
  std::vector<double> values = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 0x1p-1074, 65520, 0x1.ffp127, -2.5};
  for (int i = 0; i < 4000; ++i) {  // of any magnitude, and of those that 16 bits have
    values.push_back(std::bit_cast<double>(random()));
    values.push_back(std::ldexp(std::bit_cast<double>(random() >> 12 | 0x3ff0000000000000u),
                                static_cast<int>(random() % 320) - 160));
  }
  for (const Format& f : formats()) {
    std::vector<std::byte> run(values.size() * static_cast<size_t>(f.bytes) + 1, std::byte{0x5a});
    encode_run(f.dtype, values.data(), static_cast<int64_t>(values.size()), run.data());
    for (size_t i = 0; i < values.size(); ++i) {
      uint64_t word = 0;
      std::memcpy(&word, run.data() + i * static_cast<size_t>(f.bytes), static_cast<size_t>(f.bytes));
      ASSERT_EQ(word, encode(f.dtype, values[i])) << f.name << " of " << values[i];
    }
    EXPECT_EQ(run.back(), std::byte{0x5a}) << f.name << ": one element too many";
  }
}

TEST(Format, integers_take_whole_numbers_of_either_sign_and_no_number_is_zero) {
  EXPECT_EQ(encode(Dtype::u8, -1.95), 0xff);  // what a tensor of int8 has there
  EXPECT_EQ(encode(Dtype::u8, 200.5), 200);
  EXPECT_EQ(encode(Dtype::i32, 3e9), 3000000000);
  EXPECT_EQ(encode(Dtype::i32, -3.7), 0xfffffffd);
  EXPECT_EQ(encode(Dtype::i64, 1e300), static_cast<uint64_t>(INT64_MAX));
  EXPECT_EQ(encode(Dtype::i64, -1e300), static_cast<uint64_t>(INT64_MIN));
  for (const Dtype integer : {Dtype::u8, Dtype::i32, Dtype::i64}) EXPECT_EQ(encode(integer, NAN), 0);
}

TEST(Format, limits_follow_from_the_row) {
  for (Dtype d : kFloats) {
    const Format& f = format(d);
    EXPECT_EQ(unit_roundoff(d), std::ldexp(1.0, -f.precision));
    EXPECT_EQ(round_to(d, 1 + 2 * unit_roundoff(d)), 1 + 2 * unit_roundoff(d)) << f.name;
    EXPECT_EQ(round_to(d, max_finite(d)), max_finite(d)) << f.name;
    EXPECT_EQ(round_to(d, min_subnormal(d)), min_subnormal(d)) << f.name;
    EXPECT_EQ(ulp(d, 1), 2 * unit_roundoff(d)) << f.name;
    EXPECT_EQ(ulp(d, 0), min_subnormal(d)) << f.name;
    if (d == Dtype::fp64) continue;
    EXPECT_TRUE(std::isinf(round_to(d, max_finite(d) * (1 + unit_roundoff(d))))) << f.name;
    EXPECT_EQ(round_to(d, min_subnormal(d) / 2), 0) << f.name;
  }
}

TEST(Format, names_find_their_rows_and_unknown_ones_list_what_there_is) {
  for (const Format& f : formats()) EXPECT_EQ(format(f.name).dtype, f.dtype);
  try {
    format("fp12");
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("bf16"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay
