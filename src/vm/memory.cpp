#include "src/vm/memory.h"

#include <algorithm>

namespace assay::vm {

void Memory::insert(Allocation made) {
  const auto at = std::lower_bound(allocations_.begin(), allocations_.end(), made.base,
                                   [](const Allocation& a, uint64_t base) { return a.base < base; });
  if (at != allocations_.end() && at->base == made.base)
    *at = std::move(made);
  else
    allocations_.insert(at, std::move(made));
}

uint64_t Memory::add(std::string name, std::byte* data, uint64_t bytes, const Tensor* tensor) {
  const uint64_t base = next_;
  next_ = (base + bytes + allocation_gap + 0x1f'ffff) & ~uint64_t{0x1f'ffff};
  insert({std::move(name), base, bytes, data, tensor});
  return base;
}

void Memory::place(uint64_t base, std::string name, std::byte* data, uint64_t bytes) {
  insert({std::move(name), base, bytes, data, nullptr});
}

void Memory::remove(uint64_t from, uint64_t to) {
  std::erase_if(allocations_, [&](const Allocation& a) { return a.base >= from && a.base < to; });
}

int Memory::find(uint64_t address, uint64_t bytes) const {
  const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                      [](uint64_t x, const Allocation& a) { return x < a.base; });
  if (after == allocations_.begin()) return -1;
  const Allocation& found = *(after - 1);
  const uint64_t offset = address - found.base;
  return offset <= found.bytes && bytes <= found.bytes - offset
             ? static_cast<int>(after - 1 - allocations_.begin())
             : -1;
}

std::string Memory::describe(uint64_t address) const {
  auto shape = [](const Allocation& a) {
    return a.name + (a.tensor ? " " + a.tensor->shape_text() : " of " + std::to_string(a.bytes) + " bytes");
  };
  const Allocation* before = nullptr;
  const Allocation* behind = nullptr;
  for (const Allocation& a : allocations_) {
    if (a.base <= address)
      before = &a;
    else if (!behind)
      behind = &a;
  }
  if (before && address < before->base + before->bytes) {
    const uint64_t offset = address - before->base;
    if (!before->tensor || before->tensor->size() == 0) return before->name + " + " + std::to_string(offset);
    const int64_t size = before->tensor->bytes() / before->tensor->size();
    const std::string element = before->tensor->element_name(static_cast<int64_t>(offset) / size);
    const auto rest = static_cast<int64_t>(offset) % size;
    return rest ? element + " + " + std::to_string(rest) + " bytes" : element;
  }
  const uint64_t past = before ? address - (before->base + before->bytes) : ~0ull;
  const uint64_t ahead = behind ? behind->base - address : ~0ull;
  if (past <= ahead && past < allocation_gap / 2)
    return std::to_string(past) + " bytes past the end of " + shape(*before);
  if (ahead < allocation_gap / 2) return std::to_string(ahead) + " bytes before " + shape(*behind);
  return "an address far from every tensor";
}

}  // namespace assay::vm
