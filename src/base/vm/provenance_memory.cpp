#include "src/base/vm/provenance_memory.h"

namespace assay::vm {

ProvenanceMemory::Stored ProvenanceMemory::at(const Cells::Area& area, uint64_t offset) {
  const auto seen = Cells::seen(area, offset);
  if (seen.cells && (*seen.cells)[seen.at].writer >= 0) return (*seen.cells)[seen.at];
  const Origin& origin = area.note;
  if (!origin.is_input) return {{0, origin.untouched}, -1};
  auto element = static_cast<int64_t>(offset / origin.element_bytes);
  if (origin.layout) element = origin.layout->element(element);
  if (element < 0) return {{0, kUnwritten}, -1};
  return {{0, kLeaf | (origin.first_leaf + static_cast<uint32_t>(element))}, -1};
}

ProvenanceMemory::Element ProvenanceMemory::find(const std::string& buffer, int64_t flat) const {
  const auto place = places_.find(buffer);
  if (place == places_.end()) return {};
  const uint64_t address = place->second.address + static_cast<uint64_t>(flat) * place->second.element_bytes;
  for (const Cells::Area& area : cells_.areas())
    if (address - area.base < area.bytes) return {&area, address - area.base, place->second.element_bytes};
  return {};
}

ProvenanceCell ProvenanceMemory::read(uint64_t address) {
  const Cells::Area* const area = cells_.find(address, last_);
  return area ? at(*area, address - area->base).cell : ProvenanceCell{};
}

void ProvenanceMemory::write(uint64_t address, ProvenanceCell cell, int32_t writer) {
  if (const auto to = cells_.place(address, last_); to.cells) (*to.cells)[to.at] = {cell, writer};
}

}  // namespace assay::vm
