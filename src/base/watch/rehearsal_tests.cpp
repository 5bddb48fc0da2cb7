#include "src/base/watch/rehearsal_tests.h"

#include <algorithm>

namespace assay::watch {
namespace {

using Kind = WatchedInstruction::Kind;
using ptx::Type;

/// What is known of a register's value, as of the type that it has there: what is not finite is told by a
/// later value or test; or NaN alone is.
struct Told {
  Type type = Type::none;                                                          ///< none: nothing
  enum class By : uint8_t { nothing, nan_alone, all, anything } by = By::nothing;  ///< anything: not seen yet
  bool operator==(const Told&) const = default;
};
using State = std::vector<Told>;

Type alike(Type type) {
  return type == Type::tf32 ? Type::f32 : type;
}

Told meet(const Told& a, const Told& b) {
  if (a.by == Told::By::anything) return b;
  if (b.by == Told::By::anything || a == b) return a;
  if (a.type != b.type || a.by == Told::By::nothing || b.by == Told::By::nothing) return {};
  return {a.type, Told::By::nan_alone};
}

bool is_register(const FloatOperand& operand) {
  return operand.operand->kind == ptx::Operand::Kind::reg;
}

/// Of A in registers.
Type fragment_type(vm::Element element) {
  return element == vm::Element::f16 ? Type::f16x2 : element == vm::Element::bf16 ? Type::bf16x2 : Type::b32;
}
class Tests {
 public:
  Tests(const FunctionView& view, const Rehearsal& part, const std::vector<WatchedInstruction>& watched,
        const std::vector<bool>& starts)
      : view_(view), part_(part), watched_(watched), count_(view.function.body.size()) {
    for (size_t i = 0; i < count_; ++i) {
      if (!part.holds[i]) continue;
      const bool begins =
          i == 0 || starts[i] || !part.holds[i - 1] || view.signatures[i - 1].control == vm::Control::branch;
      if (begins) blocks_.push_back({i, i});
      blocks_.back().second = i + 1;
    }
    block_of_.assign(count_ + 1, -1);
    for (size_t b = 0; b < blocks_.size(); ++b) block_of_[blocks_[b].first] = static_cast<int>(b);
    find_makers();
    find_true();
  }

  bool find(std::vector<RehearsalTest>& tests) {
    const size_t registers = view_.function.registers.size();
    entries_.assign(blocks_.size(), State(registers, {Type::none, Told::By::anything}));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        State state = behind(b);
        go_back(b, state, nullptr);
        if (state == entries_[b]) continue;
        entries_[b] = std::move(state), changed = true;
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      State state = behind(b);
      std::vector<RehearsalTest> of_block;
      go_back(b, state, &of_block);
      std::stable_sort(of_block.begin(), of_block.end(),
                       [](const RehearsalTest& x, const RehearsalTest& y) { return x.behind < y.behind; });
      tests.insert(tests.end(), of_block.begin(), of_block.end());
    }
    return all_waited_ && !masks_sums();
  }

 private:
  /// Sums of products that begin with infinities, as masks: they are not finite without a birth.
  bool masks_sums() const {
    std::vector<bool> masks(view_.function.registers.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < count_; ++i) {
        if (!part_.holds[i] || !hands_on_mask(i, masks)) continue;
        for (const int32_t reg : view_.signatures[i].writes)
          changed |= !masks[static_cast<size_t>(reg)], masks[static_cast<size_t>(reg)] = true;
      }
    }
    for (size_t i = 0; i < count_; ++i) {
      const WatchedInstruction& what = watched_[i];
      if (!part_.holds[i] || (what.kind != Kind::product && what.kind != Kind::sums)) continue;
      for (const auto* operands : {&what.results, &what.sources})
        for (const FloatOperand& operand : *operands)
          if (is_register(operand) && masks[static_cast<size_t>(operand.operand->reg)]) return true;
    }
    return false;
  }
  bool hands_on_mask(size_t i, const std::vector<bool>& masks) const {
    const ptx::Instruction& in = view_.function.body[i];
    const auto is_mask = [&](const ptx::Operand& operand) {
      if (operand.kind == ptx::Operand::Kind::immediate)
        return (static_cast<uint32_t>(operand.bits) & 0x7FFFFFFF) == 0x7F800000;
      return operand.kind == ptx::Operand::Kind::reg && masks[static_cast<size_t>(operand.reg)];
    };
    return vm::is_one_of(in.form.operation, ptx::Operation::mov, ptx::Operation::selp) &&
           std::any_of(in.operands.begin() + 1, in.operands.end(), is_mask);
  }

