// cvt between floating-point formats (PTX ISA 9.7.9, "cvt").
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

/// f32 to f16, nearest even, without branches. Below 2^-14 the addition of 0.5 rounds at 2^-24, the subnormal
/// spacing.
uint32_t half_of(uint32_t x) {
  const uint32_t sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t small = bits_of(float_of(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t bits = magnitude >= 0x47800000u ? 0x7c00u : finite;
  return magnitude > 0x7f800000u ? canonical_nan16 : sign | bits;
}
uint32_t brain_of(uint32_t x) {
  const uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1)) >> 16;
  return (x & 0x7fffffffu) > 0x7f800000u ? canonical_nan16 : rounded;
}
/// f16 to f32: exact. Subnormals by an exact multiplication.
uint32_t float_from_half(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu, sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  const uint32_t small = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t finite = magnitude < 0x400u ? small : normal;
  const uint32_t bits = magnitude == 0x7c00u ? 0x7f800000u : finite;
  return magnitude > 0x7c00u ? canonical_nan32 : sign | bits;
}
uint32_t float_from_brain(uint16_t h) {
  return static_cast<uint32_t>(h) << 16;  // NaN too: a move of the bits
}

/// Nearest, ties away from zero, to 10 fraction bits; the low 13 bits of the word become zero, those of a NaN
/// too (which may leave an infinity). The other roundings make every NaN 0x7fffe000.
uint32_t tf32_away(uint32_t x) {
  const uint32_t magnitude = x & 0x7fffffffu;
  return (magnitude >= 0x7f800000u ? x : x + 0x1000u) & ~0x1fffu;
}
uint32_t tf32_even(uint32_t x) {
  const uint32_t magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffe000u;
  return magnitude == 0x7f800000u ? x : (x + 0xfffu + ((x >> 13) & 1)) & ~0x1fffu;
}
uint32_t tf32_zero(uint32_t x) {
  return (x & 0x7fffffffu) > 0x7f800000u ? 0x7fffe000u : x & ~0x1fffu;
}

/// .relu: negative results and -0 become +0, NaN is canonical.
uint32_t relu16(uint32_t h) {
  return h & 0x8000u ? 0 : h;
}
uint32_t relu32(uint32_t x) {
  return x & 0x80000000u ? 0 : x;
}

template <class Format, Round mode>
uint32_t narrow_word(uint32_t x) {
  return narrowed_half<Format, mode>(static_cast<double>(float_of(x)));
}

uint32_t saturated_word(uint32_t x) {
  const float value = float_of(x);
  return value > 0 ? (value < 1 ? x : 0x3f800000u) : 0;
}

void add_to_half(std::vector<Row>& rows) {
  const Flow flow = Flow::conversion;
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rn.f16.f32"}, [](uint32_t a) { return static_cast<uint16_t>(half_of(a)); },
      real_lanes<RealCopy>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rn.ftz.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(half_of(flushed_bits(a))); }, real_lanes<RealCopy>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rn.sat.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(half_of(saturated_word(a))); },
      real_lanes<RealClamped<RealCopy, true>>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rn.relu.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(relu16(half_of(a))); },
      real_lanes<RealClamped<RealCopy, false>>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rz.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(narrow_word<Half, Round::zero>(a)); },
      real_lanes<RealCopy>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rm.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(narrow_word<Half, Round::down>(a)); },
      real_lanes<RealCopy>);
  unary<F16, F32Bits>(
      rows, flow, {"cvt.rp.f16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(narrow_word<Half, Round::up>(a)); },
      real_lanes<RealCopy>);
  unary<BF16, F32Bits>(
      rows, flow, {"cvt.rn.bf16.f32"}, [](uint32_t a) { return static_cast<uint16_t>(brain_of(a)); },
      real_lanes<RealCopy>);
  unary<BF16, F32Bits>(
      rows, flow, {"cvt.rn.relu.bf16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(relu16(brain_of(a))); },
      real_lanes<RealClamped<RealCopy, false>>);
  unary<BF16, F32Bits>(
      rows, flow, {"cvt.rz.bf16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(narrow_word<Brain, Round::zero>(a)); },
      real_lanes<RealCopy>);
  unary<BF16, F32Bits>(
      rows, flow, {"cvt.rz.relu.bf16.f32"},
      [](uint32_t a) { return static_cast<uint16_t>(relu16(narrow_word<Brain, Round::zero>(a))); },
      real_lanes<RealClamped<RealCopy, false>>);
}

/// Packed forms: the first source becomes the high half.
void add_to_packed(std::vector<Row>& rows) {
  const Flow flow = Flow::conversion;
  binary<F16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rn.f16x2.f32"}, [](uint32_t a, uint32_t b) { return half_of(a) << 16 | half_of(b); },
      real_lanes<RealCopy>);
  binary<F16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rn.relu.f16x2.f32"},
      [](uint32_t a, uint32_t b) { return relu16(half_of(a)) << 16 | relu16(half_of(b)); },
      real_lanes<RealClamped<RealCopy, false>>);
  binary<F16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rz.f16x2.f32"},
      [](uint32_t a, uint32_t b) {
        return narrow_word<Half, Round::zero>(a) << 16 | narrow_word<Half, Round::zero>(b);
      },
      real_lanes<RealCopy>);
  binary<BF16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rn.bf16x2.f32"},
      [](uint32_t a, uint32_t b) { return brain_of(a) << 16 | brain_of(b); }, real_lanes<RealCopy>);
  binary<BF16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rn.relu.bf16x2.f32"},
      [](uint32_t a, uint32_t b) { return relu16(brain_of(a)) << 16 | relu16(brain_of(b)); },
      real_lanes<RealClamped<RealCopy, false>>);
  binary<BF16x2, F32Bits, F32Bits>(
      rows, flow, {"cvt.rz.bf16x2.f32"},
      [](uint32_t a, uint32_t b) {
        return narrow_word<Brain, Round::zero>(a) << 16 | narrow_word<Brain, Round::zero>(b);
      },
      real_lanes<RealCopy>);
}

