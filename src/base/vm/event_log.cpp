#include "src/base/vm/event_log.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/numerics/format.h"

namespace assay::vm {
namespace {

constexpr size_t kCarrierLimit = 4u << 20;  // about 0.5 GB with operands
constexpr size_t kEventLimit = 8u << 20;

}  // namespace

double value_of(ptx::Type type, uint64_t bits) {
  switch (type) {
    case ptx::Type::f16:
    case ptx::Type::f16x2:
      return decode(Dtype::fp16, bits & 0xffff);
    case ptx::Type::bf16:
    case ptx::Type::bf16x2:
      return decode(Dtype::bf16, bits & 0xffff);
    case ptx::Type::f64:
      return std::bit_cast<double>(bits);
    case ptx::Type::tf32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits) & ~0x1fffu);
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
}

bool is_nonfinite(ptx::Type type, uint64_t bits) {
  return !std::isfinite(value_of(type, bits));
}
bool is_nan(ptx::Type type, uint64_t bits) {
  return std::isnan(value_of(type, bits));
}

size_t EventLog::CarrierHash::operator()(const Carrier& c) const {
  uint64_t h = (static_cast<uint64_t>(c.block) << 32 | static_cast<uint32_t>(c.site)) * 0x9e3779b97f4a7c15u;
  h ^= (static_cast<uint64_t>(c.root) << 16 | c.thread) * 0xc2b2ae3d27d4eb4fu;
  return static_cast<size_t>(h ^ h >> 29);
}

Tag EventLog::add(LoggedEvent event, const LoggedOperand* operands, int count) {
  const auto index = static_cast<uint32_t>(events_.size());
  event.root = index;
  Tag parent = 0;
  bool outside = false;
  for (int i = 0; i < count; i++) {
    if (operands[i].tag) {
      if (!parent) parent = operands[i].tag;
      event.root = std::min(event.root, events_[operands[i].tag - 1].root);
    } else {
      outside |= is_nonfinite(operands[i].type, operands[i].bits);
    }
  }
  const bool carries = !event.born && !outside && parent != 0;
  const Carrier key{event.site, event.block, event.root, event.thread};
  if (carries) {
    const auto known = carriers_.find(key);
    if (known != carriers_.end()) return known->second;
  }
  if (events_.size() >= (carries ? kCarrierLimit : kEventLimit)) {
    truncated_ = true;
    return parent;
  }
  event.first_operand = static_cast<uint32_t>(operands_.size());
  event.operand_count = static_cast<uint8_t>(count);
  operands_.insert(operands_.end(), operands, operands + count);
  events_.push_back(event);
  if (carries) carriers_.emplace(key, index + 1);
  return index + 1;
}

}  // namespace assay::vm