  /// Where a block ends: what all ways on have in common; of the end of the part nothing.
  State behind(size_t b) const {
    const size_t registers = view_.function.registers.size();
    State state(registers, {Type::none, Told::By::anything});
    for (const int32_t next : successors(view_, static_cast<int32_t>(blocks_[b].second) - 1)) {
      const int to = block_of_[static_cast<size_t>(next)];
      for (size_t r = 0; r < registers; ++r)
        state[r] = to < 0 ? Told{} : meet(state[r], entries_[static_cast<size_t>(to)][r]);
    }
    return state;
  }

  /// By instruction: which one before it in its block wrote its first source, and is a sum or product of
  /// floats; -1: none.
  void find_makers() {
    maker_.assign(count_, -1);
    for (const auto& [begin, end] : blocks_) {
      std::vector<std::pair<int32_t, int32_t>> last;  // register, instruction
      for (size_t i = begin; i < end; ++i) {
        if (const FloatOperand* first = first_source(i)) {
          const auto found = std::find_if(last.rbegin(), last.rend(), [&](const auto& written) {
            return written.first == first->operand->reg;
          });
          if (found != last.rend()) maker_[i] = found->second;
        }
        for (const int32_t reg : view_.signatures[i].writes) last.push_back({reg, static_cast<int32_t>(i)});
      }
    }
  }

  /// Predicates to which nothing but true is written, as compilers do where wgmma shall add.
  void find_true() {
    const std::vector<ptx::Instruction>& body = view_.function.body;
    true_.assign(view_.function.registers.size(), true);
    for (size_t i = 0; i < count_; ++i) {
      const ptx::Instruction& in = body[i];
      const bool is_true = in.form.operation == ptx::Operation::mov && in.operands.size() == 2 &&
                           in.operands[1].kind == ptx::Operand::Kind::immediate && in.operands[1].bits != 0;
      for (const int32_t reg : view_.signatures[i].writes)
        if (!is_true) true_[static_cast<size_t>(reg)] = false;
    }
  }
  /// wgmma: D = A B + D for certain.
  bool adds(const ptx::Instruction& in) const {
    const ptx::Operand& scale = in.operands[3];
    if (scale.kind == ptx::Operand::Kind::reg) return !scale.negated && true_[static_cast<size_t>(scale.reg)];
    return scale.kind == ptx::Operand::Kind::immediate && scale.bits != 0;
  }

  bool is_guarded(size_t i) const { return view_.function.body[i].predicate >= 0; }

  /// x of (x - m) * c, of floats lane by lane; null of anything else.
  const FloatOperand* first_source(size_t i) const {
    const WatchedInstruction& what = watched_[i];
    if (what.kind != Kind::scalar || is_guarded(i) || what.sources.size() < 2) return nullptr;
    if (what.results[0].type != Type::f32) return nullptr;
    const auto first = std::find_if(what.sources.begin(), what.sources.end(), is_register);
    const bool sums = first != what.sources.end() && first->reaches_result && first->type == Type::f32;
    return sums ? &*first : nullptr;
  }

  bool is_written_between(int32_t reg, size_t from, size_t to) const {
    for (size_t i = from; i <= to; ++i) {
      const std::vector<int32_t>& writes = view_.signatures[i].writes;
      if (std::find(writes.begin(), writes.end(), reg) != writes.end()) return true;
    }
    return false;
  }

  /// The register that a sum or product begins with; -1: none that may hold infinities of masks. `passed`:
  /// the instructions on the way.
  int32_t beginning(size_t i, std::vector<size_t>& passed) const {
    constexpr size_t kLongest = 4;
    int32_t first = -1;
    for (size_t at = i; passed.size() < kLongest;) {
      const FloatOperand* source = first_source(at);
      if (!source || is_written_between(source->operand->reg, at, i)) break;
      first = source->operand->reg;
      if (at != i) passed.push_back(at);
      const int32_t maker = maker_[at];
      if (maker < 0) break;
      at = static_cast<size_t>(maker);
      if (watched_[at].kind == Kind::product || watched_[at].kind == Kind::sums) return -1;
    }
    return first;
  }

