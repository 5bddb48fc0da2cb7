// Half-precision arithmetic, f16 and bf16, single and packed (PTX ISA 9.7.4): computed exactly, rounded once
// to nearest even; subnormals are kept unless .ftz; NaN results are 0x7fff.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/real_meaning.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

template <class Format>
uint16_t flushed_half(uint16_t x) {
  constexpr uint16_t exponent =
      static_cast<uint16_t>((Format::max_exponent * 2 + 1) << Format::fraction_bits);
  return x & exponent ? x : x & 0x8000u;
}

/// One operation of a format with its modifiers; Op works on doubles that are exact or rounded to odd.
template <class Format, class Op, bool ftz, bool sat, bool relu>
struct Operation {
  static double in(uint16_t x) { return widened(Format{}, ftz ? flushed_half<Format>(x) : x); }
  static uint16_t out(double x) {
    if (sat) x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
    // .ftz judges the value rounded as if the exponent had no bound (seen on an H200).
    const double least_normal = double_of(static_cast<uint64_t>(Format::min_exponent + 1023) << 52);
    const double tie = least_normal * (1 - double_of(static_cast<uint64_t>(1022 - Format::precision) << 52));
    if (ftz && x < tie && x > -tie) return bits_of(x) >> 63 ? 0x8000u : 0;
    if (relu && x < 0) x = 0.0;
    uint16_t bits = narrowed_half<Format, Round::nearest>(x);
    if (relu && bits == 0x8000u) bits = 0;
    return ftz ? flushed_half<Format>(bits) : bits;
  }
  uint16_t operator()(uint16_t a, uint16_t b) const { return out(Op{}(in(a), in(b))); }
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const { return out(Op{}(in(a), in(b), in(c))); }
};

/// Both halves of a packed register.
template <class F>
struct Packed {
  template <class... Words>
  uint32_t operator()(Words... words) const {
    const uint16_t low = F{}(static_cast<uint16_t>(words)...),
                   high = F{}(static_cast<uint16_t>(words >> 16)...);
    return static_cast<uint32_t>(high) << 16 | low;
  }
};

struct Sum {
  double operator()(double a, double b) const { return odd_sum(a, b); }
};
struct Difference {
  double operator()(double a, double b) const { return odd_sum(a, -b); }
};
struct Product {
  double operator()(double a, double b) const { return a * b; }  // 22 bits: exact
};
struct Fused {
  double operator()(double a, double b, double c) const { return odd_sum(a * b, c); }
};

/// min and max: the number where one operand is NaN (.NaN: NaN if any is); -0 below +0.
template <class Format, bool maximum, bool nan, bool ftz>
struct Extreme {
  uint16_t operator()(uint16_t x, uint16_t y) const {
    if (ftz) x = flushed_half<Format>(x), y = flushed_half<Format>(y);
    const double a = widened(Format{}, x), b = widened(Format{}, y);
    if (a != a || b != b) return nan || (a != a && b != b) ? canonical_nan16 : a != a ? y : x;
    if (a == b) return maximum ? x & y : x | y;
    return (a < b) != maximum ? x : y;
  }
};
template <class Format>
bool is_nan(uint16_t a) {
  constexpr uint16_t infinity =
      static_cast<uint16_t>((Format::max_exponent * 2 + 1) << Format::fraction_bits);
  return (a & 0x7fffu) > infinity;
}
template <class Format, bool ftz = false>
struct Negation {
  uint16_t operator()(uint16_t a) const {
    if (ftz) a = flushed_half<Format>(a);
    return is_nan<Format>(a) ? canonical_nan16 : a ^ 0x8000u;
  }
};
template <class Format, bool ftz = false>
struct Magnitude {
  uint16_t operator()(uint16_t a) const {
    if (ftz) a = flushed_half<Format>(a);
    return is_nan<Format>(a) ? canonical_nan16 : a & 0x7fffu;
  }
};

template <class One, class Two, class F>
void half_unary(std::vector<Row>& rows, std::initializer_list<const char*> one,
                std::initializer_list<const char*> two, F f, RealFunction real) {
  unary<One, One>(rows, Flow::arithmetic, one, f, real);
  unary<Two, Two>(rows, Flow::arithmetic, two, Packed<F>{}, real);
}
template <class One, class Two, class F>
void half_binary(std::vector<Row>& rows, const char* form, const char* modifiers, const char* one,
                 const char* two, F f, RealFunction real) {
  binary<One, One, One>(rows, Flow::arithmetic, {form, modifiers, one}, f, real);
  binary<Two, Two, Two>(rows, Flow::arithmetic, {form, modifiers, two}, Packed<F>{}, real);
}
template <class One, class Two, class F>
void half_ternary(std::vector<Row>& rows, const char* form, const char* modifiers, const char* one,
                  const char* two, F f, RealFunction real) {
  ternary<One, One, One, One>(rows, Flow::arithmetic, {form, modifiers, one}, f, real);
  ternary<Two, Two, Two, Two>(rows, Flow::arithmetic, {form, modifiers, two}, Packed<F>{}, real);
}

