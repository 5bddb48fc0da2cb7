// The engine's own loops over lanes: blending under a mask, ranges of exponential arguments.
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {

void blend_words(void* d, const void* from, uint32_t mask) {
  auto* to = static_cast<U32::element*>(d);
  const auto* source = static_cast<const U32::element*>(from);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 32; ++i) to[i] = (mask >> i) & 1 ? source[i] : to[i];
}

void blend_wide(void* d, const void* from, uint32_t mask) {
  auto* to = static_cast<U64::element*>(d);
  const auto* source = static_cast<const U64::element*>(from);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 32; ++i) to[i] = (mask >> i) & 1 ? source[i] : to[i];
}

uint32_t argument_range(const void* x, uint32_t mask, int32_t* smallest, int32_t* largest) {
  const auto* values = static_cast<const S32::element*>(x);
  int32_t low = *smallest, high = *largest;
  uint32_t nans = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const int32_t bits = values[i];
    const int32_t magnitude = bits & 0x7fffffff, sign = bits >> 31;
    const int32_t active = -static_cast<int32_t>((mask >> i) & 1);
    const int32_t nan = magnitude > 0x7f800000 ? -1 : 0, infinite = bits == -0x800000 ? -1 : 0;
    const int32_t order = (magnitude ^ sign) - sign;
    const int32_t counts = active & ~nan, for_low = counts & ~infinite;
    const int32_t below = (order & for_low) | (INT32_MAX & ~for_low),
                  above = (order & counts) | (INT32_MIN & ~counts);
    low = below < low ? below : low;
    high = above > high ? above : high;
    nans |= static_cast<uint32_t>(active & nan) & (1u << i);
  }
  *smallest = low;
  *largest = high;
  return nans;
}

void widen_floats(double* d, const void* x) {
  const auto* values = static_cast<const F32::element*>(x);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = static_cast<double>(values[i]);
}

// Four lanes at once; comparisons give all ones or zeros.
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t FourBits __attribute__((vector_size(32)));

Four four_at(const double* x) {
  return *reinterpret_cast<const Four*>(x);
}
Four magnitude(Four x) {
  return reinterpret_cast<Four>(reinterpret_cast<FourBits>(x) & ~(uint64_t{1} << 63));
}
uint32_t any_of(FourBits x) {
  return static_cast<uint32_t>(x[0] | x[1] | x[2] | x[3]);
}

void value_range(const double* x, bool magnitudes, uint32_t mask, double* smallest, double* largest) {
  Four low = *smallest - Four{}, high = *largest - Four{};
  FourBits bit = {1, 2, 4, 8};
  for (int i = 0; i < 32; i += 4, bit <<= 4) {
    const Four value = magnitudes ? magnitude(four_at(x + i)) : four_at(x + i);
    const auto active = (bit & uint64_t{mask}) != 0;
    low = active & (value < low) ? value : low;
    high = active & (value > high) ? value : high;
  }
  for (int j = 0; j < 4; ++j) {
    *smallest = low[j] < *smallest ? low[j] : *smallest;
    *largest = high[j] > *largest ? high[j] : *largest;
  }
}

ErrorMasks error_masks(const RealStep& step, double parting, double ratio) {
  const double nearly = ratio * (1 - 0x1p-50);
  FourBits bit = {1, 2, 4, 8}, finite = {}, rounded = {}, parted = {}, large = {};
  for (int i = 0; i < 32; i += 4, bit <<= 4) {
    const Four value = four_at(step.result + i), error = four_at(step.result_error + i),
               local = magnitude(four_at(step.local + i)), size = magnitude(error);
    const Four least = nearly * magnitude(value);  // near 0 its own rounding is large
    const auto taken = [&](auto where) { return reinterpret_cast<FourBits>(where) & bit; };
    finite |= taken(size <= 0x1.fffffffffffffp+1023);
    rounded |= taken(local != 0);
    parted |= taken(size > parting * magnitude(value + error));
    large |= taken((local >= least) | (least < 0x1p-900));
  }
  return {any_of(finite), any_of(rounded), any_of(parted), any_of(large)};
}

uint32_t finite_lanes(const double* error, const double* bound) {
  constexpr double kMost = 0x1.fffffffffffffp+1023;
  FourBits bit = {1, 2, 4, 8}, finite = {};
  if (!bound) bound = error;
  for (int i = 0; i < 32; i += 4, bit <<= 4)
    finite |=
        reinterpret_cast<FourBits>((magnitude(four_at(error + i)) <= kMost) & (four_at(bound + i) <= kMost)) &
        bit;
  return any_of(finite);
}