  Told of(const State& state, const FloatOperand& operand) const {
    const Told& told = state[static_cast<size_t>(operand.operand->reg)];
    if (told.by == Told::By::anything) return {alike(operand.type), Told::By::all};
    return told.type == alike(operand.type) ? told : Told{};
  }
  void tell(State& state, const FloatOperand& operand, Told::By by) const {
    if (!is_register(operand)) return;
    Told& told = state[static_cast<size_t>(operand.operand->reg)];
    if (told.by == Told::By::anything || (told.by >= by && told.type == alike(operand.type))) return;
    told = {alike(operand.type), by};
  }

  void go_back(size_t b, State& state, std::vector<RehearsalTest>* tests) {
    told_by_beginning_.clear();
    for (size_t i = blocks_[b].second; i-- > blocks_[b].first;) step_back(b, i, state, tests);
  }

  void step_back(size_t b, size_t i, State& state, std::vector<RehearsalTest>* tests) {
    const WatchedInstruction& what = watched_[i];
    Told::By by = Told::By::nothing;
    if (what.kind == Kind::passes)
      by = is_register(what.results[0]) ? of(state, what.results[0]).by : Told::By::nothing;
    if (what.kind == Kind::passes && by == Told::By::nan_alone &&
        view_.function.body[i].form.operation != ptx::Operation::mov)
      by = Told::By::nothing;
    if (what.kind >= Kind::scalar && what.kind != Kind::state) by = test(b, i, state, tests);
    for (const int32_t reg : view_.signatures[i].writes) state[static_cast<size_t>(reg)] = {};
    if (is_guarded(i) || by == Told::By::nothing) return;
    for (FloatOperand source : what.sources) {
      if (what.kind == Kind::sums) source.type = fragment_type(what.a_element);
      if (source.reaches_result) tell(state, source, by);
      if (source.reaches_but_negative && source.type == Type::f32) tell(state, source, Told::By::nan_alone);
    }
    if (what.kind == Kind::sums && adds(view_.function.body[i]))
      for (const FloatOperand& sum : what.results) tell(state, sum, by);
  }

  /// Of an instruction in which something may be born; what its results then tell of its sources.
  Told::By test(size_t b, size_t i, const State& state, std::vector<RehearsalTest>* tests) {
    const WatchedInstruction& what = watched_[i];
    Told::By by = Told::By::all;
    for (const FloatOperand& result : what.results) {
      if (!is_register(result)) continue;
      const Told told = of(state, result);
      if (told.by == Told::By::all) continue;
      RehearsalTest made{static_cast<int32_t>(i), result.operand->reg, result.type, -1};
      if (told.by == Told::By::nan_alone && what.kind == Kind::scalar && !is_guarded(i)) {
        if (std::find(told_by_beginning_.begin(), told_by_beginning_.end(), i) != told_by_beginning_.end()) {
          by = Told::By::nan_alone;
          continue;
        }
        std::vector<size_t> passed;
        made.first = beginning(i, passed);
        if (made.first >= 0) {
          by = Told::By::nan_alone;
          told_by_beginning_.insert(told_by_beginning_.end(), passed.begin(), passed.end());
        }
      }
      if (what.kind == Kind::sums) made.behind = wait_behind(b, i);
      if (tests) tests->push_back(made);
    }
    return by;
  }

  /// The wait for all wgmma behind one, in its block.
  int32_t wait_behind(size_t b, size_t i) {
    for (size_t at = i; at < blocks_[b].second; ++at) {
      const ptx::Instruction& in = view_.function.body[at];
      if (in.form.operation == ptx::Operation::wgmma_wait_group && in.operands.size() == 1 &&
          in.operands[0].kind == ptx::Operand::Kind::immediate && in.operands[0].bits == 0)
        return static_cast<int32_t>(at);
    }
    all_waited_ = false;
    return static_cast<int32_t>(i);
  }

  const FunctionView& view_;
  const Rehearsal& part_;
  const std::vector<WatchedInstruction>& watched_;
  const size_t count_;
  std::vector<std::pair<size_t, size_t>> blocks_;  ///< [first, behind the last)
  std::vector<int> block_of_;                      ///< by the instruction that it begins with
  std::vector<State> entries_;
  std::vector<int32_t> maker_;
  std::vector<bool> true_;  ///< by register
  std::vector<size_t>
      told_by_beginning_;  ///< instructions whose infinities a later test of the block tells of
  bool all_waited_ = true;
};

}  // namespace

bool rehearsal_tests(const FunctionView& view, const Rehearsal& part,
                     const std::vector<WatchedInstruction>& watched, const std::vector<bool>& starts,
                     std::vector<RehearsalTest>& tests) {
  return Tests(view, part, watched, starts).find(tests);
}

}  // namespace assay::watch
