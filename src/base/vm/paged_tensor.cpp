#include "src/base/vm/paged_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "src/base/tensor/reached_elements.h"

namespace assay::vm {
namespace {

class Poison : public TensorSource {
 public:
  Poison(Dtype dtype, uint8_t byte) : bits_((byte * 0x0101010101010101u) >> (64 - 8 * format(dtype).bytes)) {}
  uint64_t bits(int64_t) const override { return bits_; }

 private:
  uint64_t bits_;
};

class PagedElements : public ReachedElements {
 public:
  PagedElements(std::shared_ptr<const PagedBytes> pages, std::shared_ptr<const TensorSource> before,
                Dtype dtype, int64_t size)
      : pages_(std::move(pages)), before_(std::move(before)), width_(format(dtype).bytes), size_(size) {}
  uint64_t bits(int64_t flat) const override {
    const std::byte* const at = pages_->touched(static_cast<uint64_t>(flat * width_));
    if (!at) return before_->bits(flat);
    uint64_t bits = 0;
    std::memcpy(&bits, at, static_cast<size_t>(width_));
    return bits;
  }
  std::vector<std::pair<int64_t, int64_t>> reached() const override {
    constexpr auto page = static_cast<int64_t>(PagedBytes::page_bytes);
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const uint64_t number : pages_->touched_pages()) {
      const int64_t first = static_cast<int64_t>(number) * page / width_;
      ranges.emplace_back(first, std::min(first + page / width_, size_));
    }
    return ranges;
  }

 private:
  std::shared_ptr<const PagedBytes> pages_;
  std::shared_ptr<const TensorSource> before_;
  int64_t width_, size_;
};

}  // namespace

std::shared_ptr<PagedBytes> poisoned_pages(uint8_t byte) {
  return std::make_shared<PagedBytes>(
      [byte](uint64_t, std::byte* to) { std::memset(to, byte, PagedBytes::page_bytes); });
}

std::shared_ptr<PagedBytes> pages_of(const Tensor& tensor) {
  const auto width = static_cast<uint64_t>(format(tensor.dtype).bytes);
  return std::make_shared<PagedBytes>(
      [source = tensor.source, width, size = tensor.size()](uint64_t first, std::byte* to) {
        for (uint64_t at = 0; at < PagedBytes::page_bytes; at += width) {
          const auto flat = static_cast<int64_t>((first + at) / width);
          const uint64_t bits = flat < size ? source->bits(flat) : 0;
          std::memcpy(to + at, &bits, width);
        }
      });
}

std::shared_ptr<const TensorSource> poisoned_elements(Dtype dtype, uint8_t byte) {
  return std::make_shared<Poison>(dtype, byte);
}

std::shared_ptr<const TensorSource> paged_elements(std::shared_ptr<const PagedBytes> pages,
                                                   std::shared_ptr<const TensorSource> before, Dtype dtype,
                                                   int64_t size) {
  return std::make_shared<PagedElements>(std::move(pages), std::move(before), dtype, size);
}

}  // namespace assay::vm
