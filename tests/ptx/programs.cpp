#include "tests/ptx/programs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string_view>

#include "src/base/numerics/format.h"

namespace assay {
namespace {

constexpr double unit = 0x1p-24;  // half an ulp of 1 in single precision

float real(uint32_t x) {
  return static_cast<float>(static_cast<int32_t>(x) >> 8) * 0x1p-20f;
}
uint32_t bits(double x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x));
}
double ulp(double x) {
  return std::ldexp(1.0, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 23);
}
uint8_t byte_of(const Words& in, size_t i) {
  return static_cast<uint8_t>(in[i / 4] >> (8 * (i % 4)));
}

// parallel.cu

Words sorted(const Words& in, uint32_t) {
  Words made = in;
  std::sort(made.begin(), made.end());
  return made;
}
Words summed(const Words& in, uint32_t) {
  Words made = in;
  for (size_t i = 1; i < made.size(); ++i) made[i] += made[i - 1];
  return made;
}
Words counted(const Words& in, uint32_t n) {  // by block 0 of 2 blocks of 128 threads
  Words made(256, 0);
  for (uint32_t i = 0; i < n; ++i)
    if (i / 128 % 2 == 0) ++made[in[i] & 255];
  return made;
}
Words transposed(const Words& in, uint32_t n) {
  Words made(in.size());
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t j = 0; j < n; ++j) made[j * n + i] = in[i * n + j];
  return made;
}
Words reduced(const Words& in, uint32_t) {
  Words made;
  for (size_t w = 0; w < in.size(); w += 32) {
    uint32_t least = ~0u, most = 0, sum = 0, odd = 0, first = 0, same = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t x = in[w + i];
      least = std::min(least, x), most = std::max(most, x), sum += x, odd += x & 1;
      if (x % 7 == 0 && first == 0) first = i + 1;
      same |= static_cast<uint32_t>((x & 3) == (in[w] & 3)) << i;
    }
    made.insert(made.end(), {least, most, sum, odd, first, same});
  }
  return made;
}
Words tiled(const Words& in, uint32_t) {
  Words made;
  for (size_t i = 0; i < in.size(); ++i) {
    uint32_t sum = 0;
    for (size_t j = i / 8 * 8; j < i / 8 * 8 + 8; ++j) sum += in[j];
    made.push_back(sum * 8 + static_cast<uint32_t>(i % 8));
  }
  return made;
}
Words looked_up(const Words& in, uint32_t) {
  Words made = in;
  for (uint32_t& x : made) x |= 1;
  return made;
}
Words pipelined(const Words& in, uint32_t n) {
  Words made(128, 0);
  for (uint32_t i = 0; i < n; ++i) made[i % 128] += in[i] * (i / 128 + 1);
  return made;
}
Words locked(const Words& in, uint32_t) {
  uint32_t sum = 0;
  for (size_t i = 0; i < in.size(); i += 32) sum += in[i];
  return {sum};
}

// integer.cu

Words philox(const Words& in, uint32_t) {
  Words made;
  for (uint32_t t = 0; t < in.size(); ++t) {
    uint32_t c[4] = {in[t], t, 7, 9}, k0 = 0x12345678, k1 = 0x9abcdef0;
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xd2511f53u} * c[0], b = uint64_t{0xcd9e8d57u} * c[2];
      const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
                                static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
      std::copy(next, next + 4, c);
      k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    made.insert(made.end(), c, c + 4);
  }
  return made;
}

