#include "src/vm/event_log.h"

#include <bit>
#include <cmath>

#include "src/numerics/format.h"

namespace assay::vm {
namespace {

constexpr size_t kCarrierLimit = 4u << 20;  // about 0.5 GB with operands
constexpr size_t kEventLimit = 8u << 20;
constexpr int kRepeatDepth = 6;  // instructions of one turn of a loop-carried recurrence that pass a NaN on

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

Tag EventLog::repeated(const LoggedEvent& event, Tag parent) const {
  for (int depth = 0; depth < kRepeatDepth && parent != 0; depth++) {
    const LoggedEvent& p = events_[parent - 1];
    if (p.born) return 0;
    if (p.site == event.site && p.thread == event.thread && p.block == event.block) return parent;
    parent = 0;
    for (int i = 0; i < p.operand_count && parent == 0; i++) parent = operand(p, i).tag;
  }
  return 0;
}

Tag EventLog::add(LoggedEvent event, const LoggedOperand* operands, int count) {
  if (!event.born) {
    Tag parent = 0;
    for (int i = 0; i < count && parent == 0; i++) parent = operands[i].tag;
    if (const Tag same = repeated(event, parent)) return same;
    if (events_.size() >= kCarrierLimit && parent != 0) {
      truncated_ = true;
      return parent;
    }
  }
  if (events_.size() >= kEventLimit) {
    truncated_ = true;
    return 0;
  }
  event.first_operand = static_cast<uint32_t>(operands_.size());
  event.operand_count = static_cast<uint8_t>(count);
  operands_.insert(operands_.end(), operands, operands + count);
  events_.push_back(event);
  return static_cast<Tag>(events_.size());
}

}  // namespace assay::vm
