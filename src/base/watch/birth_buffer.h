// The buffer that rewritten programs note births in: a head, and two records for each site, of the first NaN
// and the first infinity born there.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/watch/rewriter.h"

namespace assay::watch {

/// Offsets in bytes, for the code that writes and the code that reads.
namespace place {
inline constexpr int head = 64;           ///< before the first record
inline constexpr int current_launch = 0;  ///< in the head: the number of the launch, as whoever launches says
inline constexpr int noted = 4;           ///< in the head: records that hold something
inline constexpr int record = 80;         ///< of one record
inline constexpr int count = 0, launch = 4, time = 8, block = 16, thread = 28, operands = 40, result = 64;
}  // namespace place

enum class Born : uint8_t { nan, infinity };
inline constexpr int kRecordsPerSite = 2;

/// For so many sites. A buffer begins as zeros.
constexpr uint64_t buffer_bytes(uint64_t sites) {
  return place::head + sites * kRecordsPerSite * place::record;
}

struct Record {
  int32_t site = 0;
  Born born = Born::nan;
  uint32_t count = 0;  ///< lanes in which it was born
  // Of the first of them:
  uint32_t launch = 0;
  uint64_t nanoseconds = 0;  ///< %globaltimer
  std::array<uint32_t, 3> block{}, thread{};
  std::array<uint64_t, 3> operands{};
  uint64_t result = 0;
};
/// Those that hold something, by site.
std::vector<Record> records_of(std::span<const std::byte> buffer);

/// "-3.5, 0 -> -inf"; of a packed type the half in which it was born; of a tensor core's sums the result
/// alone.
std::string example_of(const WatchedSite&, const Record&);
/// An infinity made of an exact zero: by division, rcp, rsqrt, lg2.
bool is_division_by_zero(const ptx::Instruction&, const WatchedSite&, const Record&);
/// A NaN of an infinity.
bool was_infinite(const WatchedSite&, const Record&);

}  // namespace assay::watch