bool widen_bounds(const RealStep& step, double own, double roundoff, double share, const double* a,
                  const double* b) {
  constexpr double kMost = 0x1.fffffffffffffp+1023;
  FourBits unbounded = {};
  for (int i = 0; i < 32; i += 4) {
    const Four local = magnitude(four_at(step.local + i)), error = magnitude(four_at(step.result_error + i)),
               carried = four_at(step.result_bound + i) - local;
    Four bound = (carried < 0 ? Four{} : carried) + own * local + roundoff * error;
    if (share > 0) bound += share * magnitude(four_at(a + i) * four_at(b + i));
    *reinterpret_cast<Four*>(step.result_bound + i) = bound;
    unbounded |= ~reinterpret_cast<FourBits>(bound <= kMost);
  }
  return any_of(unbounded) != 0;
}

void offset_wide(uint64_t* address, const void* base, uint64_t offset) {
  const auto* from = static_cast<const U64::element*>(base);
  for (int i = 0; i < 32; ++i) address[i] = from[i] + offset;
}

void offset_words(uint64_t* address, const void* base, uint32_t offset) {
  const auto* from = static_cast<const U32::element*>(base);
  for (int i = 0; i < 32; ++i) address[i] = from[i] + offset;
}

uint32_t lanes_within(const uint64_t* address, uint64_t base, uint64_t bytes) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < 32; ++i) lanes |= static_cast<uint32_t>(address[i] - base < bytes) << i;
  return lanes;
}

typedef uint64_t Eight __attribute__((vector_size(64), aligned(8), may_alias));

/// A bit of some lane.
bool is_any(const Eight& x) {
#ifdef __AVX512F__
  typedef long long Tested __attribute__((vector_size(64)));
  const auto& tested = reinterpret_cast<const Tested&>(x);
  return __builtin_ia32_ptestmq512(tested, tested, 0xff) != 0;
#else
  return (x[0] | x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7]) != 0;
#endif
}

Places place_lanes(std::byte** host, const uint64_t* address, uint32_t mask, const Window& window) {
  typedef uint64_t __attribute__((may_alias)) pointer_bits;
  auto* to = reinterpret_cast<pointer_bits*>(host);
  const uint64_t low_bits = window.low_bits, bytes = low_bits + 1,
                 moved = reinterpret_cast<uint64_t>(window.data) - window.base;
  Eight bad{}, not_one{}, not_in_row{}, row = address[0] + Eight{0, 1, 2, 3, 4, 5, 6, 7} * bytes,
                                        bit = {1, 2, 4, 8, 16, 32, 64, 128};
  for (int i = 0; i < 32; i += 8, row += 8 * bytes, bit <<= 8) {
    const Eight at = *reinterpret_cast<const Eight*>(address + i);
    *reinterpret_cast<Eight*>(to + i) = at + moved;
    Eight wrong = reinterpret_cast<Eight>(at - window.base > window.last) | (at & low_bits);
    if (mask != ~0u) wrong &= reinterpret_cast<Eight>((bit & uint64_t{mask}) != 0);
    bad |= wrong, not_one |= at ^ address[0], not_in_row |= at ^ row;
  }
  if (is_any(bad)) return Places::outside;
  if (mask != ~0u) return Places::apart;
  return !is_any(not_one) ? Places::one : !is_any(not_in_row) ? Places::in_row : Places::apart;
}

uint32_t shuffle_sources(uint64_t mode, const void* b, const void* c, uint32_t* from) {
  const auto* steps = static_cast<const S32::element*>(b);
  const auto* limits = static_cast<const S32::element*>(c);
  // Up looks below the segment's least lane, the others beyond its greatest: signs turned, one comparison.
  const int32_t turn = mode == up ? -1 : 0, by_step = mode == up || mode == down ? -1 : 0;
  const int32_t crosses = mode == bfly ? -1 : 0;
  uint32_t inside = 0;
#pragma GCC ivdep
  for (int32_t i = 0; i < 32; ++i) {
    const int32_t step = steps[i] & 31, clamp = limits[i] & 31, segment = (limits[i] >> 8) & 31;
    const int32_t last = (i & segment) | (clamp & ~segment), moved = i + ((step ^ turn) - turn);
    const int32_t other = (crosses & (i ^ step)) | (~crosses & ((i & segment) | (step & ~segment)));
    const int32_t source = (by_step & moved) | (~by_step & other);
    const int32_t beyond = ((source ^ turn) - turn) - ((last ^ turn) - turn);  // > 0: out of the segment
    const int32_t good = beyond > 0 ? 0 : -1;
    from[i] = static_cast<uint32_t>((source & good) | (i & ~good));
    inside |= static_cast<uint32_t>(good) & (1u << i);
  }
  return inside;
}

void add_all_rows(std::vector<Row>& table) {
#define ASSAY_LANE_ROWS(family) add_##family##_rows(table);
#include "src/base/vm/rows/lane_rows.def"
#undef ASSAY_LANE_ROWS
}

LaneKit kit() {
  return {blend_words,     blend_wide,   argument_range, widen_floats,  value_range,  error_masks,
          finite_lanes,    widen_bounds, offset_wide,    offset_words,  lanes_within, place_lanes,
          shuffle_sources, spread_words, collect_words,  spread_halves, sum_tile};
}

}  // namespace assay::vm::ASSAY_LANES
