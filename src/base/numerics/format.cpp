#include "src/base/numerics/format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format_runs.h"

namespace assay {
namespace {

constexpr std::array<Format, 8> kFormats{{
    // dtype       name    bytes p  exp  min    max
    {Dtype::fp64, "fp64", 8, 53, 11, -1022, 1023},
    {Dtype::fp32, "fp32", 4, 24, 8, -126, 127},
    {Dtype::tf32, "tf32", 4, 11, 8, -126, 127},
    {Dtype::fp16, "fp16", 2, 11, 5, -14, 15},
    {Dtype::bf16, "bf16", 2, 8, 8, -126, 127},
    {Dtype::i32, "i32", 4, 0, 0, 0, 0},
    {Dtype::i64, "i64", 8, 0, 0, 0, 0},
    {Dtype::u8, "u8", 1, 0, 0, 0, 0},
}};

constexpr int kBias = 1023, kFraction = 52;
constexpr uint64_t kSign = uint64_t{1} << 63;

/// 2^e, for any e that a format's numbers have.
constexpr double power_of_two(int e) {
  if (e > -kBias) return std::bit_cast<double>(static_cast<uint64_t>(e + kBias) << kFraction);
  return e < -kBias - kFraction + 1 ? 0 : std::bit_cast<double>(uint64_t{1} << (e + kBias + kFraction - 1));
}

/// Of what frexp says, one less: |x| = m 2^e, m in [1, 2). 0 of what is not finite.
int exponent_of(double x) {
  const auto field = static_cast<int>((std::bit_cast<uint64_t>(x) & ~kSign) >> kFraction);
  if (field != 0 && field != 2 * kBias + 1) return field - kBias;
  int e;
  std::frexp(x, &e);
  return e - 1;
}

bool is_integer(Dtype d) {
  return format(d).precision == 0;
}

/// Bits of the encoded exponent field, and of the stored fraction below it. tf32 keeps fp32's layout.
int stored_fraction_bits(const Format& f) {
  return f.dtype == Dtype::tf32 ? 23 : f.precision - 1;
}

}  // namespace

const std::array<Format, 8>& formats() {
  return kFormats;
}

const Format& format(Dtype dtype) {
  return kFormats[static_cast<size_t>(dtype)];
}

namespace {

/// What frameworks call them.
constexpr std::pair<std::string_view, const char*> kOtherNames[] = {
    {"float16", "fp16"}, {"half", "fp16"},  {"f16", "fp16"},           {"bfloat16", "bf16"},
    {"float32", "fp32"}, {"float", "fp32"}, {"f32", "fp32"},           {"float64", "fp64"},
    {"double", "fp64"},  {"f64", "fp64"},   {"float8_e4m3fn", "e4m3"}, {"float8_e5m2", "e5m2"}};

}  // namespace

const Format& format(std::string_view name) {
  std::string known;
  for (const Format& f : formats()) {
    if (f.name == name) return f;
    known += (known.empty() ? "" : ", ") + std::string(f.name);
  }
  for (const auto& [other, own] : kOtherNames)
    if (name == other)
      throw BadInput("unknown number format '" + std::string(name) + "': it is called " + own + " here");
  throw BadInput("unknown number format '" + std::string(name) + "': use one of " + known);
}

double unit_roundoff(Dtype d) {
  return power_of_two(-format(d).precision);
}

double min_subnormal(Dtype d) {
  const Format& f = format(d);
  return power_of_two(f.min_exponent - f.precision + 1);
}

double max_finite(Dtype d) {
  const Format& f = format(d);
  return (2 - power_of_two(1 - f.precision)) * power_of_two(f.max_exponent);
}

double decode(Dtype dtype, uint64_t bits) {
  switch (dtype) {
    case Dtype::fp64:
      return std::bit_cast<double>(bits);
    case Dtype::fp32:
    case Dtype::tf32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Dtype::i32:
      return static_cast<int32_t>(bits);
    case Dtype::i64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case Dtype::u8:
      return static_cast<uint8_t>(bits);
    case Dtype::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits & 0xffff) << 16);
    case Dtype::fp16:
      break;
  }
  const bool negative = bits & 0x8000;
  const int exponent = static_cast<int>(bits >> 10) & 31;
  const int fraction = static_cast<int>(bits & 1023);
  double magnitude;
  if (exponent == 31)
    magnitude = fraction ? std::nan("") : HUGE_VAL;
  else if (exponent == 0)
    magnitude = fraction * 0x1p-24;
  else
    magnitude = (1024 + fraction) * std::bit_cast<double>(static_cast<uint64_t>(exponent - 25 + 1023) << 52);
  return negative ? -magnitude : magnitude;
}

namespace {

/// Of x that is not 0, and finite; `most`: max_finite.
inline double rounded_in(const Format& f, double most, double x) {
  const int exponent = exponent_of(x);
  if (exponent > f.max_exponent) return std::copysign(HUGE_VAL, x);
  // One rounding, of a sum whose last bit is the last that is kept; taking off again what was added is exact.
  const int last = std::max(exponent, f.min_exponent) - f.precision + 1;
  const double shift = 1.5 * power_of_two(kFraction + last), rounded = (std::fabs(x) + shift) - shift;
  return std::copysign(rounded > most ? HUGE_VAL : rounded, x);
}

inline double spacing_in(const Format& f, double x) {
  const int exponent = x == 0 ? f.min_exponent : std::max(exponent_of(x), f.min_exponent);
  return power_of_two(exponent - f.precision + 1);
}

}  // namespace

double round_to(Dtype dtype, double x) {
  double y;
  round_run(dtype, &x, 1, &y);
  return y;
}

