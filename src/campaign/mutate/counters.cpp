#include "src/campaign/mutate/counters.h"

#include <algorithm>
#include <set>
#include <vector>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/ways.h"

namespace assay {
namespace {

using ptx::Comparison;
using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;

/// `definition` gives the register what `addition`, which may be itself, makes of it by adding `by`.
struct Step {
  int32_t definition, addition;
  int64_t by;
};

/// A way out of a branch on which the register is at most `most`.
struct Gate {
  int32_t branch;
  bool taken;
  int64_t most;
};

class Counter {
 public:
  Counter(ValueRanges& ranges, int32_t reg) : ranges_(ranges), f_(ranges.function()), reg_(reg) {}

  std::optional<ValueRange> range() {
    const int bits = 8 * ptx::bytes_of(f_.registers[static_cast<size_t>(reg_)].type);
    if (bits != 32 && bits != 64) return std::nullopt;
    std::optional<ValueRange> start;
    for (const int32_t at : ranges_.definitions(reg_)) {
      if (const auto step = step_of(at)) {
        steps_.push_back(*step);
        continue;
      }
      const Instruction& in = this->at(at);
      if (in.operands[0].kind != Operand::Kind::reg) return std::nullopt;
      const ValueRange r = ranges_.result(in);
      start = start ? ValueRange{std::min(start->low, r.low), std::max(start->high, r.high)} : r;
    }
    if (!start || steps_.empty()) return std::nullopt;
    int64_t by = 0;
    for (const Step& step : steps_) by = std::max(by, step.by);
    const int64_t top = bits == 32 ? INT32_MAX : INT64_MAX;
    find_gates(top - by);
    if (start->high > top - by || !every_step_is_gated()) return std::nullopt;
    int64_t most = start->high;
    for (const Gate& gate : gates_) most = std::max(most, gate.most);
    return ValueRange{start->low, most + by};
  }

 private:
  const Instruction& at(int32_t i) const { return f_.body[static_cast<size_t>(i)]; }

  static bool is_signed_add(const Instruction& in) {
    return in.form.operation == Operation::add && ptx::is_signed(in.form.type()) && in.operands.size() == 3 &&
           in.operands[2].kind == Operand::Kind::immediate && !in.form.saturates && !in.form.carry_in &&
           static_cast<int64_t>(in.operands[2].bits) > 0;
  }

  /// add r, r, n, or add t, r, n and in the same piece of code mov r, t.
  std::optional<Step> step_of(int32_t definition) const {
    const Instruction& in = at(definition);
    int32_t addition = definition;
    if (in.form.operation == Operation::mov && in.operands.size() == 2 &&
        in.operands[1].kind == Operand::Kind::reg) {
      const std::vector<int32_t>& made = ranges_.definitions(in.operands[1].reg);
      if (made.size() != 1 || !ranges_.is_straight(made[0], definition) ||
          defined_between(made[0], definition))
        return std::nullopt;
      addition = made[0];
    }
    const Instruction& add = at(addition);
    if (!is_signed_add(add) || add.operands[1].kind != Operand::Kind::reg || add.operands[1].reg != reg_)
      return std::nullopt;
    return Step{definition, addition, static_cast<int64_t>(add.operands[2].bits)};
  }

  bool defined_between(int32_t after, int32_t before) const {
    const std::vector<int32_t>& made = ranges_.definitions(reg_);
    return std::any_of(made.begin(), made.end(), [&](int32_t i) { return i > after && i < before; });
  }

  /// The bound of v in "v < bound" where the comparison, or its opposite, says that; `holds`: which.
  static const Operand* bound_of(const Instruction& test, int32_t v, bool* holds, bool* reached) {
    using enum Comparison;
    const Operand &a = test.operands[1], &b = test.operands[2];
    const bool first = a.kind == Operand::Kind::reg && a.reg == v,
               second = b.kind == Operand::Kind::reg && b.reg == v;
    if (first == second) return nullptr;
    switch (test.form.comparison) {
      case lt:
      case gt:
        *holds = first == (test.form.comparison == lt), *reached = !*holds;
        return first ? &b : &a;
      case le:
      case ge:
        *holds = first == (test.form.comparison == le), *reached = *holds;
        return first ? &b : &a;
      default:
        return nullptr;
    }
  }

