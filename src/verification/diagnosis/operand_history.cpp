#include "src/verification/diagnosis/operand_history.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "src/base/vm/event_log.h"
#include "src/base/vm/matrix_form.h"

namespace assay {
namespace {

constexpr size_t kMostFollowed = 4096;

const ptx::Instruction* instruction_of(const vm::ValueSlice& s, const vm::SliceInstance& i) {
  if (i.function < 0 || i.instruction < 0) return nullptr;
  const ptx::Module& module = *s.modules[static_cast<size_t>(i.module)];
  return &module.functions[static_cast<size_t>(i.function)].body[static_cast<size_t>(i.instruction)];
}

bool is_zero(const vm::SliceOperand& o) {
  return ptx::is_float(o.type) ? vm::value_of(o.type, o.bits) == 0 : o.bits == 0;
}

/// Instances whose zero result is a zero that they took: copies, conversions, products.
bool hands_zero_on(ptx::Operation operation) {
  using enum ptx::Operation;
  switch (operation) {
    case ex2:
    case add:
    case sub:
    case fma:
    case mad:
    case div:
    case rcp:
      return false;
    default:
      return !vm::is_matrix_product(operation);
  }
}

/// Zero factors beside others that are not finite: operands come as a mul, an fma or a tensor-core sum pairs
/// them.
std::vector<int32_t> zeros_beside_nonfinite(const vm::ValueSlice& s, const vm::SliceInstance& i) {
  std::vector<int32_t> zeros;
  for (uint32_t o = i.first_operand; o + 1 < i.first_operand + i.operand_count; o += 2) {
    const vm::SliceOperand &a = s.operands[o], &b = s.operands[o + 1];
    const auto left_range = [](const vm::SliceOperand& x) {
      return ptx::is_float(x.type) && !std::isfinite(vm::value_of(x.type, x.bits));
    };
    if (is_zero(a) && left_range(b)) zeros.push_back(a.made_by);
    if (is_zero(b) && left_range(a)) zeros.push_back(b.made_by);
  }
  return zeros;
}

bool ends_at_select(const vm::ValueSlice& s, std::vector<int32_t> open) {
  std::set<int32_t> seen;
  while (!open.empty() && seen.size() < kMostFollowed) {
    const int32_t at = open.back();
    open.pop_back();
    if (at < 0 || !seen.insert(at).second) continue;
    const vm::SliceInstance& i = s.instances[static_cast<size_t>(at)];
    const ptx::Instruction* in = instruction_of(s, i);
    if (in && !hands_zero_on(in->form.operation)) continue;
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& from = s.operands[o];
      if (!is_zero(from)) continue;
      const bool selects = in && in->form.operation == ptx::Operation::selp;
      if (selects && from.made_by < 0 && from.source == vm::Source::literal) return true;
      open.push_back(from.made_by);
    }
  }
  return false;
}

}  // namespace

OperandHistory::OperandHistory(const Program& plan, const TensorMap& inputs,
                               const vm::MachineOptions& machine, const std::string& output, int64_t flat,
                               const vm::Event& event)
    : divisor_name_(event.operands.empty() ? "" : event.operands.back().name) {
  const vm::SliceLimits limits{size_t{1} << 18, size_t{3} << 19, uint64_t{256} << 20, {}};
  slice_ = vm::slice_value(plan, inputs, machine, output, flat, limits);
  for (size_t at = 0; at < slice_.instances.size(); ++at) {
    const vm::SliceInstance& i = slice_.instances[at];
    if (i.launch == event.launch && i.function == event.function && i.instruction == event.instruction &&
        i.block == event.block && i.thread == event.thread)
      of_event_.push_back(static_cast<int32_t>(at));
  }
}

bool OperandHistory::has_selected_zero() const {
  return std::any_of(of_event_.begin(), of_event_.end(), [&](int32_t at) {
    return ends_at_select(slice_, zeros_beside_nonfinite(slice_, slice_.instances[static_cast<size_t>(at)]));
  });
}

const vm::SliceInstance* OperandHistory::unwritten_read() const {
  std::vector<int32_t> open = of_event_;
  std::set<int32_t> seen;
  for (size_t next = 0; next < open.size() && next < kMostFollowed; ++next) {  // breadth first: the nearest
    const vm::SliceInstance& i = slice_.instances[static_cast<size_t>(open[next])];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& from = slice_.operands[o];
      if (from.made_by < 0 && from.source == vm::Source::unwritten) return &i;
      if (from.made_by >= 0 && seen.insert(from.made_by).second) open.push_back(from.made_by);
    }
  }
  return nullptr;
}

const vm::UnwrittenPlace* OperandHistory::unwritten_place() const {
  const vm::SliceInstance* read = unwritten_read();
  if (!read) return nullptr;
  for (const vm::UnwrittenPlace& place : slice_.unwritten_places)
    if (place.operand - read->first_operand < read->operand_count) return &place;
  return nullptr;
}

std::optional<ZeroDivisor> OperandHistory::zero_divisor() const {
  ZeroDivisor divisor;
  std::vector<int32_t> open;
  std::set<int32_t> seen;
  const auto follow = [&](const vm::SliceOperand& from) {
    if (from.made_by < 0 && from.source == vm::Source::input)
      divisor.inputs.insert(slice_.input_names[static_cast<size_t>(from.input >> 40)]);
    if (from.made_by >= 0 && seen.insert(from.made_by).second) open.push_back(from.made_by);
    return from.made_by >= 0 || from.source != vm::Source::beyond;
  };
  for (const int32_t at : of_event_) {
    const vm::SliceInstance& i = slice_.instances[static_cast<size_t>(at)];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (slice_.operands[o].name == divisor_name_ && !follow(slice_.operands[o])) return std::nullopt;
  }
  bool vanished = false, left = false;
  std::vector<int32_t> behind;  // exponentials, whose arguments may be made of others
  for (bool nearest = true; !open.empty() || !behind.empty();) {
    if (open.empty()) open.swap(behind), nearest = false;
    const vm::SliceInstance& i = slice_.instances[static_cast<size_t>(open.back())];
    const ptx::Instruction* in = instruction_of(slice_, i);
    if (nearest && in && in->form.operation == ptx::Operation::ex2) {
      (vm::value_of(i.type, i.bits) == 0 ? vanished : left) = true;
      behind.push_back(open.back());
      open.pop_back();
      continue;
    }
    open.pop_back();
    if (seen.size() > kMostFollowed) return std::nullopt;
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (!follow(slice_.operands[o])) return std::nullopt;
  }
  divisor.exponentials_vanished = vanished && !left;
  return divisor;
}

}  // namespace assay