template <bool ftz, bool sat>
uint32_t finish_float(float x) {
  uint32_t bits = canonical(x);
  if (sat) bits = saturated_word(bits);
  return ftz ? flushed_bits(bits) : bits;
}

/// f32 to f32: rounding to an integral value (the sign of zero is kept), .ftz, .sat.
template <bool ftz, bool sat>
void add_integral(std::vector<Row>& rows, const char* modifiers) {
  const Flow flow = Flow::conversion;
  const RealFunction copied = sat ? real_lanes<RealClamped<RealCopy, true>> : real_lanes<RealCopy>;
  unary<F32Bits, F32>(rows, flow, {"cvt.rni", modifiers, ".f32.f32"},
                      [](float a) { return finish_float<ftz, sat>(__builtin_rintf(ftz ? flushed(a) : a)); });
  unary<F32Bits, F32>(rows, flow, {"cvt.rzi", modifiers, ".f32.f32"},
                      [](float a) { return finish_float<ftz, sat>(__builtin_truncf(ftz ? flushed(a) : a)); });
  unary<F32Bits, F32>(rows, flow, {"cvt.rmi", modifiers, ".f32.f32"},
                      [](float a) { return finish_float<ftz, sat>(__builtin_floorf(ftz ? flushed(a) : a)); });
  unary<F32Bits, F32>(rows, flow, {"cvt.rpi", modifiers, ".f32.f32"},
                      [](float a) { return finish_float<ftz, sat>(__builtin_ceilf(ftz ? flushed(a) : a)); });
  unary<F32Bits, F32>(
      rows, flow, {"cvt", modifiers, ".f32.f32"},
      [](float a) {
        if (!ftz && !sat) return bits_of(a);  // a move
        return finish_float<ftz, sat>(ftz ? flushed(a) : a);
      },
      copied);
}

/// A double NaN in a shorter format: sign kept, quiet, the leading bits of the payload.
uint32_t narrowed_nan(double a, int fraction, int width) {
  const uint64_t bits = bits_of(a), all = (uint64_t{1} << (width - 1)) - 1;
  const uint64_t infinity = all & ~((uint64_t{1} << fraction) - 1);
  return static_cast<uint32_t>((bits >> 63) << (width - 1) | infinity | uint64_t{1} << (fraction - 1) |
                               ((bits & 0xfffffffffffffull) >> (52 - fraction)));
}
template <Round mode>
uint32_t word_of(double a) {
  return a != a ? narrowed_nan(a, 23, 32) : bits_of(narrowed<mode>(a));
}

template <Round mode>
void add_from_double(std::vector<Row>& rows, const char* rounding) {
  unary<F32Bits, F64>(
      rows, Flow::conversion, {"cvt", rounding, ".f32.f64"}, [](double a) { return word_of<mode>(a); },
      real_lanes<RealCopy>);
  unary<F32Bits, F64>(
      rows, Flow::conversion, {"cvt", rounding, ".ftz.f32.f64"},
      [](double a) { return flushed_bits(word_of<mode>(a)); }, real_lanes<RealCopy>);
}

