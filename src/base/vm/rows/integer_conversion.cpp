// cvt between integers, and between integers and floats (PTX ISA 9.7.9, "cvt").
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

template <class L>
struct Range;
#define ASSAY_RANGE(L, text, low_, high_)               \
  template <>                                           \
  struct Range<L> {                                     \
    static constexpr const char* name = text;           \
    static constexpr __int128 low = low_, high = high_; \
  };
ASSAY_RANGE(U8, ".u8", 0, UINT8_MAX)
ASSAY_RANGE(S8, ".s8", INT8_MIN, INT8_MAX)
ASSAY_RANGE(U16, ".u16", 0, UINT16_MAX)
ASSAY_RANGE(S16, ".s16", INT16_MIN, INT16_MAX)
ASSAY_RANGE(U32, ".u32", 0, UINT32_MAX)
ASSAY_RANGE(S32, ".s32", INT32_MIN, INT32_MAX)
ASSAY_RANGE(U64, ".u64", 0, UINT64_MAX)
ASSAY_RANGE(S64, ".s64", INT64_MIN, INT64_MAX)
#undef ASSAY_RANGE

template <class D>
typename D::value clamped(__int128 x) {
  const __int128 low = x < Range<D>::low ? Range<D>::low : x;
  return static_cast<typename D::value>(low > Range<D>::high ? Range<D>::high : low);
}

template <class D, class A>
void add_pair(std::vector<Row>& rows) {
  using V = typename A::value;
  using W = typename D::value;
  unary<D, A>(rows, Flow::conversion, {"cvt", Range<D>::name, Range<A>::name},
              [](V a) { return static_cast<W>(a); });
  unary<D, A>(rows, Flow::conversion, {"cvt.sat", Range<D>::name, Range<A>::name},
              [](V a) { return clamped<D>(a); });
}

/// Rounds to an integral double; exact inputs up to 64 bits of fraction vanish properly in each mode.
template <Round mode>
double integral(double x) {
  if constexpr (mode == Round::zero) return __builtin_trunc(x);
  if constexpr (mode == Round::down) return __builtin_floor(x);
  if constexpr (mode == Round::up) return __builtin_ceil(x);
  return __builtin_rint(x);  // the host rounds to nearest even
}

/// Float to integer saturates; NaN gives 0, or the top bit alone where a 64-bit type or f64 takes part.
template <class D, bool wide, Round mode>
typename D::value to_integer(double x) {
  using W = typename D::value;
  if (x != x) return wide ? static_cast<W>(uint64_t{1} << (8 * sizeof(W) - 1)) : W{0};
  const double rounded = integral<mode>(x);
  if (rounded <= static_cast<double>(Range<D>::low)) return static_cast<W>(Range<D>::low);
  if (rounded >= static_cast<double>(Range<D>::high)) return static_cast<W>(Range<D>::high);
  return static_cast<W>(rounded);
}

template <class D, Round mode>
void add_to_integer(std::vector<Row>& rows, const char* rounding) {
  constexpr bool wide = sizeof(typename D::value) == 8;
  unary<D, F32>(rows, Flow::conversion, {"cvt", rounding, "{,.sat}", Range<D>::name, ".f32"},
                [](float a) { return to_integer<D, wide, mode>(a); });
  unary<D, F32>(rows, Flow::conversion, {"cvt", rounding, ".ftz{,.sat}", Range<D>::name, ".f32"},
                [](float a) { return to_integer<D, wide, mode>(flushed(a)); });
  unary<D, F64>(rows, Flow::conversion, {"cvt", rounding, "{,.sat}", Range<D>::name, ".f64"},
                [](double a) { return to_integer<D, true, mode>(a); });
  unary<D, F16>(rows, Flow::conversion, {"cvt", rounding, "{,.sat}", Range<D>::name, ".f16"},
                [](uint16_t a) { return to_integer<D, wide, mode>(widened(Half{}, a)); });
  unary<D, BF16>(rows, Flow::conversion, {"cvt", rounding, "{,.sat}", Range<D>::name, ".bf16"},
                 [](uint16_t a) { return to_integer<D, wide, mode>(widened(Brain{}, a)); });
}

