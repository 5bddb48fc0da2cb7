#include "src/base/watch/repeatable.h"

#include <algorithm>

namespace assay::watch {
namespace {

using ptx::Operand;

/// Clocks and counters are special registers too; of those that are read in loops none is worth a list.
bool reads_special(const Operand& operand) {
  return operand.kind == Operand::Kind::special ||
         std::any_of(operand.elements.begin(), operand.elements.end(), reads_special);
}

bool reads_what_stays(const vm::Access& access) {
  return access.direction == vm::Access::Direction::read &&
         (access.space == ptx::Space::shared || access.space == ptx::Space::param ||
          access.space == ptx::Space::constant);
}

bool is_repeatable(const ptx::Instruction& in, const vm::TextSignature& signature) {
  using ptx::Operation;
  const Operation operation = in.form.operation;
  if (!signature.meaning || signature.control != vm::Control::none || signature.writes.empty() ||
      signature.meaning->asynchronous.step != vm::Step::none)
    return false;
  // Of what lanes do together, products and loads of matrices alone: whole warps come to them.
  if (in.form.sync && operation != Operation::mma && operation != Operation::ldmatrix) return false;
  const bool plain = in.form.order == ptx::Order::none || in.form.order == ptx::Order::weak;
  if (!plain || in.form.in_cluster || operation == Operation::activemask) return false;
  return std::none_of(in.operands.begin(), in.operands.end(), reads_special) &&
         std::all_of(signature.accesses.begin(), signature.accesses.end(), reads_what_stays);
}

}  // namespace

bool RepeatableStretch::take(const ptx::Instruction& in, const vm::TextSignature& signature) {
  if (!is_repeatable(in, signature)) return false;
  std::set<int32_t> begins_with = begins_with_;
  const auto read = [&](int32_t reg) {
    if (!written_.contains(reg)) begins_with.insert(reg);
  };
  std::for_each(signature.reads.begin(), signature.reads.end(), read);
  // What a guarded instruction leaves is what was there before.
  if (in.predicate >= 0) std::for_each(signature.writes.begin(), signature.writes.end(), read);
  if (std::any_of(signature.writes.begin(), signature.writes.end(),
                  [&](int32_t reg) { return begins_with.contains(reg); }))
    return false;
  begins_with_ = std::move(begins_with);
  written_.insert(signature.writes.begin(), signature.writes.end());
  return true;
}

}  // namespace assay::watch
