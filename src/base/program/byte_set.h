// Some of the bytes of a buffer.
#pragma once
#include <cstdint>
#include <vector>

namespace assay {

struct ByteSpan {
  uint64_t begin = 0, end = 0;
  bool operator==(const ByteSpan&) const = default;
};

/// Ranges that do not meet, ascending.
class ByteSet {
 public:
  void add(uint64_t begin, uint64_t end);
  void remove(uint64_t begin, uint64_t end);
  /// Those of [begin, end).
  ByteSet within(uint64_t begin, uint64_t end) const;
  uint64_t count() const;
  bool empty() const { return spans_.empty(); }
  const std::vector<ByteSpan>& spans() const { return spans_; }
  bool operator==(const ByteSet&) const = default;

 private:
  std::vector<ByteSpan> spans_;
};

}  // namespace assay
