// What approximate instructions are compared on, and how their results are condensed: the recorder
// (record_approximate.cu) and the tests draw the same operands from here. Every block of 2^20 indices (2^16
// for 16-bit forms) has a 32-bit digest, the sum of one term per result, so that the order does not matter.
#pragma once
#include <array>
#include <cstdint>

#ifdef __CUDACC__
#define ASSAY_HOST_DEVICE __host__ __device__
#else
#define ASSAY_HOST_DEVICE
#endif

namespace assay::recorded {

/// How an index becomes operands.
enum class Operands : uint8_t {
  word,  ///< the index: every float
  half,  ///< the index: every 16-bit float
  high,  ///< the high word of a double is the index, the low word a hash of it
  pair   ///< two floats: random, at the edges, from a table of special values
};

struct ApproximateForm {
  const char* name;
  Operands operands;
};

/// In the order of tests/data/approximate_digests.bin.gz.
inline constexpr std::array<ApproximateForm, 26> kApproximateForms{
    {{"rcp.approx.ftz.f32", Operands::word},   {"rcp.approx.f32", Operands::word},
     {"rsqrt.approx.ftz.f32", Operands::word}, {"rsqrt.approx.f32", Operands::word},
     {"lg2.approx.ftz.f32", Operands::word},   {"lg2.approx.f32", Operands::word},
     {"sqrt.approx.ftz.f32", Operands::word},  {"sqrt.approx.f32", Operands::word},
     {"sin.approx.ftz.f32", Operands::word},   {"sin.approx.f32", Operands::word},
     {"cos.approx.ftz.f32", Operands::word},   {"cos.approx.f32", Operands::word},
     {"ex2.approx.ftz.f32", Operands::word},   {"ex2.approx.f32", Operands::word},
     {"tanh.approx.f32", Operands::word},      {"rcp.approx.ftz.f64", Operands::high},
     {"rsqrt.approx.ftz.f64", Operands::high}, {"rsqrt.approx.f64", Operands::high},
     {"div.approx.ftz.f32", Operands::pair},   {"div.approx.f32", Operands::pair},
     {"div.full.ftz.f32", Operands::pair},     {"div.full.f32", Operands::pair},
     {"ex2.approx.f16", Operands::half},       {"ex2.approx.ftz.bf16", Operands::half},
     {"tanh.approx.f16", Operands::half},      {"tanh.approx.bf16", Operands::half}}};

/// Indices of a form: all inputs, or 2^30 pairs.
constexpr uint64_t index_count(Operands operands) {
  return operands == Operands::half ? 1ull << 16 : operands == Operands::pair ? 1ull << 30 : 1ull << 32;
}
constexpr uint32_t block_size(Operands operands) {
  return operands == Operands::half ? 1u << 16 : 1u << 20;
}

ASSAY_HOST_DEVICE inline uint32_t hashed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// Operands of a division: of eight indices three random pairs, one each with a tiny divisor, a huge divisor,
/// a tiny dividend, special values, and both near one.
struct Pair {
  uint32_t a, b;
};
ASSAY_HOST_DEVICE inline Pair drawn_pair(uint32_t index) {
  const uint32_t special[32] = {
      0,           0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x807fffffu, 0x00800000u, 0x80800000u,
      0x00800001u, 0x3f800000u, 0xbf800000u, 0x3f800001u, 0x3f7fffffu, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u,
      0xff800000u, 0x7f800001u, 0x7fc00000u, 0xffffffffu, 0x7e800000u, 0x7e800001u, 0xfe800000u, 0x7e7fffffu,
      0x7f000000u, 0x40490fdbu, 0x34000000u, 0x0c000000u, 0x4b800000u, 0x33800000u, 0x00400000u, 0x40000000u};
  Pair p{hashed(index * 2 + 1), hashed(index * 2 + 0x5bd1e995u)};
  const uint32_t kind = index & 7;
  if (kind == 3) p.b &= 0x80ffffffu;
  if (kind == 4) p.b |= 0x7e000000u;
  if (kind == 5) p.a &= 0x80ffffffu;
  if (kind == 6) {
    p.a = special[index >> 3 & 31];
    if (index >> 13 & 1) p.b = special[index >> 8 & 31];
  }
  if (kind == 7) {
    p.a = (p.a & 0x81ffffffu) | 0x3c000000u;
    p.b = (p.b & 0x81ffffffu) | 0x3c000000u;
  }
  return p;
}

/// A result's term in the digest of its block. Of 64-bit results `bits` is high + 0x27d4eb2f low.
ASSAY_HOST_DEVICE inline uint32_t digest_term(uint32_t index, uint32_t bits) {
  uint32_t term = bits ^ ((index & 0xfffffu) * 0x9e3779b1u);
  term *= 0x85ebca6bu;
  term ^= term >> 15;
  term *= 0xc2b2ae35u;
  return term ^ term >> 13;
}
ASSAY_HOST_DEVICE inline uint32_t condensed(uint64_t bits) {
  return static_cast<uint32_t>(bits >> 32) + static_cast<uint32_t>(bits) * 0x27d4eb2fu;
}

}  // namespace assay::recorded
