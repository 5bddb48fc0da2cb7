#include "src/base/watch/rehearsal.h"

#include <algorithm>

#include "src/base/watch/uniform_control.h"

namespace assay::watch {
namespace {

using ptx::Operand;
using ptx::Operation;
using vm::Completion;
using vm::Control;

void add_targets(const Operand& operand, std::vector<int32_t>& targets) {
  if (operand.kind == Operand::Kind::label && operand.target >= 0) targets.push_back(operand.target);
  for (const Operand& element : operand.elements) add_targets(element, targets);
}

/// bar.sync of all threads of the block.
bool is_whole_barrier(const ptx::Instruction& in) {
  return in.form.operation == Operation::bar_sync && in.predicate < 0 && in.operands.size() == 1 &&
         in.operands[0].kind == Operand::Kind::immediate && in.operands[0].bits == 0;
}

/// Accesses that only the block's own threads see.
bool stays_inside(const vm::Access& access) {
  return access.direction == vm::Access::Direction::read || access.space == ptx::Space::shared ||
         access.space == ptx::Space::local;
}

/// What may be run twice: it neither leaves the function nor is seen by others, nor waits for them.
bool is_private(const ptx::Instruction& in, const vm::TextSignature& s) {
  if (!s.meaning || in.form.in_cluster) return false;
  const bool goes_on = s.control == Control::none || s.control == Control::branch;
  const bool plain = in.form.order == ptx::Order::none || in.form.order == ptx::Order::weak;
  const Completion completion = s.meaning->asynchronous.completion;
  const bool waits_for_own = vm::is_one_of(completion, Completion::copy_group, Completion::wgmma_group);
  if (!goes_on) return is_whole_barrier(in);
  if (!plain || (completion != Completion::none && !waits_for_own)) return false;
  const bool silent =
      s.flow() != vm::Flow::none || s.control == Control::branch || waits_for_own ||
      vm::is_one_of(in.form.operation, Operation::bar_warp_sync, Operation::fence_proxy_async);
  return silent && !vm::is_one_of(s.flow(), vm::Flow::parameters, vm::Flow::copy_bulk) &&
         std::all_of(s.accesses.begin(), s.accesses.end(), stays_inside);
}

/// What threads do for each other, or together.
bool is_shared(const ptx::Instruction& in, const vm::TextSignature& s) {
  const auto writes = [](const vm::Access& a) {
    return a.space == ptx::Space::shared && a.direction != vm::Access::Direction::read;
  };
  return in.form.sync || s.control == Control::barrier ||
         (s.meaning && s.meaning->asynchronous.completion != Completion::none) ||
         std::any_of(s.accesses.begin(), s.accesses.end(), writes);
}

class Finder {
 public:
  explicit Finder(const FunctionView& view) : view_(view), count_(view.function.body.size()) {
    made_.holds.assign(count_, false);
    for (size_t i = 0; i < count_; ++i) {
      private_.push_back(is_private(in(i), view.signatures[i]));
      barrier_.push_back(is_whole_barrier(in(i)) && view.depth[i] == 1 && i + 1 < count_);
    }
  }

  std::optional<Rehearsal> found() {
    find_seen();
    if (!find_part() || made_.gates.empty() || comes_back() || !leaves_go_alone() || !is_plain_text())
      return {};
    if (!threads_meet(view_, made_.holds, barrier_)) return {};
    return made_;
  }

 private:
  const ptx::Instruction& in(size_t i) const { return view_.function.body[i]; }
  std::vector<int32_t> next(size_t i) const { return successors(view_, static_cast<int32_t>(i)); }

  /// From where on others see something before the next barrier.
  void find_seen() {
    seen_.assign(count_ + 1, false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = count_; i-- > 0;) {
        const bool seen = !private_[i] || (!barrier_[i] && leads_to_seen(i));
        changed |= seen && !seen_[i];
        seen_[i] = seen;
      }
    }
  }
  bool leads_to_seen(size_t i) const {
    const std::vector<int32_t> all = next(i);
    return std::any_of(all.begin(), all.end(), [&](int32_t to) { return seen_[static_cast<size_t>(to)]; });
  }

  bool find_part() {
    std::vector<bool> reached(count_ + 1, false);
    std::vector<int32_t> left{0};
    while (!left.empty()) {
      const auto i = static_cast<size_t>(left.back());
      left.pop_back();
      if (i >= count_) return false;
      if (reached[i]) continue;
      reached[i] = true;
      if (!private_[i]) {
        made_.leaves.push_back(static_cast<int32_t>(i));
      } else if (barrier_[i] && leads_to_seen(i)) {
        made_.gates.push_back(static_cast<int32_t>(i));
      } else {
        made_.holds[i] = true;
        for (const int32_t to : next(i)) left.push_back(to);
      }
    }
    return true;
  }