uint32_t reversed(uint32_t x) {
  uint32_t y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i);
  return y;
}
/// f over the four bytes or two halves of a and b.
uint32_t each(uint32_t a, uint32_t b, uint32_t width, const std::function<uint32_t(uint32_t, uint32_t)>& f) {
  const uint32_t keep = width == 8 ? 255 : 65535;
  uint32_t made = 0;
  for (uint32_t at = 0; at < 32; at += width) made |= (f(a >> at & keep, b >> at & keep) & keep) << at;
  return made;
}
Words bit_tricks(const Words& in, uint32_t n) {
  Words made;
  for (uint32_t t = 0; t < n; ++t) {
    const uint32_t x = in[t], y = in[(t + 1) % n];
    const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
    uint32_t mixed = static_cast<uint32_t>(std::popcount(x) + 64 * std::countl_zero(y) +
                                           4096 * (x ? std::countr_zero(x) + 1 : 0));
    uint32_t permuted = 0;
    for (int i = 0; i < 4; ++i)
      permuted |= static_cast<uint32_t>(both >> (8 * (0x3172 >> (4 * i) & 7)) & 255) << (8 * i);
    const uint32_t left = static_cast<uint32_t>(both << (x & 31) >> 32);
    const uint32_t right = static_cast<uint32_t>(both >> std::min(y & 63, 32u));
    mixed ^= reversed(y) ^ permuted ^ left ^ right;
    mixed += each(x, y, 8, [](uint32_t a, uint32_t b) { return a + b; }) ^
             each(x, y, 16,
                  [](uint32_t a, uint32_t b) {
                    return static_cast<uint32_t>(std::max(static_cast<int16_t>(a), static_cast<int16_t>(b)));
                  }) ^
             each(x, y, 8, [](uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }) ^
             each(x, y, 16, [](uint32_t a, uint32_t b) { return a > b ? 65535u : 0u; });
    uint32_t dot = 3;
    for (int i = 0; i < 32; i += 8) dot += (x >> i & 255) * (y >> i & 255);
    mixed ^= (x > y ? x - y : y - x) + 5 + static_cast<uint32_t>((uint64_t{x} + y) / 2) + dot;
    made.push_back(mixed);
  }
  return made;
}
Words divided(const Words& in, uint32_t n) {
  Words made;
  for (uint32_t t = 0; t < n; ++t) {
    const uint64_t a = static_cast<uint64_t>(in[t]) << 32 | in[(t + 5) % n],
                   b = in[(t + 9) % n] >> (t % 32) | 1;
    const auto x = static_cast<int64_t>(a), y = t & 1 ? -static_cast<int64_t>(b) : static_cast<int64_t>(b);
    const auto high = static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
    const uint64_t quotient = y == -1 ? 0 - a : static_cast<uint64_t>(x / y);  // of -2^63 too
    const uint64_t rest = y == -1 ? 0 : static_cast<uint64_t>(x % y);
    const uint64_t mixed = a / b + 3 * (a % b) + quotient * 5 + rest * 7 + high;
    made.push_back(static_cast<uint32_t>(mixed));
    made.push_back(static_cast<uint32_t>(mixed >> 32));
  }
  return made;
}
Words found(const Words& in, uint32_t n) {
  Words made;
  for (size_t at = 0; at < 4 * n; ++at) {
    bool equal = at + 5 <= 4 * n;
    for (size_t i = 0; i < 5 && equal; ++i) equal = byte_of(in, at + i) == byte_of(in, i);
    made.push_back(equal);
  }
  return made;
}
Words edits(const Words& in, uint32_t) {
  Words made;
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t table[25][25];
    for (uint32_t i = 0; i < 25; ++i)
      for (uint32_t j = 0; j < 25; ++j) {
        if (i == 0 || j == 0) {
          table[i][j] = i + j;
          continue;
        }
        const uint32_t change = byte_of(in, i - 1) % 4 != byte_of(in, t + j - 1) % 4;
        table[i][j] = std::min({table[i - 1][j - 1] + change, table[i - 1][j] + 1, table[i][j - 1] + 1});
      }
    made.push_back(table[24][24]);
  }
  return made;
}
Words stepped(const Words& in, uint32_t) {
  Words made;
  for (uint32_t x : in) {
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t which = (x >> i) % 3;
      x = which == 0 ? 2 * x : which == 1 ? x * x : ~x;
    }
    made.push_back(x);
  }
  return made;
}
Words interpreted(const Words& in, uint32_t) {
  Words made;
  for (uint32_t code : in) {
    uint32_t stack[8] = {1, 2, 3, 4}, top = 3;
    for (int step = 0; step < 8; ++step, code >>= 4) {
      const uint32_t op = code & 15;
      if (op == 8) break;
      if (op == 0) stack[top] += 1;
      if (op == 1) stack[top] *= 3;
      if (op == 2) stack[top] ^= stack[(top + 7) % 8];
      if (op == 3) top = (top + 1) % 8, stack[top] = static_cast<uint32_t>(step);
      if (op == 4) top = (top + 7) % 8;
      if (op == 5) stack[top] = stack[top] >> 3 | stack[top] << 29;
      if (op == 6) stack[top] -= stack[(top + 1) % 8];
      if (op == 7 && (stack[top] & 1)) step += 2;
      if (op == 9) stack[top] = static_cast<uint32_t>(std::popcount(stack[top]));
      if (op > 9) stack[top] = stack[top] * 5 + op;
    }
    uint32_t mixed = top;
    for (const uint32_t word : stack) mixed = mixed * 31 + word;
    made.push_back(mixed);
  }
  return made;
}
Words clocked(const Words& in, uint32_t) {
  Words made = in;
  for (uint32_t& x : made)
    for (int i = 0; i < 20; ++i) x = x * 1664525u + 1013904223u;
  return made;
}

