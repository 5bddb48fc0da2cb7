// Inputs of the recorded tensor-core and approximate-instruction sets. The recorder (record_sm90.cu) and the
// tests draw the same words from here, so that the data files hold results only; a digest in each file's
// header ties it to this text. Integers only: the same words on every host and compiler.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::recorded {

/// xorshift64* of Vigna; small, portable, good enough to spread bit patterns.
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}
  uint32_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<uint32_t>((state * 0x2545f4914f6cdd1du) >> 32);
  }
  /// Uniform in [low, high].
  int in(int low, int high) { return low + static_cast<int>(next() % static_cast<uint32_t>(high - low + 1)); }
  bool one_in(int n) { return next() % static_cast<uint32_t>(n) == 0; }
};

/// Layout of an operand format; tf32 stands in fp32 words.
struct Layout {
  int fraction_bits, exponent_bits, total_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int min_exponent() const { return 1 - bias(); }
  int max_exponent() const { return bias(); }
};
inline constexpr Layout kBf16{7, 8, 16}, kF16{10, 5, 16}, kF32{23, 8, 32};

/// One mma form: operand layout and shape m16n8kK.
struct MmaForm {
  const char* name;
  Layout layout;
  bool tf32;
  int k;
  int cases;
};
inline constexpr std::array<MmaForm, 6> kMmaForms{{{"bf16_k16", kBf16, false, 16, 4096},
                                                   {"f16_k16", kF16, false, 16, 4096},
                                                   {"tf32_k8", kF32, true, 8, 4096},
                                                   {"bf16_k8", kBf16, false, 8, 256},
                                                   {"f16_k8", kF16, false, 8, 256},
                                                   {"tf32_k4", kF32, true, 4, 256}}};

/// Sign, exponent and fraction to bits; below the smallest normal the fraction is shifted into a subnormal,
/// above the largest exponent the value is infinite.
inline uint32_t pack(const Layout& f, bool negative, int exponent, uint32_t fraction) {
  const uint32_t sign = static_cast<uint32_t>(negative) << (f.total_bits - 1);
  fraction &= (1u << f.fraction_bits) - 1;
  if (exponent > f.max_exponent()) return sign | (((1u << f.exponent_bits) - 1) << f.fraction_bits);
  if (exponent >= f.min_exponent())
    return sign | (static_cast<uint32_t>(exponent + f.bias()) << f.fraction_bits) | fraction;
  const int shift = f.min_exponent() - exponent;
  return sign | (shift > f.fraction_bits ? 0 : ((1u << f.fraction_bits) | fraction) >> shift);
}

/// Full, short or empty fraction: powers of two make ties and cancellations, full ones make truncations.
inline uint32_t draw_fraction(Random& r, const Layout& f) {
  switch (r.in(0, 3)) {
    case 0:
      return 0;
    case 1:
      return (1u << (f.fraction_bits - 1 - r.in(0, 2)));
    default:
      return r.next();
  }
}

inline uint32_t draw_special(Random& r, const Layout& f) {
  const uint32_t exponent = ((1u << f.exponent_bits) - 1) << f.fraction_bits;
  const uint32_t sign = (r.next() & 1) << (f.total_bits - 1);
  switch (r.in(0, 5)) {
    case 0:
      return sign | exponent;  // infinity
    case 1:
      return sign | exponent | 1u;  // NaN, payload in the last bit only
    case 2:
      return sign | exponent | (1u << (f.fraction_bits - 1));  // quiet NaN
    case 3:
      return sign;  // zero
    case 4:
      return sign | 1u;  // smallest subnormal
    default:
      return sign | ((1u << f.fraction_bits) - 1);  // largest subnormal
  }
}

/// Exponents that one case uses: products lie near `target`, c near `c_exponent`.
struct Theme {
  int target, jitter, split;  ///< product exponent, spread, exponent of the a side
  int c_exponent;
  bool c_zero;
  int zero_in, special_in;  ///< one operand in n is zero / special; 0: never
  bool empty;               ///< every product is a negative zero, c a negative zero or a subnormal
  bool cancel;              ///< the upper half of k repeats the lower half with the sign turned
  bool lead;                ///< k = 0 stands far above the rest
};

/// The edge a case is drawn at, by case number.
inline Theme draw_theme(Random& r, const MmaForm& form, int index) {
  const bool narrow = form.layout.exponent_bits == 5;
  Theme t{0, 3, 0, 0, r.one_in(2), 0, 0, false, false, false};
  switch (index % 10) {
    case 0:
      t.target = r.in(-158, -140);
      t.jitter = r.in(0, 1);
      t.c_zero = !r.one_in(8);
      t.c_exponent = r.in(-150, -126);
      break;  // floor
    case 1:
      t.target = r.in(-60, -20);
      t.zero_in = 2;
      t.lead = true;
      t.c_exponent = t.target - r.in(0, 26);
      break;  // 0 * huge
    case 2:
      t.target = r.in(-40, 0);
      t.split = -130;
      t.c_exponent = r.in(-149, -120);
      break;  // subnormal operands
    case 3:
      t.target = r.in(-150, -124);
      t.jitter = 6;
      t.c_exponent = r.in(-150, -124);
      break;  // subnormal results
    case 4:
      t.target = r.in(-20, 20);
      t.cancel = true;
      t.zero_in = 4;
      t.c_zero = true;
      t.empty = r.one_in(2);
      break;  // exact zero
    case 5:
      t.target = r.in(100, 128);
      t.jitter = 2;
      t.c_exponent = r.in(124, 127);
      break;  // overflow
    case 6:
      t.target = r.in(-27, -22);
      t.jitter = 2;
      t.lead = true;
      t.c_exponent = r.in(-30, 2);
      break;  // below F
    case 7:
      t.target = r.in(-26, -20);
      t.jitter = 1;
      t.lead = true;
      t.cancel = r.one_in(2);
      t.c_exponent = 0;
      break;  // steps
    case 8:
      t.target = r.in(-10, 10);
      t.special_in = 40;
      t.zero_in = 6;
      t.c_exponent = r.in(-10, 10);
      break;  // specials
    default:
      t.target = r.in(-100, 60);
      t.jitter = 30;
      t.c_exponent = t.target + r.in(-40, 40);
      break;  // wide
  }
  if (narrow) {
    t.target = t.target < -28 ? r.in(-30, -14) : t.target > 30 ? r.in(24, 31) : t.target;
    t.jitter = t.jitter > 6 ? 6 : t.jitter;
    t.split = t.split < -24 ? -18 : t.split;
  }
  if (t.split == 0) t.split = t.target / 2;
  return t;
}