void round_run(Dtype dtype, const double* x, int64_t count, double* y) {
  if (dtype == Dtype::fp64 || is_integer(dtype)) return void(std::copy(x, x + count, y));
  if (dtype == Dtype::fp32) {
    for (int64_t i = 0; i < count; ++i)
      y[i] = x[i] == 0 || !std::isfinite(x[i]) ? x[i] : static_cast<float>(x[i]);
    return;
  }
  const Format f = format(dtype);
  const double most = max_finite(dtype);
  for (int64_t i = 0; i < count; ++i)
    y[i] = x[i] == 0 || !std::isfinite(x[i]) ? x[i] : rounded_in(f, most, x[i]);
}

namespace {

/// Exponent and fraction of a double's magnitude, rounded once, half to even. The exponent is one less than
/// the number that is kept has, as its leading bit is added to it; so is a carry. Below the least exponent
/// more bits go, and the exponent is zero.
uint64_t rounded_magnitude(const Format& f, uint64_t magnitude) {
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << (f.precision - 1);
  const int exponent = static_cast<int>(magnitude >> kFraction) - kBias;
  if (exponent > f.max_exponent) return infinity;
  const int below = std::max(f.min_exponent - exponent, 0), shift = kFraction - (f.precision - 1) + below;
  if (shift > kFraction + 1) return 0;  // less than half of the smallest, a double's subnormals too
  const uint64_t significand = (magnitude & ((uint64_t{1} << kFraction) - 1)) | uint64_t{1} << kFraction,
                 kept = significand >> shift, cut = significand & ((uint64_t{1} << shift) - 1),
                 half = uint64_t{1} << (shift - 1);
  const uint64_t rounded = kept + (cut > half || (cut == half && (kept & 1)));
  const uint64_t above = below ? 0 : static_cast<uint64_t>(exponent - f.min_exponent);
  return std::min((above << (f.precision - 1)) + rounded, infinity);
}

/// Towards zero; the nearest there is beyond 64 bits, 0 of no number.
int64_t whole(double value) {
  if (std::isnan(value)) return 0;
  return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
}

}  // namespace

uint64_t encode(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::fp64:
      return std::bit_cast<uint64_t>(value);
    case Dtype::i32:
      return static_cast<uint32_t>(whole(value));
    case Dtype::i64:
      return static_cast<uint64_t>(whole(value));
    case Dtype::u8:
      return static_cast<uint8_t>(whole(value));
    default:
      break;
  }
  if (std::isnan(value)) return dtype == Dtype::fp16 ? 0x7fff : dtype == Dtype::bf16 ? 0x7fff : 0x7fffffff;
  if (dtype == Dtype::fp32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Format& f = format(dtype);
  const uint64_t bits = std::bit_cast<uint64_t>(value), magnitude = bits & ~kSign;
  const uint64_t word = rounded_magnitude(f, magnitude) | (bits >> 63) << (f.precision - 1 + f.exponent_bits);
  return dtype == Dtype::tf32 ? word << (stored_fraction_bits(f) - (f.precision - 1)) : word;
}

namespace {

/// The same of normal numbers of the format: half an ulp less one, and one more where what is kept is odd,
/// are added to what is cut; a carry goes on into the exponent.
inline uint64_t rounded_normal(const Format& f, uint64_t magnitude) {
  const int shift = kFraction - (f.precision - 1);
  const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << (f.precision - 1),
                 odd = (magnitude >> shift) & 1, less = (uint64_t{1} << (shift - 1)) - 1;
  const auto other_bias = static_cast<uint64_t>(kBias + f.min_exponent - 1) << (f.precision - 1);
  return std::min(((magnitude + less + odd) >> shift) - other_bias, infinity);
}

/// One call of what is known of a format when this is compiled.
template <Dtype kDtype, typename Word>
void encode_words(const double* values, int64_t count, std::byte* out) {
  constexpr Format f = kFormats[static_cast<size_t>(kDtype)];
  static_assert(f.dtype == kDtype && f.bytes == sizeof(Word));
  constexpr uint64_t least = static_cast<uint64_t>(kBias + f.min_exponent) << kFraction,
                     beyond = static_cast<uint64_t>(kBias + f.max_exponent + 1) << kFraction;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(values[i]), magnitude = bits & ~kSign;
    Word word = 0x7fff;
    if (!std::isnan(values[i])) {
      const bool normal = magnitude >= least && magnitude < beyond;
      const uint64_t rounded = normal ? rounded_normal(f, magnitude) : rounded_magnitude(f, magnitude);
      word = static_cast<Word>(rounded | (bits >> 63) << (8 * sizeof(Word) - 1));
    }
    std::memcpy(out + i * static_cast<int64_t>(sizeof word), &word, sizeof word);
  }
}

}  // namespace

void encode_run(Dtype dtype, const double* values, int64_t count, std::byte* out) {
  if (dtype == Dtype::bf16) return encode_words<Dtype::bf16, uint16_t>(values, count, out);
  if (dtype == Dtype::fp16) return encode_words<Dtype::fp16, uint16_t>(values, count, out);
  const auto bytes = static_cast<size_t>(format(dtype).bytes);
  for (int64_t i = 0; i < count; ++i, out += bytes) {
    const uint64_t word = encode(dtype, values[i]);
    std::memcpy(out, &word, bytes);  // little-endian hosts only, as everywhere
  }
}

double ulp(Dtype dtype, double x) {
  return spacing_in(format(dtype), x);
}

void ulp_run(Dtype dtype, const double* x, int64_t count, double* y) {
  const Format f = format(dtype);
  for (int64_t i = 0; i < count; ++i) y[i] = spacing_in(f, x[i]);
}

}  // namespace assay