  int64_t high_of(const Operand& bound) {
    if (bound.kind == Operand::Kind::immediate) return static_cast<int64_t>(bound.bits);
    return bound.kind == Operand::Kind::reg ? ranges_.of(bound.reg).high : INT64_MAX;
  }

  /// What is added to the value that `test` reads until the register has its value at `branch`.
  std::optional<int64_t> added_until(int32_t test, int32_t v, int32_t branch) const {
    if (v == reg_ && !defined_between(test, branch)) return 0;
    for (const Step& step : steps_) {
      if (defined_between(step.definition, branch) || step.definition >= branch) continue;
      const int32_t sum = at(step.addition).operands[0].reg;
      // The sum itself is tested, and copied to the register on the way to the branch.
      if (v != reg_ && v == sum && step.addition < test && ranges_.is_straight(step.addition, branch))
        return 0;
      // The register is tested, and its sum, made before the test or after it, takes its place on the way.
      if (v == reg_ && step.definition > test &&
          !defined_between(std::min(step.addition, test), step.definition))
        return step.by;
    }
    return std::nullopt;
  }

  void find_gates(int64_t highest) {
    std::set<int32_t> values{reg_};
    for (const Step& step : steps_) values.insert(at(step.addition).operands[0].reg);
    for (const int32_t v : values)
      for (const int32_t test_at : ranges_.uses(v)) {
        const Instruction& test = at(test_at);
        const ptx::Type type = test.form.type();
        bool holds = false, reached = false;
        if (test.form.operation != Operation::setp || test.operands.size() != 3 || test.predicate >= 0 ||
            !ptx::is_signed(type) || test.operands[0].kind != Operand::Kind::reg)
          continue;
        const Operand* bound = bound_of(test, v, &holds, &reached);
        const int32_t p = test.operands[0].reg;
        if (!bound || ranges_.definitions(p).size() != 1) continue;
        for (const int32_t branch : ranges_.uses(p)) {
          const Instruction& in = at(branch);
          if (in.form.operation != Operation::bra || in.predicate != p ||
              !ranges_.is_straight(test_at, branch))
            continue;
          const auto added = added_until(test_at, v, branch);
          const int64_t high = high_of(*bound);
          if (!added || high > highest - *added) continue;
          gates_.push_back({branch, holds != in.predicate_negated, high - (reached ? 0 : 1) + *added});
        }
      }
  }

  bool is_gate(int32_t branch, int32_t to) const {
    return std::any_of(gates_.begin(), gates_.end(), [&](const Gate& gate) {
      if (gate.branch != branch) return false;
      const int32_t target = at(branch).operands[0].target;
      return target != branch + 1 && gate.taken == (to == target);
    });
  }

  bool every_step_is_gated() const {
    return std::all_of(steps_.begin(), steps_.end(), [&](const Step& from) {
      std::vector<bool> seen(f_.body.size() + 1);
      std::vector<int32_t> work{from.definition};
      while (!work.empty()) {
        const int32_t here = work.back();
        work.pop_back();
        if (static_cast<size_t>(here) >= f_.body.size()) continue;
        for (const int32_t to : ranges_.successors()[static_cast<size_t>(here)]) {
          if (is_gate(here, to)) continue;
          const bool steps = std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) {
            return s.addition == to || s.definition == to;
          });
          if (steps) return false;
          if (seen[static_cast<size_t>(to)]) continue;
          seen[static_cast<size_t>(to)] = true;
          work.push_back(to);
        }
      }
      return true;
    });
  }

  ValueRanges& ranges_;
  const ptx::Function& f_;
  int32_t reg_;
  std::vector<Step> steps_;
  std::vector<Gate> gates_;
};

}  // namespace

std::optional<ValueRange> counted_range(ValueRanges& ranges, int32_t reg) {
  return Counter(ranges, reg).range();
}

}  // namespace assay
