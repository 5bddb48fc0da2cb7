#include "src/base/vm/memory.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/tensor/index_letter.h"
#include "src/base/vm/device_calls.h"

namespace assay::vm {

int64_t Allocation::element_at(uint64_t offset) const {
  const int64_t position = static_cast<int64_t>(offset) / format(tensor->dtype).bytes;
  return layout ? layout->element(position) : position;
}

void Memory::insert(Allocation made) {
  const auto at = std::lower_bound(allocations_.begin(), allocations_.end(), made.base,
                                   [](const Allocation& a, uint64_t base) { return a.base < base; });
  if (at != allocations_.end() && at->base == made.base)
    *at = std::move(made);
  else
    allocations_.insert(at, std::move(made));
}

uint64_t Memory::add(std::string name, std::byte* data, uint64_t bytes, const Tensor* tensor,
                     std::shared_ptr<PagedBytes> pages, const TensorLayout* layout) {
  const uint64_t base = next_;
  next_ = (base + bytes + allocation_gap + 0x1f'ffff) & ~uint64_t{0x1f'ffff};
  insert({std::move(name), base, bytes, data, std::move(pages), tensor, layout, {}, nullptr});
  return base;
}

void Memory::place(uint64_t base, std::string name, std::byte* data, uint64_t bytes, const Tensor* tensor,
                   std::shared_ptr<PagedBytes> pages, const TensorLayout* layout) {
  insert({std::move(name), base, bytes, data, std::move(pages), tensor, layout, {}, nullptr});
}

void Memory::place_heap(DeviceCalls& calls) {
  insert({"device heap",
          heap_base,
          calls.heap.bytes.size(),
          calls.heap.bytes.data(),
          nullptr,
          nullptr,
          nullptr,
          {},
          &calls});
}

uint64_t Memory::add_part(uint64_t base, std::string name, uint64_t offset, uint64_t bytes,
                          const Tensor* tensor) {
  Allocation& whole = allocations_[static_cast<size_t>(find(base, 0))];
  whole.parts.push_back({std::move(name), offset, bytes, tensor});
  return base + offset;
}

std::optional<Place> Memory::find(std::string_view name) const {
  for (const Allocation& a : allocations_) {
    if (!is_buffer(a.base)) continue;
    if (a.name == name) return Place{&a, 0, a.bytes, a.tensor};
    for (const Part& part : a.parts)
      if (part.name == name) return Place{&a, part.offset, part.bytes, part.tensor};
  }
  return std::nullopt;
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

namespace {

/// The index that an element outside a tensor would have: the outermost axis longer than 1 runs over, so that
/// one row past q [B=1,T=3,..] is q[b=0,t=3,..] and the element before it q[b=0,t=-1,..].
std::string index_outside(const Tensor& tensor, int64_t flat) {
  size_t runs = 0;
  while (runs + 1 < tensor.axes.size() && tensor.axes[runs].size == 1) ++runs;
  int64_t inner = 1;
  for (size_t i = runs + 1; i < tensor.axes.size(); ++i) inner *= tensor.axes[i].size;
  const int64_t over = flat >= 0 ? flat / inner : -((inner - 1 - flat) / inner);
  std::vector<int64_t> index(tensor.axes.size(), 0);
  index[runs] = over;
  int64_t rest = flat - over * inner;
  for (size_t i = tensor.axes.size(); i-- > runs + 1;) {
    index[i] = rest % tensor.axes[i].size;
    rest /= tensor.axes[i].size;
  }
  std::string text = tensor.name + "[";
  for (size_t i = 0; i < index.size(); ++i) {
    text += (i ? "," : "") + index_letter(tensor.axes[i].name) + "=" + std::to_string(index[i]);
  }
  return text + "]";
}

std::string element_of(const Tensor& tensor, int64_t offset) {
  const int64_t size = format(tensor.dtype).bytes;
  const std::string rest = offset % size ? " + " + std::to_string(offset % size) + " bytes" : "";
  return tensor.element_name(offset / size) + rest;
}

/// The element there, or the gap of a view and the element before it.
std::string place_in(const Allocation& a, int64_t offset) {
  const int64_t size = format(a.tensor->dtype).bytes, position = offset / size;
  const int64_t flat = a.element_at(static_cast<uint64_t>(offset));
  const std::string rest = offset % size ? " + " + std::to_string(offset % size) + " bytes" : "";
  if (flat >= 0) return a.tensor->element_name(flat) + rest;
  const int64_t before = a.layout->element_before(position);
  const int64_t away = position - a.layout->position(std::max<int64_t>(before, 0));
  return "a gap of " + a.name + ", " + std::to_string(std::abs(away)) + " elements " +
         (before < 0 ? "before " : "behind ") + a.tensor->element_name(std::max<int64_t>(before, 0));
}

}  // namespace

std::string Memory::describe(uint64_t address) const {
  // The element that an address outside the tensor would be, where the tensor has a shape.
  auto element_outside = [](const Allocation& a, int64_t offset) {
    if (!a.tensor || a.layout || a.tensor->size() == 0 || a.tensor->axes.empty()) return std::string();
    const int64_t size = format(a.tensor->dtype).bytes;
    return index_outside(*a.tensor, offset >= 0 ? offset / size : -((size - 1 - offset) / size)) + ", ";
  };
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
    if (before->heap) return before->heap->describe(offset);
    for (const Part& part : before->parts)
      if (part.tensor && part.tensor->size() > 0 && offset - part.offset < part.bytes)
        return element_of(*part.tensor, static_cast<int64_t>(offset - part.offset));
    if (!before->tensor || before->tensor->size() == 0) return before->name + " + " + std::to_string(offset);
    return place_in(*before, static_cast<int64_t>(offset));
  }
  const uint64_t past = before ? address - (before->base + before->bytes) : ~0ull;
  const uint64_t ahead = behind ? behind->base - address : ~0ull;
  if (past <= ahead && past < allocation_gap / 2)
    return element_outside(*before, static_cast<int64_t>(address - before->base)) + std::to_string(past) +
           " bytes past the end of " + shape(*before);
  if (ahead < allocation_gap / 2)
    return element_outside(*behind, -static_cast<int64_t>(ahead)) + std::to_string(ahead) + " bytes before " +
           shape(*behind);
  constexpr uint64_t kBehindNull = uint64_t{1} << 30;  // no memory of a run lies so low
  if (address + kBehindNull < 2 * kBehindNull) {
    const auto from = static_cast<int64_t>(address);
    return "the null pointer of an absent argument" +
           (from == 0
                ? ""
                : " " + std::string(from > 0 ? "+ " : "- ") + std::to_string(std::abs(from)) + " bytes");
  }
  return "an address far from every tensor";
}

}  // namespace assay::vm