/// The real meaning under .sat.
template <class Real, bool sat>
RealFunction meaning() {
  if constexpr (sat) return real_lanes<RealClamped<Real, true>>;
  return real_lanes<Real>;
}

template <class Format, class One, class Two, bool ftz, bool sat>
void add_arithmetic(std::vector<Row>& rows, const char* modifiers, const char* one, const char* two) {
  half_binary<One, Two>(rows, "add{,.rn}", modifiers, one, two, Operation<Format, Sum, ftz, sat, false>{},
                        meaning<RealSum, sat>());
  half_binary<One, Two>(rows, "sub{,.rn}", modifiers, one, two,
                        Operation<Format, Difference, ftz, sat, false>{}, meaning<RealDifference, sat>());
  half_binary<One, Two>(rows, "mul{,.rn}", modifiers, one, two, Operation<Format, Product, ftz, sat, false>{},
                        meaning<RealProduct<false>, sat>());
  half_ternary<One, Two>(rows, "fma.rn", modifiers, one, two, Operation<Format, Fused, ftz, sat, false>{},
                         meaning<RealFused<false>, sat>());
}

template <class Format, class One, class Two, bool ftz>
void add_extremes(std::vector<Row>& rows, const char* modifiers, const char* one, const char* two) {
  half_binary<One, Two>(rows, "min", modifiers, one, two, Extreme<Format, false, false, ftz>{},
                        real_lanes<RealExtreme<false>>);
  half_binary<One, Two>(rows, "max", modifiers, one, two, Extreme<Format, true, false, ftz>{},
                        real_lanes<RealExtreme<true>>);
}

template <class Format, class One, class Two>
void add_format(std::vector<Row>& rows, const char* one, const char* two) {
  add_arithmetic<Format, One, Two, false, false>(rows, "", one, two);
  add_extremes<Format, One, Two, false>(rows, "", one, two);
  half_binary<One, Two>(rows, "min.NaN", "", one, two, Extreme<Format, false, true, false>{},
                        real_lanes<RealExtreme<false>>);
  half_binary<One, Two>(rows, "max.NaN", "", one, two, Extreme<Format, true, true, false>{},
                        real_lanes<RealExtreme<true>>);
  half_ternary<One, Two>(rows, "fma.rn", ".relu", one, two, Operation<Format, Fused, false, false, true>{},
                         real_lanes<RealClamped<RealFused<false>, false>>);
  half_unary<One, Two>(rows, {"neg", one}, {"neg", two}, Negation<Format>{}, real_lanes<RealNegation>);
  half_unary<One, Two>(rows, {"abs", one}, {"abs", two}, Magnitude<Format>{}, real_lanes<RealMagnitude>);
}

}  // namespace

void add_half_rows(std::vector<Row>& rows) {
  add_format<Half, F16, F16x2>(rows, ".f16", ".f16x2");
  add_format<Brain, BF16, BF16x2>(rows, ".bf16", ".bf16x2");
  add_arithmetic<Half, F16, F16x2, true, false>(rows, ".ftz", ".f16", ".f16x2");
  add_arithmetic<Half, F16, F16x2, false, true>(rows, ".sat", ".f16", ".f16x2");
  add_arithmetic<Half, F16, F16x2, true, true>(rows, ".ftz.sat", ".f16", ".f16x2");
  add_extremes<Half, F16, F16x2, true>(rows, ".ftz", ".f16", ".f16x2");
  half_binary<F16, F16x2>(rows, "min", ".ftz.NaN", ".f16", ".f16x2", Extreme<Half, false, true, true>{},
                          real_lanes<RealExtreme<false>>);
  half_binary<F16, F16x2>(rows, "max", ".ftz.NaN", ".f16", ".f16x2", Extreme<Half, true, true, true>{},
                          real_lanes<RealExtreme<true>>);
  half_unary<F16, F16x2>(rows, {"neg.ftz.f16"}, {"neg.ftz.f16x2"}, Negation<Half, true>{},
                         real_lanes<RealNegation>);
  half_unary<F16, F16x2>(rows, {"abs.ftz.f16"}, {"abs.ftz.f16x2"}, Magnitude<Half, true>{},
                         real_lanes<RealMagnitude>);
}

}  // namespace assay::vm::ASSAY_LANES