// numeric.cu

Words transform(const Words& in, uint32_t) {
  Words made(128);
  for (uint32_t k = 0; k < 64; ++k) {
    double re = 0, im = 0;
    for (uint32_t j = 0; j < 64; ++j) {
      const double angle = -2 * M_PI * (j * k % 64) / 64, c = std::cos(angle), s = std::sin(angle);
      re += real(in[j]) * c - real(in[64 + j]) * s;
      im += real(in[j]) * s + real(in[64 + j]) * c;
    }
    made[k] = bits(re), made[64 + k] = bits(im);
  }
  return made;
}
/// A value of stage s is at most 2^s sqrt(2) M. A butterfly a +- w b of parts of b at most m, w off by 2
/// units (one ulp below 1): products off by m (2 + 1) units each, their sum by 2 m more, the last sum by 4 m:
/// 12 m units, on top of the errors of a and b times |w| parts (at most sqrt 2): (1 + sqrt 2) e. Stage m
/// doubles while the error grows by 2.42.
Allowed transform_error(const Words& in) {
  double most = 0;
  for (const uint32_t x : in) most = std::max(most, std::fabs(static_cast<double>(real(x))));
  double error = 0, m = M_SQRT2 * most;
  for (int stage = 0; stage < 6; ++stage, m *= 2)
    error = (1 + M_SQRT2) * error + 12 * m * unit * (1 + 0x1p-20);
  return [error, m](size_t) { return error + m * unit; };
}
Words soft_maximum(const Words& in, uint32_t) {
  double most = real(in[0]), sum = 0;
  for (const uint32_t x : in) most = std::max<double>(most, real(x));
  for (const uint32_t x : in) sum += std::exp(real(x) - most);
  Words made;
  for (const uint32_t x : in) made.push_back(bits(std::exp(real(x) - most) / sum));
  return made;
}
/// expf is within 2 ulp (CUDA Programming Guide, 5.5.7.2) of a rounded value: 5 units; its argument in (-16,
/// 0] is off by 16 units, so the exponential by 21 in all; the sum of n such adds n - 1 roundings, the
/// quotient one, ours one.
Allowed soft_maximum_error(const Words& in) {
  const Words right = soft_maximum(in, 0);
  return [right, n = in.size()](size_t i) {
    return (21 + 21 + static_cast<double>(n) + 2) * unit * 1.01 * std::bit_cast<float>(right[i]) + 0x1p-149;
  };
}
double variance_of(const Words& in, double* mean) {
  double square = 0;
  *mean = 0;
  for (const uint32_t x : in) *mean += real(x) / static_cast<double>(in.size());
  for (const uint32_t x : in)
    square += (real(x) - *mean) * (real(x) - *mean) / static_cast<double>(in.size());
  return square + 1e-5;
}
Words normalised(const Words& in, uint32_t) {
  double mean;
  const double scale = 1 / std::sqrt(variance_of(in, &mean));
  Words made;
  for (const uint32_t x : in) made.push_back(bits((real(x) - mean) * scale));
  return made;
}
/// |x| < 8: the mean is off by 8 (n + 1) units, a difference (below 16) by that and 16 more; a square by
/// twice that times 16, and 256 (n + 2) for the sum; rsqrtf is within 2 ulp: 5 units.
Allowed normalised_error(const Words& in) {
  double mean;
  const double variance = variance_of(in, &mean), scale = 1 / std::sqrt(variance),
               n = static_cast<double>(in.size());
  const double of_mean = 8 * (n + 1) * unit, of_difference = of_mean + 16 * unit;
  const double of_variance = 32 * of_difference + 256 * (n + 2) * unit;
  return [=](size_t) {
    return 1.01 * (of_difference * scale + 16 * scale * (of_variance / variance / 2 + 7 * unit));
  };
}
Words half_product(const Words& in, uint32_t) {
  auto half = [&](size_t i) { return decode(Dtype::fp16, in[i / 2] >> (16 * (i % 2)) & 0xffff); };
  Words made;
  for (uint32_t t = 0; t < 128; ++t) {
    uint32_t word = 0;
    for (uint32_t column = 0; column < 2; ++column) {
      uint64_t sum = 0;
      for (uint32_t k = 0; k < 16; ++k)  // exact in double: 22 bits of products from 2^-4 to 2^4
        sum = encode(Dtype::fp16, half(t / 8 * 16 + k) * half(256 + k * 16 + t % 8 * 2 + column) +
                                      decode(Dtype::fp16, sum));
      word |= static_cast<uint32_t>(sum) << (16 * column);
    }
    made.push_back(word);
  }
  return made;
}
Words sines(const Words& in, uint32_t) {
  Words made;
  for (uint32_t t = 0; t < in.size(); ++t) {
    const double x = real(in[t]) * (t % 2 ? 1.0f : 12345.678f);
    made.push_back(bits(std::sin(x))), made.push_back(bits(std::cos(x)));
  }
  return made;
}
Words errors(const Words& in, uint32_t) {
  Words made;
  for (const uint32_t x : in)
    made.push_back(bits(std::erf(real(x) * 0.5))), made.push_back(bits(std::erfc(real(x) * 0.5)));
  return made;
}
/// The guide's ulp of the correctly rounded result (5.5.7.4, 5.5.7.6); an ulp may be half as large just above
/// a power of two.
Allowed within_ulps(Words right, double even, double odd) {
  return [right, even, odd](size_t i) { return (i % 2 ? odd : even) * ulp(std::bit_cast<float>(right[i])); };
}
Words escapes(const Words& in, uint32_t n) {
  Words made;
  for (uint32_t t = 0; t < n; ++t) {
    const float cx = real(in[t]) * 0.25f, cy = real(in[(t + 1) % n]) * 0.25f;
    float x = 0, y = 0;
    uint32_t i = 0;
    for (; i < 64 && x * x + y * y <= 4; ++i) {
      const float next = x * x - y * y + cx;
      y = 2 * x * y + cy;
      x = next;
    }
    made.push_back(i);
  }
  return made;
}
Words eliminated(const Words& in, uint32_t) {
  double m[8][9];
  for (uint32_t t = 0; t < 8; ++t)
    for (uint32_t j = 0; j < 9; ++j) m[t][j] = real(in[t * 9 + j]) + (j == t ? 64.0 : 0.0);
  for (uint32_t k = 0; k < 8; ++k)
    for (uint32_t t = 0; t < 8; ++t) {
      const double factor = m[t][k] / m[k][k];
      for (uint32_t j = k; j < 9 && t != k; ++j) m[t][j] -= factor * m[k][j];
    }
  Words made;
  for (uint32_t t = 0; t < 8; ++t) {
    const auto x = std::bit_cast<uint64_t>(m[t][8] / m[t][t]);
    made.push_back(static_cast<uint32_t>(x)), made.push_back(static_cast<uint32_t>(x >> 32));
  }
  return made;
}
Words compensated(const Words& in, uint32_t) {
  float sum = 0, rest = 0;
  for (const uint32_t word : in) {
    const float x = static_cast<float>(decode(Dtype::bf16, encode(Dtype::bf16, real(word)))) - rest;
    const float next = sum + x;
    rest = (next - sum) - x;
    sum = next;
  }
  return {bits(sum)};
}

}  // namespace

