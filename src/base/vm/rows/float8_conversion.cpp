// cvt between 8-bit floats and wider ones, two at a time (PTX ISA 9.7.9, "cvt"). The first source, or the
// high half, stands in the high byte. To 8 bits only .rn.satfinite exists: what lies beyond the format,
// infinities too, becomes the largest finite number; NaN becomes 0x7f.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

struct E4m3 {  // no infinities; S.1111.111 is the only NaN
  static constexpr int fraction_bits = 3, min_exponent = -6;
  static constexpr uint32_t largest = 0x7e, infinity = 0x100, nan = 0x7f;  // no magnitude reaches 0x100
};
struct E5m2 {
  static constexpr int fraction_bits = 2, min_exponent = -14;
  static constexpr uint32_t largest = 0x7b, infinity = 0x7c, nan = 0x7d;
};

/// 2^n for n in double's normal range.
double power_of_two(int n) {
  return double_of(static_cast<uint64_t>(n + 1023) << 52);
}

template <class Format, bool relu>
uint32_t narrowed_byte(double x) {
  if (x != x) return 0x7f;
  const uint64_t bits = bits_of(x);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << 7;
  if (relu && sign) return 0;
  const double magnitude = sign ? -x : x;
  if (magnitude >= 0x1p20) return sign | Format::largest;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent < Format::min_exponent) exponent = Format::min_exponent;
  const double kept = __builtin_rint(magnitude * power_of_two(Format::fraction_bits - exponent));
  // The leading bit of a normal number adds one to the exponent field, and so does a carry.
  const uint32_t encoded = (static_cast<uint32_t>(exponent - Format::min_exponent) << Format::fraction_bits) +
                           static_cast<uint32_t>(kept);
  return sign | (encoded > Format::largest ? Format::largest : encoded);
}

template <class Format>
double widened_byte(uint32_t byte) {
  const uint32_t magnitude = byte & 0x7fu, field = magnitude >> Format::fraction_bits;
  if (magnitude >= Format::nan) return __builtin_nan("");
  if (magnitude == Format::infinity) return byte & 0x80u ? -__builtin_inf() : __builtin_inf();
  const uint32_t fraction = magnitude & ((1u << Format::fraction_bits) - 1);
  const uint32_t significand = field ? fraction | 1u << Format::fraction_bits : fraction;
  const int exponent =
      (field ? static_cast<int>(field) - 1 : 0) + Format::min_exponent - Format::fraction_bits;
  const double value = significand * power_of_two(exponent);
  return byte & 0x80u ? -value : value;
}

template <class Format, bool relu>
uint16_t from_floats(uint32_t a, uint32_t b) {
  return static_cast<uint16_t>(narrowed_byte<Format, relu>(float_of(a)) << 8 |
                               narrowed_byte<Format, relu>(float_of(b)));
}
template <class Format, bool relu>
uint16_t from_halves(uint32_t a) {
  return static_cast<uint16_t>(narrowed_byte<Format, relu>(widened(Half{}, static_cast<uint16_t>(a >> 16)))
                                   << 8 |
                               narrowed_byte<Format, relu>(widened(Half{}, static_cast<uint16_t>(a))));
}
/// Exact; NaN is canonical.
template <class Format, bool relu>
uint32_t half_of_byte(uint32_t byte) {
  const uint32_t half = narrowed_half<Half, Round::nearest>(widened_byte<Format>(byte));
  return relu && half & 0x8000u ? 0 : half;
}
template <class Format, bool relu>
uint32_t to_halves(uint16_t a) {
  return half_of_byte<Format, relu>(a >> 8) << 16 | half_of_byte<Format, relu>(a & 0xffu);
}

template <class Format, bool relu>
void add_format(std::vector<Row>& rows, const char* modifier, const char* type) {
  const size_t first = rows.size();
  binary<B16, F32Bits, F32Bits>(rows, Flow::conversion, {"cvt.rn.satfinite", modifier, type, ".f32"},
                                [](uint32_t a, uint32_t b) { return from_floats<Format, relu>(a, b); });
  unary<B16, F16x2>(rows, Flow::conversion, {"cvt.rn.satfinite", modifier, type, ".f16x2"},
                    [](uint32_t a) { return from_halves<Format, relu>(a); });
  unary<F16x2, B16>(rows, Flow::conversion, {"cvt.rn", modifier, ".f16x2", type},
                    [](uint16_t a) { return to_halves<Format, relu>(a); });
  for (size_t i = first; i < rows.size(); ++i) rows[i].status = Status::measured_on(90);
}

}  // namespace

void add_float8_conversion_rows(std::vector<Row>& rows) {
  add_format<E4m3, false>(rows, "", ".e4m3x2");
  add_format<E4m3, true>(rows, ".relu", ".e4m3x2");
  add_format<E5m2, false>(rows, "", ".e5m2x2");
  add_format<E5m2, true>(rows, ".relu", ".e5m2x2");
}

}  // namespace assay::vm::ASSAY_LANES
