#include "src/base/vm/shadow.h"

#include <algorithm>

namespace assay::vm {

void MemoryShadow::add(Area area) {
  const auto at = std::upper_bound(areas_.begin(), areas_.end(), area.base,
                                   [](uint64_t base, const Area& a) { return base < a.base; });
  areas_.insert(at, std::move(area));
}

MemoryShadow::Area* MemoryShadow::find(uint64_t address) {
  auto holds = [address](const Area& a) { return address >= a.base && address - a.base < a.bytes; };
  if (last_ < areas_.size() && holds(areas_[last_])) return &areas_[last_];
  const auto at = std::upper_bound(areas_.begin(), areas_.end(), address,
                                   [](uint64_t value, const Area& a) { return value < a.base; });
  if (at == areas_.begin() || !holds(*(at - 1))) return nullptr;
  last_ = static_cast<size_t>(at - 1 - areas_.begin());
  return &areas_[last_];
}

std::pair<const MemoryShadow::Area*, uint64_t> MemoryShadow::find(const std::string& buffer, int64_t flat) const {
  const auto place = places_.find(buffer);
  if (place == places_.end()) return {};
  const uint64_t address = place->second.address + static_cast<uint64_t>(flat) * place->second.element_bytes;
  for (const Area& a : areas_)
    if (address - a.base < a.bytes) return {&a, address};
  return {};
}

ShadowCell MemoryShadow::read(const Area* area, uint64_t address) {
  if (!area) return {};
  const uint64_t offset = address - area->base;
  if (!area->cells.empty() && (area->writers[offset / 2] >= 0 || !area->is_input))
    return area->cells[offset / 2];
  if (!area->is_input) return {0, area->untouched};
  auto element = static_cast<int64_t>(offset / area->element_bytes);
  if (area->layout) element = area->layout->element(element);
  if (element < 0) return {0, kUnwritten};
  return {0, kLeaf | (area->first_leaf + static_cast<uint32_t>(element))};
}

void MemoryShadow::write(Area* area, uint64_t address, ShadowCell cell, int32_t writer) {
  if (!area) return;
  if (area->cells.empty()) {
    area->cells.assign((area->bytes + 1) / 2, {0, area->untouched});
    area->writers.assign((area->bytes + 1) / 2, -1);
  }
  const uint64_t half = (address - area->base) / 2;
  area->cells[half] = cell;
  area->writers[half] = writer;
}

}  // namespace assay::vm