  /// Where the run can get from there; out of the part only where `anywhere`.
  std::vector<bool> reached_from(std::vector<int32_t> left, bool anywhere) const {
    std::vector<bool> reached(count_ + 1, false);
    while (!left.empty()) {
      const auto i = static_cast<size_t>(left.back());
      left.pop_back();
      if (i >= count_ || reached[i]) continue;
      reached[i] = true;
      if (!anywhere && !made_.holds[i]) continue;
      for (const int32_t to : next(i)) left.push_back(to);
    }
    return reached;
  }

  /// In a loop of which only the first time would be rehearsed.
  bool comes_back() const {
    std::vector<int32_t> behind;
    for (const int32_t gate : made_.gates) behind.push_back(gate + 1);
    const std::vector<bool> reached = reached_from(behind, true);
    return std::any_of(made_.gates.begin(), made_.gates.end(),
                       [&](int32_t gate) { return reached[static_cast<size_t>(gate)]; });
  }

  /// Threads that leave have done nothing for others, and will not.
  bool leaves_go_alone() {
    std::vector<int32_t> shared;
    for (size_t i = 0; i < count_; ++i) {
      if (!made_.holds[i]) continue;
      if (is_shared(in(i), view_.signatures[i])) shared.push_back(static_cast<int32_t>(i));
      made_.copies |= completion(i) == Completion::copy_group;
      made_.multiplies |= completion(i) == Completion::wgmma_group;
    }
    const std::vector<bool> after = reached_from(shared, false), behind = reached_from(made_.leaves, true);
    for (const int32_t leave : made_.leaves)
      if (after[static_cast<size_t>(leave)] || view_.depth[static_cast<size_t>(leave)] != 1) return false;
    for (size_t i = 0; i < count_; ++i)
      if (behind[i] && is_shared(in(i), view_.signatures[i])) return false;
    return true;
  }
  Completion completion(size_t i) const { return view_.signatures[i].meaning->asynchronous.completion; }

  /// Scopes belong to it as a whole, nothing jumps in them; no wgmma is in flight at a gate.
  bool is_plain_text() const {
    for (size_t i = 0; i < count_; ++i) {
      if (!made_.holds[i] || view_.depth[i] == 1) continue;
      if (view_.signatures[i].control == Control::branch) return false;
      if (i + 1 < count_ && view_.depth[i + 1] > 1 && !made_.holds[i + 1]) return false;
      if (i > 0 && view_.depth[i - 1] > 1 && !made_.holds[i - 1]) return false;
    }
    for (const ptx::Instruction& branch : view_.function.body) {
      std::vector<int32_t> targets;
      for (const Operand& operand : branch.operands) add_targets(operand, targets);
      for (const int32_t to : targets)
        if (static_cast<size_t>(to) < count_ && view_.depth[static_cast<size_t>(to)] > 1) return false;
    }
    return std::all_of(made_.gates.begin(), made_.gates.end(), [&](int32_t gate) {
      int32_t i = gate - 1;
      while (i >= 0 && in(static_cast<size_t>(i)).form.operation != Operation::wgmma_wait_group &&
             in(static_cast<size_t>(i)).form.operation != Operation::wgmma_mma_async)
        --i;
      if (i < 0) return true;
      const ptx::Instruction& last = in(static_cast<size_t>(i));
      return last.form.operation == Operation::wgmma_wait_group && last.operands.size() == 1 &&
             last.operands[0].kind == Operand::Kind::immediate && last.operands[0].bits == 0;
    });
  }

  const FunctionView& view_;
  const size_t count_;
  Rehearsal made_;
  std::vector<bool> private_, barrier_, seen_;
};

}  // namespace

std::vector<int32_t> successors(const FunctionView& view, int32_t instruction) {
  const auto i = static_cast<size_t>(instruction);
  const ptx::Instruction& in = view.function.body[i];
  std::vector<int32_t> all;
  const Control control = view.signatures[i].control;
  const bool jumps = vm::is_one_of(control, Control::branch, Control::branch_table),
             ends = vm::is_one_of(control, Control::ret, Control::exit, Control::trap);
  if (jumps)
    for (const Operand& operand : in.operands) add_targets(operand, all);
  if ((!jumps && !ends) || in.predicate >= 0) all.push_back(instruction + 1);
  return all;
}

std::optional<Rehearsal> rehearsal_of(const FunctionView& view) {
  if (!view.function.entry || view.function.body.empty()) return {};
  return Finder(view).found();
}

}  // namespace assay::watch
