#include "src/base/watch/uniform_control.h"

#include <algorithm>
#include <string_view>

namespace assay::watch {
namespace {

using ptx::Operand;

bool differs_by_thread(const Operand& operand) {
  if (operand.kind == Operand::Kind::special) {
    const std::string_view name = operand.name;
    return !name.starts_with("%ctaid") && !name.starts_with("%nctaid") && !name.starts_with("%ntid");
  }
  return std::any_of(operand.elements.begin(), operand.elements.end(), differs_by_thread);
}

/// Whether the result is the same in all threads where the sources are.
bool keeps_uniform(const ptx::Instruction& in, const vm::TextSignature& signature) {
  const bool mixes = !signature.meaning ||
                     vm::is_one_of(signature.flow(), vm::Flow::exchange, vm::Flow::vote, vm::Flow::matrix,
                                   vm::Flow::load_matrix, vm::Flow::move_matrix, vm::Flow::atomic);
  return !mixes && std::none_of(in.operands.begin(), in.operands.end(), differs_by_thread);
}

class Threads {
 public:
  Threads(const FunctionView& view, const std::vector<bool>& part, const std::vector<bool>& is_barrier)
      : view_(view), part_(part), is_barrier_(is_barrier), uniform_(view.function.registers.size(), true) {}

  bool meet() {
    find_first_barriers();
    for (bool changed = true; changed;) {
      changed = find_values();
      for (size_t i = 0; i < part_.size(); ++i) {
        if (!parts_at(i)) continue;
        if (meeting_of(i) == kMany) return false;
        changed |= forget_apart(i);
      }
    }
    return true;
  }

 private:
  static constexpr int32_t kNone = -1, kMany = -2;

  bool inside(int32_t i) const { return part_[static_cast<size_t>(i)]; }
  static int32_t join(int32_t a, int32_t b) { return a == kNone ? b : b == kNone || a == b ? a : kMany; }

  int32_t meeting_of(size_t i) const {
    int32_t met = kNone;
    for (const int32_t next : successors(view_, static_cast<int32_t>(i)))
      met = join(met, first_[static_cast<size_t>(next)]);
    return met;
  }

  /// Which barrier threads come to first from an instruction on, itself included.
  void find_first_barriers() {
    first_.assign(part_.size() + 1, kNone);
    for (size_t i = 0; i < part_.size(); ++i)
      if (is_barrier_[i]) first_[i] = static_cast<int32_t>(i);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = part_.size(); i-- > 0;) {
        if (!part_[i] || is_barrier_[i]) continue;
        const int32_t met = meeting_of(i);
        changed |= met != first_[i];
        first_[i] = met;
      }
    }
  }

  bool find_values() {
    bool any = false;
    for (bool changed = true; changed; any |= changed) {
      changed = false;
      for (size_t i = 0; i < part_.size(); ++i) {
        if (!part_[i]) continue;
        const vm::TextSignature& s = view_.signatures[i];
        const bool same = keeps_uniform(view_.function.body[i], s) &&
                          std::all_of(s.reads.begin(), s.reads.end(),
                                      [&](int32_t reg) { return uniform_[static_cast<size_t>(reg)]; });
        if (!same) changed |= forget(s.writes);
      }
    }
    return any;
  }
  bool forget(const std::vector<int32_t>& registers) {
    bool changed = false;
    for (const int32_t reg : registers)
      changed |= uniform_[static_cast<size_t>(reg)], uniform_[static_cast<size_t>(reg)] = false;
    return changed;
  }

  bool parts_at(size_t i) const {
    const vm::TextSignature& s = view_.signatures[i];
    return part_[i] && vm::is_one_of(s.control, vm::Control::branch, vm::Control::branch_table) &&
           std::any_of(s.reads.begin(), s.reads.end(),
                       [&](int32_t reg) { return !uniform_[static_cast<size_t>(reg)]; });
  }

  /// What threads write between the branch where they part and the barrier where they meet.
  bool forget_apart(size_t branch) {
    bool changed = false;
    std::vector<bool> seen(part_.size() + 1, false);
    std::vector<int32_t> left = successors(view_, static_cast<int32_t>(branch));
    while (!left.empty()) {
      const auto i = static_cast<size_t>(left.back());
      left.pop_back();
      if (seen[i] || !part_[i] || is_barrier_[i]) continue;
      seen[i] = true;
      changed |= forget(view_.signatures[i].writes);
      for (const int32_t next : successors(view_, static_cast<int32_t>(i))) left.push_back(next);
    }
    return changed;
  }

  const FunctionView& view_;
  const std::vector<bool>&part_, &is_barrier_;
  std::vector<bool> uniform_;
  std::vector<int32_t> first_;
};

}  // namespace

bool threads_meet(const FunctionView& view, const std::vector<bool>& part,
                  const std::vector<bool>& is_barrier) {
  return Threads(view, part, is_barrier).meet();
}

}  // namespace assay::watch