/// A 64-bit integer as a double rounded to odd: then one more rounding gives the right float in every mode.
template <class V>
double odd_double(V a) {
  const bool negative = a < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  if (magnitude >> 53) {
    const uint64_t rest = magnitude & 0x7ff;
    magnitude =
        (magnitude & ~uint64_t{0x7ff}) | (rest ? uint64_t{0x800} : 0);  // sticky into the lowest kept bit
  }
  const double value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

template <class A, Round mode>
void add_from_integer(std::vector<Row>& rows, const char* rounding) {
  using V = typename A::value;
  unary<F32, A>(rows, Flow::conversion, {"cvt", rounding, ".f32", Range<A>::name},
                [](V a) { return narrowed<mode>(odd_double<V>(a)); });
  unary<F16, A>(rows, Flow::conversion, {"cvt", rounding, ".f16", Range<A>::name},
                [](V a) { return narrowed_half<Half, mode>(odd_double<V>(a)); });
  unary<BF16, A>(rows, Flow::conversion, {"cvt", rounding, ".bf16", Range<A>::name},
                 [](V a) { return narrowed_half<Brain, mode>(odd_double<V>(a)); });
  if constexpr (mode == Round::nearest)
    unary<F64, A>(rows, Flow::conversion, {"cvt", rounding, ".f64", Range<A>::name},
                  [](V a) { return static_cast<double>(a); });
}

/// cvt.pack: a and b, each limited to `bits` bits, side by side, b below; above them what c has lowest.
template <int64_t low, int64_t high>
uint32_t limited(int32_t x) {
  const int64_t wide = x;
  return static_cast<uint32_t>(wide < low ? low : wide > high ? high : wide);
}
template <int bits, bool is_signed>
uint32_t packed_pair(int32_t a, int32_t b) {
  constexpr int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0,
                    high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  constexpr uint32_t mask = (1u << bits) - 1;
  return (limited<low, high>(a) & mask) << bits | (limited<low, high>(b) & mask);
}
template <int bits, bool is_signed>
void add_pack(std::vector<Row>& rows, const char* type) {
  ternary<B32, S32, S32, B32>(
      rows, Flow::integer, {"cvt.pack.sat", type, ".s32.b32"},
      [](int32_t a, int32_t b, uint32_t c) { return packed_pair<bits, is_signed>(a, b) | c << (2 * bits); });
}

template <class L>
void add_type(std::vector<Row>& rows) {
  add_pair<L, U8>(rows);
  add_pair<L, S8>(rows);
  add_pair<L, U16>(rows);
  add_pair<L, S16>(rows);
  add_pair<L, U32>(rows);
  add_pair<L, S32>(rows);
  add_pair<L, U64>(rows);
  add_pair<L, S64>(rows);
  add_to_integer<L, Round::nearest>(rows, ".rni");
  add_to_integer<L, Round::zero>(rows, ".rzi");
  add_to_integer<L, Round::down>(rows, ".rmi");
  add_to_integer<L, Round::up>(rows, ".rpi");
  add_from_integer<L, Round::nearest>(rows, ".rn");
  add_from_integer<L, Round::zero>(rows, ".rz");
  add_from_integer<L, Round::down>(rows, ".rm");
  add_from_integer<L, Round::up>(rows, ".rp");
}

}  // namespace

void add_integer_conversion_rows(std::vector<Row>& rows) {
  add_type<U8>(rows);
  add_type<S8>(rows);
  add_type<U16>(rows);
  add_type<S16>(rows);
  add_type<U32>(rows);
  add_type<S32>(rows);
  add_type<U64>(rows);
  add_type<S64>(rows);
  add_pack<8, false>(rows, ".u8");
  add_pack<8, true>(rows, ".s8");
  add_pack<4, false>(rows, ".u4");
  add_pack<4, true>(rows, ".s4");
  add_pack<2, false>(rows, ".u2");
  add_pack<2, true>(rows, ".s2");
  binary<B32, S32, S32>(rows, Flow::integer, {"cvt.pack.sat.u16.s32"},
                        [](int32_t a, int32_t b) { return packed_pair<16, false>(a, b); });
  binary<B32, S32, S32>(rows, Flow::integer, {"cvt.pack.sat.s16.s32"},
                        [](int32_t a, int32_t b) { return packed_pair<16, true>(a, b); });
}

}  // namespace assay::vm::ASSAY_LANES
