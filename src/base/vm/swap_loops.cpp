#include "src/base/vm/swap_loops.h"

#include <set>
#include <unordered_map>

#include "src/base/vm/signature.h"

namespace assay::vm {
namespace {

/// Conversions and packing between an addition and the words around it.
constexpr int kMostSteps = 8;

class Definitions {
 public:
  explicit Definitions(const Code& code) : code_(code) {
    for (size_t i = 0; i < code.ops.size(); ++i)
      for (const Use& use : code.signature(code.ops[i]).writes) by_slot_[use.slot].push_back(i);
  }

  /// Whether `put` holds a floating-point sum of `expected` and something, made without passing memory.
  bool is_sum(Slot put, Slot expected) const {
    bool found = false;
    walk({put}, [&](Slot, const Signature* maker) {
      if (!maker || !adds(maker->form)) return;
      std::set<Slot> terms;
      for (const Use& use : maker->reads) terms.insert(use.slot);
      walk(terms, [&](Slot slot, const Signature*) { found |= slot == expected; });
    });
    return found;
  }

 private:
  static bool adds(const ptx::Form& form) {
    using ptx::Operation;
    return ptx::is_float(form.type()) &&
           (form.operation == Operation::add || form.operation == Operation::sub ||
            form.operation == Operation::fma);
  }

  /// Each register that `from` are made of, itself included, with each op that makes it.
  template <class F>
  void walk(std::set<Slot> from, const F& visit) const {
    std::set<Slot> seen = from;
    for (int step = 0; step < kMostSteps && !from.empty(); ++step) {
      std::set<Slot> next;
      for (const Slot slot : from) {
        visit(slot, nullptr);
        const auto makers = by_slot_.find(slot);
        if (makers == by_slot_.end()) continue;
        for (const size_t i : makers->second) {
          const Signature& signature = code_.signature(code_.ops[i]);
          visit(slot, &signature);
          if (!signature.accesses.empty()) continue;
          for (const Use& use : signature.reads)
            if (seen.insert(use.slot).second) next.insert(use.slot);
        }
      }
      from = std::move(next);
    }
  }

  const Code& code_;
  std::unordered_map<Slot, std::vector<size_t>> by_slot_;
};

}  // namespace

SwapLoops swap_loops_of(const Code& code) {
  SwapLoops loops;
  loops.confirmed.resize(code.ops.size());
  loops.sums.resize(code.ops.size());
  std::vector<size_t> swaps;
  for (size_t i = 0; i < code.ops.size(); ++i)
    if (code.signature(code.ops[i]).form.combine == ptx::Combine::cas) swaps.push_back(i);
  if (swaps.empty()) return loops;
  const Definitions definitions(code);
  for (const size_t at : swaps) {
    const Op& swap = code.ops[at];
    const Slot expected = swap.s[1], put = swap.s[2];
    loops.sums[at] = definitions.is_sum(put, expected);
    for (size_t i = 0; i < code.ops.size(); ++i) {
      const Op& op = code.ops[i];
      const Signature& signature = code.signature(op);
      if (signature.flow() != Flow::load || signature.writes.size() != 1) continue;
      const bool same_place = op.s[0] == swap.s[0] && op.offset == swap.offset;
      if (!same_place && signature.writes[0].slot != expected) continue;
      loops.confirmed[i] = true;
      loops.sums[i] = loops.sums[i] || loops.sums[at];
    }
  }
  return loops;
}

}  // namespace assay::vm