const std::vector<ListedProgram>& programs() {
  static const std::vector<ListedProgram> made = {
      {"bitonic_sort", 256, 256, {1, 1, 1}, {256, 1, 1}, 256, sorted},
      {"prefix_scan", 512, 512, {1, 1, 1}, {512, 1, 1}, 512, summed},
      {"histogram", 1000, 256, {2, 1, 1}, {128, 1, 1}, 1000, counted},
      {"transpose", 48 * 48, 48 * 48, {3, 3, 1}, {16, 16, 1}, 48, transposed},
      {"warp_reductions", 96, 18, {1, 1, 1}, {96, 1, 1}, 96, reduced},
      {"tile_sums", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, tiled},
      {"hash_table", 192, 192, {1, 1, 1}, {192, 1, 1}, 192, looked_up},
      {"pipelined_sum", 640, 128, {1, 1, 1}, {128, 1, 1}, 640, pipelined},
      {"spin_lock", 256, 1, {1, 1, 1}, {256, 1, 1}, 256, locked},
      {"philox", 96, 384, {2, 1, 1}, {48, 1, 1}, 96, philox},
      {"bit_tricks", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, bit_tricks},
      {"long_division", 64, 128, {1, 1, 1}, {64, 1, 1}, 64, divided},
      {"string_search", 64, 256, {1, 1, 1}, {32, 1, 1}, 64, found},
      {"edit_distance", 32, 64, {1, 1, 1}, {64, 1, 1}, 32, edits},
      {"function_pointers", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, stepped},
      {"interpreter", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, interpreted},
      {"clocked", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, clocked},
      {"fft", 128, 128, {1, 1, 1}, {64, 1, 1}, 64, transform, transform_error},
      {"softmax", 128, 128, {1, 1, 1}, {128, 1, 1}, 128, soft_maximum, soft_maximum_error},
      {"layer_norm", 128, 128, {1, 1, 1}, {128, 1, 1}, 128, normalised, normalised_error},
      {"half2_product", 256, 128, {1, 1, 1}, {128, 1, 1}, 16, half_product},
      {"sine_and_cosine",
       64,
       128,
       {1, 1, 1},
       {64, 1, 1},
       64,
       sines,
       [](const Words& in) { return within_ulps(sines(in, 0), 2, 2); }},
      {"error_function",
       64,
       128,
       {1, 1, 1},
       {64, 1, 1},
       64,
       errors,
       [](const Words& in) { return within_ulps(errors(in, 0), 2, 4); }},
      {"mandelbrot", 64, 64, {1, 1, 1}, {64, 1, 1}, 64, escapes},
      {"elimination", 72, 16, {1, 1, 1}, {8, 1, 1}, 8, eliminated},
      {"compensated_sum", 100, 1, {1, 1, 1}, {1, 1, 1}, 100, compensated},
  };
  return made;
}

Words inputs_of(const ListedProgram& program) {
  std::mt19937_64 random(20250301);
  Words made;
  for (size_t i = 0; i < program.in; ++i) {
    const auto word = static_cast<uint32_t>(random());
    const bool halves = std::string_view(program.name) == "half2_product";
    made.push_back(halves ? (word & 0x8fff8fffu) | 0x30003000u : word);
  }
  if (std::string_view(program.name) == "string_search") made[20] = made[0], made[21] = made[1];
  return made;
}

}  // namespace assay
