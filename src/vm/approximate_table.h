// Recorded results of one approximate instruction over one or two binades, kept as differences from the
// correctly rounded function: two bits per input, packed in src/vm/tables/ and part of the program.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace assay::vm {

/// Differences (hardware's bit pattern - correctly rounded bit pattern) by input, unpacked at the first use.
class DifferenceTable {
 public:
  /// `count` entries of two bits, each the difference plus `offset`; [begin, end) is a zlib stream.
  DifferenceTable(const unsigned char* begin, const unsigned char* end, uint32_t count, int offset)
      : begin_(begin), end_(end), count_(count), offset_(offset) {}

  int operator[](uint32_t index) {
    const uint8_t* packed = ready_.load(std::memory_order_acquire);
    if (!packed) packed = unpacked();
    return ((packed[index >> 2] >> (2 * (index & 3))) & 3) - offset_;
  }

 private:
  const uint8_t* unpacked();

  const unsigned char *begin_, *end_;
  uint32_t count_;
  int offset_;
  std::once_flag once_;
  std::vector<uint8_t> packed_;
  std::atomic<const uint8_t*> ready_{nullptr};
};

DifferenceTable& ex2_differences();    ///< ex2.approx.ftz.f32 over the 2^23 floats of [1, 2)
DifferenceTable& rcp_differences();    ///< rcp.approx.ftz.f32 over [1, 2)
DifferenceTable& rsqrt_differences();  ///< rsqrt.approx.ftz.f32 over the 2^24 floats of [1, 4)
DifferenceTable& lg2_differences();    ///< lg2.approx.ftz.f32 over [2, 4)

}  // namespace assay::vm