/// One case: row-major A[16][k], B[k][8], C[16][8] as bit patterns.
struct MmaCase {
  std::vector<uint32_t> a, b, c;
};

inline MmaCase draw_mma(const MmaForm& form, int index) {
  Random r(static_cast<uint64_t>(index) * 64 + static_cast<uint64_t>(form.k) + (form.tf32 ? 1 : 0) +
           (form.layout.exponent_bits == 5 ? 2 : 0));
  const Theme t = draw_theme(r, form, index);
  const Layout& f = form.layout;
  const int k = form.k;
  MmaCase m{std::vector<uint32_t>(16 * k), std::vector<uint32_t>(k * 8), std::vector<uint32_t>(16 * 8)};
  auto draw = [&](int exponent) {
    if (t.special_in && r.one_in(t.special_in)) return draw_special(r, f);
    if (t.zero_in && r.one_in(t.zero_in)) return pack(f, r.next() & 1, f.min_exponent() - 40, 0);
    return pack(f, r.next() & 1, exponent + r.in(-t.jitter, t.jitter), draw_fraction(r, f));
  };
  for (int row = 0; row < 16; row++)
    for (int i = 0; i < k; i++) m.a[row * k + i] = t.empty ? 0 : draw(i == 0 && t.lead ? 0 : t.split);
  for (int i = 0; i < k; i++)
    for (int col = 0; col < 8; col++)
      m.b[i * 8 + col] =
          draw(i == 0 && t.lead ? (index % 10 == 1 ? f.max_exponent() : 0) : t.target - t.split);
  if (t.lead && index % 10 == 1)
    for (int row = 0; row < 16; row++)
      m.a[row * k] = (r.next() & 1) << (f.total_bits - 1);  // zero times huge
  if (index % 20 == 10) {                                   // one sign: the cut ends of sixteen terms add up
    const uint32_t magnitude = (1u << (f.total_bits - 1)) - 1;
    for (auto& a : m.a) a &= magnitude;
    for (auto& b : m.b) b &= magnitude;
  }
  if (t.empty)
    for (auto& b : m.b) b |= 1u << (f.total_bits - 1);
  if (t.cancel && !t.empty) {  // k and k + K/2 cancel, so that c or nothing is left
    const uint32_t sign = 1u << (f.total_bits - 1);
    for (int i = 0; i < k / 2; i++) {
      for (int row = 0; row < 16; row++) m.a[row * k + i + k / 2] = m.a[row * k + i];
      for (int col = 0; col < 8; col++) m.b[(i + k / 2) * 8 + col] = m.b[i * 8 + col] ^ sign;
    }
  }
  for (auto& c : m.c) {
    if (t.special_in && r.one_in(t.special_in))
      c = draw_special(r, kF32);
    else if (t.empty)
      c = 0x80000000u | (r.one_in(2) ? r.next() >> r.in(10, 31) : 0);
    else if (t.c_zero)
      c = (r.next() & 1) << 31;
    else
      c = pack(kF32, r.next() & 1, t.c_exponent + r.in(-2, 2), draw_fraction(r, kF32));
    if (index % 10 == 5 && r.one_in(2)) c = 0x7f7fffffu ^ ((r.next() & 1) << 31) ^ (r.next() & 3);
  }
  return m;
}

/// Inputs of the approximate instructions: edges first, then bit patterns spread over all exponents.
inline std::vector<uint32_t> draw_arguments(int count) {
  std::vector<uint32_t> x{0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x00800001, 0x3f800000, 0x3f7fffff,
                          0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x42fe0000,
                          0x43000000, 0x42fc0000, 0x42fc0001, 0x43150000, 0x43160000, 0x7e800000, 0x7e800001,
                          0x7f000000, 0x40000000, 0x40800000, 0x407fffff, 0x3fffffff, 0x43800000, 0x437fffff};
  for (std::size_t i = 0, n = x.size(); i < n; i++) x.push_back(x[i] | 0x80000000u);
  Random r(2026);
  while (static_cast<int>(x.size()) < count) {
    const uint32_t w = r.next();
    switch (x.size() % 4) {
      case 0:
        x.push_back(w);
        break;  // anything
      case 1:
        x.push_back(pack(kF32, w >> 31, r.in(-26, 8), w));
        break;  // an exponential's arguments
      case 2:
        x.push_back(pack(kF32, w >> 31, r.in(-149, -120), w));
        break;  // subnormal and next to it
      default:
        x.push_back(pack(kF32, w >> 31, r.in(120, 127), w));
        break;  // large
    }
  }
  return x;
}

/// FNV-1a over words.
inline uint64_t digest(const uint32_t* words, std::size_t count, uint64_t h = 0xcbf29ce484222325u) {
  for (std::size_t i = 0; i < count; i++) h = (h ^ words[i]) * 0x100000001b3u;
  return h;
}

}  // namespace assay::recorded