/// A NaN with `fraction` fraction bits of `width` in all: sign and payload kept, quiet.
uint64_t widened_nan(uint64_t a, int fraction, int width) {
  const uint64_t payload = a & ((uint64_t{1} << fraction) - 1);
  return (a >> (width - 1)) << 63 | 0x7ff8000000000000ull | payload << (52 - fraction);
}
uint64_t widened_word(uint32_t a) {
  return (a & 0x7fffffffu) > 0x7f800000u ? widened_nan(a, 23, 32) : bits_of(static_cast<double>(float_of(a)));
}

}  // namespace

void add_float_conversion_rows(std::vector<Row>& rows) {
  const Flow flow = Flow::conversion;
  add_to_half(rows);
  add_to_packed(rows);
  add_integral<false, false>(rows, "");
  add_integral<true, false>(rows, ".ftz");
  add_integral<false, true>(rows, ".sat");
  add_integral<true, true>(rows, ".ftz.sat");
  add_from_double<Round::nearest>(rows, ".rn");
  add_from_double<Round::zero>(rows, ".rz");
  add_from_double<Round::down>(rows, ".rm");
  add_from_double<Round::up>(rows, ".rp");
  unary<F16, F64>(
      rows, flow, {"cvt.rn.f16.f64"},
      [](double a) {
        return static_cast<uint16_t>(a != a ? narrowed_nan(a, 10, 16)
                                            : narrowed_half<Half, Round::nearest>(a));
      },
      real_lanes<RealCopy>);
  unary<BF16, F64>(
      rows, flow, {"cvt.rn.bf16.f64"},
      [](double a) {
        return static_cast<uint16_t>(a != a ? narrowed_nan(a, 7, 16)
                                            : narrowed_half<Brain, Round::nearest>(a));
      },
      real_lanes<RealCopy>);
  unary<F32Bits, F16>(
      rows, flow, {"cvt{,.ftz}.f32.f16"}, [](uint16_t a) { return float_from_half(a); },
      real_lanes<RealCopy>);
  unary<F32Bits, BF16>(
      rows, flow, {"cvt.f32.bf16"}, [](uint16_t a) { return float_from_brain(a); }, real_lanes<RealCopy>);
  unary<F32Bits, BF16>(
      rows, flow, {"cvt.ftz.f32.bf16"},
      [](uint16_t a) { return flushed_bits(canonical(float_of(float_from_brain(a)))); },
      real_lanes<RealCopy>);
  unary<F64Bits, F32Bits>(
      rows, flow, {"cvt.f64.f32"}, [](uint32_t a) { return widened_word(a); }, real_lanes<RealCopy>);
  unary<F64Bits, F32Bits>(
      rows, flow, {"cvt.ftz.f64.f32"},
      [](uint32_t a) { return widened_word(flushed_bits(canonical(float_of(a)))); }, real_lanes<RealCopy>);
  unary<F64Bits, F16>(
      rows, flow, {"cvt.f64.f16"},
      [](uint16_t a) {
        return (a & 0x7fffu) > 0x7c00u ? widened_nan(a, 10, 16) : bits_of(widened(Half{}, a));
      },
      real_lanes<RealCopy>);
  unary<F64Bits, BF16>(
      rows, flow, {"cvt.f64.bf16"}, [](uint16_t a) { return widened_word(static_cast<uint32_t>(a) << 16); },
      real_lanes<RealCopy>);
  unary<TF32, F32Bits>(
      rows, flow, {"cvt.rna.tf32.f32"}, [](uint32_t a) { return tf32_away(a); }, real_lanes<RealCopy>);
  unary<TF32, F32Bits>(
      rows, flow, {"cvt.rn.tf32.f32"}, [](uint32_t a) { return tf32_even(a); }, real_lanes<RealCopy>);
  unary<TF32, F32Bits>(
      rows, flow, {"cvt.rn.relu.tf32.f32"}, [](uint32_t a) { return relu32(tf32_even(a)); },
      real_lanes<RealClamped<RealCopy, false>>);
  unary<TF32, F32Bits>(
      rows, flow, {"cvt.rz.tf32.f32"}, [](uint32_t a) { return tf32_zero(a); }, real_lanes<RealCopy>);
  unary<TF32, F32Bits>(
      rows, flow, {"cvt.rz.relu.tf32.f32"}, [](uint32_t a) { return relu32(tf32_zero(a)); },
      real_lanes<RealClamped<RealCopy, false>>);
}

}  // namespace assay::vm::ASSAY_LANES
