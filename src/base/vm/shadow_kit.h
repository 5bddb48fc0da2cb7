// Steps of exact shadows on whole rows of lanes and whole tiles, compiled per instruction set of the host as
// the lane rows are (rows/shadow_lanes.cpp). All sets give the same bits.
#pragma once
#include <cstdint>
#include <string_view>

namespace assay::vm {

/// A tile of a tensor-core sum with k products each: a[rows][32], b[k][8], all else [rows][8]; operands as
/// doubles, errors and bounds beside them.
struct TileErrors {
  int rows = 0, k = 0;
  bool a_rounded = true, b_rounded = true;  ///< false: its errors and bounds are zero
  const double *a = nullptr, *a_error = nullptr, *a_bound = nullptr;
  const double *b = nullptr, *b_error = nullptr, *b_bound = nullptr;
  const double *c = nullptr, *c_error = nullptr, *c_bound = nullptr;
  const double* d = nullptr;  ///< the machine's sums
  double *local = nullptr, *error = nullptr, *bound = nullptr;
  double* terms = nullptr;  ///< the sizes of what adds up to the error; null: not asked
};

/// One part of them: a and b are exact values.
struct TileParts {
  int rows = 0, k = 0;
  bool in_a = true, in_b = true;  ///< false: that operand's part is zero
  const double *a = nullptr, *a_part = nullptr, *b = nullptr, *b_part = nullptr, *c_part = nullptr;
  double* part = nullptr;
};

struct PartSum {
  uint32_t unbounded = 0;  ///< lanes with a term that was not finite, and counts as 0
  bool any = false;        ///< some lane's is not zero
};

/// What a step adds to its probes.
struct ProbeSizes {
  alignas(64) double left_out[32], own[32];
};

/// How far off a result is, relative to itself, and the operand that is furthest off, which one that is, and
/// how many times as much the result is.
struct ErrorGrowth {
  alignas(64) double error[32], operand[32], growth[32];
  alignas(64) uint64_t which[32];
  alignas(64) uint64_t counts[32];  ///< 0: one of the three is not finite, or both errors are not above 0
  alignas(64) uint64_t error_binade[32], growth_binade[32];  ///< Binades::binade_of
  double largest = 0;                                        ///< of `error`, where it counts
};

/// In each lane, an instruction whose results come back to it around a loop: what it has made of the error
/// that comes back, one growth times the next. It begins anew where nothing is left of them.
struct ReturningRow {
  alignas(64) double growth[32];  ///< all growths since, one times the next
  alignas(64) double start[32];   ///< the relative error that came back then
  void begin() {
    for (double& x : growth) x = 1;
    for (double& x : start) x = 0;
  }
};

struct ShadowKit {
  void (*combine_tile)(const TileErrors&);
  void (*combine_tile_part)(const TileParts&);
  /// d[i] = sum of slope[k][i] part[k][i] over count operands.
  PartSum (*carry_part)(double* d, int count, const double* const* slope, const double* const* part);
  /// terms[i] = |local[i]| + sum of |slope[k][i] error[k][i]|.
  void (*sizes_of_terms)(double* terms, const double* local, int count, const double* const* slope,
                         const double* const* error);
  /// left_out: share |a b| with its sign; own: |left_out| and `roundoff` of the terms.
  void (*sizes_of_probes)(ProbeSizes&, double share, const double* a, const double* b, double roundoff,
                          const double* terms);
  /// sum[i] += own[i] times probe_factor(place ^ i, probe); of probe 0 left_out[i].
  void (*add_probe)(double* sum, const ProbeSizes&, uint64_t place, int probe);
  /// In lanes of `mask`. Operands without an error count for nothing; 0 where none has one.
  void (*measure_growth)(ErrorGrowth&, uint32_t mask, const double* result, const double* error, int count,
                         const double* const* value, const double* const* of_value);
  /// Of lanes that count. By `which` operand was worst (bit k of `sources`: that one came back) it came back
  /// with that relative error, `least` at least, and left with that of the result without its own rounding
  /// (`local`). binade: of how many times as much came back as at the start, as far as this instruction made
  /// that: another one of the loop may undo it; of 1 where nothing came back.
  void (*follow_returns)(ReturningRow&, const ErrorGrowth&, uint32_t sources, double least,
                         const double* result, const double* error, const double* local, uint64_t* binade);
  /// ++counts[binade[i]] of lanes that are not zero.
  void (*count_binades)(uint32_t* counts, const uint64_t* binade, const uint64_t* lanes);
};
const ShadowKit& shadow_kit();
/// Of one of lane_sets().
ShadowKit shadow_kit(std::string_view set);
#ifdef ASSAY_LANES
namespace ASSAY_LANES {
ShadowKit shadow_kit();
}
#endif

/// By what a probe takes what enters it: the same for the same place and probe, uniform between -sqrt(3) and
/// sqrt(3), of variance 1. Inlined, since all sets have it.
[[gnu::always_inline]] inline double probe_factor(uint64_t place, int probe) {
  uint64_t x = (place + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(probe) * 0xd1b54a32d192ed03u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  constexpr double kRoot3 = 1.7320508075688772;
  return kRoot3 * (static_cast<double>(static_cast<int64_t>((x ^ (x >> 31)) >> 11)) * 0x1p-52 - 1);
}

}  // namespace assay::vm
