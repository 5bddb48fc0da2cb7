#include "src/base/program/byte_set.h"

#include <algorithm>

namespace assay {

void ByteSet::remove(uint64_t begin, uint64_t end) {
  const auto first = std::lower_bound(spans_.begin(), spans_.end(), begin,
                                      [](const ByteSpan& range, uint64_t at) { return range.end <= at; });
  auto last = first;
  std::vector<ByteSpan> left;
  for (; last != spans_.end() && last->begin < end; ++last) {
    if (last->begin < begin) left.push_back({last->begin, begin});
    if (last->end > end) left.push_back({end, last->end});
  }
  if (first == last || begin >= end) return;
  spans_.insert(spans_.erase(first, last), left.begin(), left.end());
}

void ByteSet::add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  for (const ByteSpan& range : spans_)
    if (range.end >= begin && range.begin <= end)
      begin = std::min(begin, range.begin), end = std::max(end, range.end);
  remove(begin, end);
  const auto after = std::lower_bound(spans_.begin(), spans_.end(), begin,
                                      [](const ByteSpan& range, uint64_t at) { return range.begin < at; });
  spans_.insert(after, {begin, end});
}

ByteSet ByteSet::within(uint64_t begin, uint64_t end) const {
  ByteSet inside;
  for (const ByteSpan& range : spans_) inside.add(std::max(range.begin, begin), std::min(range.end, end));
  return inside;
}

uint64_t ByteSet::count() const {
  uint64_t all = 0;
  for (const ByteSpan& range : spans_) all += range.end - range.begin;
  return all;
}

}  // namespace assay
