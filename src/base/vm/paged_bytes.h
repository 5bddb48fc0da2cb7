// Bytes of a buffer too large to be held: pages are made when they are first touched, by a function of their
// place alone.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace assay::vm {

/// For one thread.
class PagedBytes {
 public:
  static constexpr uint64_t page_bytes = 1 << 10;
  /// `fill(first, to)` writes the page_bytes bytes from byte `first` on; beyond the end it may write
  /// anything.
  explicit PagedBytes(std::function<void(uint64_t first, std::byte* to)> fill) : fill_(std::move(fill)) {}

  /// The byte at `offset`; an aligned access lies in one page.
  std::byte* at(uint64_t offset) {
    auto& page = pages_[offset / page_bytes];
    if (!page) {
      page = std::make_unique<std::byte[]>(page_bytes);
      fill_(offset / page_bytes * page_bytes, page.get());
    }
    return page.get() + offset % page_bytes;
  }
  /// The same where it has been touched; else null.
  const std::byte* touched(uint64_t offset) const {
    const auto page = pages_.find(offset / page_bytes);
    return page == pages_.end() ? nullptr : page->second.get() + offset % page_bytes;
  }
  /// Numbers of the pages that have been touched, ascending.
  std::vector<uint64_t> touched_pages() const {
    std::vector<uint64_t> pages;
    for (const auto& [number, page] : pages_) pages.push_back(number);
    std::sort(pages.begin(), pages.end());
    return pages;
  }

 private:
  std::function<void(uint64_t, std::byte*)> fill_;
  std::unordered_map<uint64_t, std::unique_ptr<std::byte[]>> pages_;
};

}  // namespace assay::vm
