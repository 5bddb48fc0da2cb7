#include "src/campaign/mutate/overwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/campaign/mutate/needed.h"

namespace assay {
namespace {

using ptx::Instruction;

/// What a predicate says: the comparison of two values that stay the same while the function runs, or else
/// the predicate alone, where it is made once. Comparisons of the same values say the same, or the opposite.
class Conditions {
 public:
  explicit Conditions(ValueRanges& ranges) : ranges_(ranges) {}

  struct Said {
    std::string what;  ///< empty: nothing that stays
    bool opposite = false;
  };

  Said by(int32_t predicate) {
    const auto [found, is_new] = said_.try_emplace(predicate);
    if (is_new) found->second = said_by(predicate);
    return found->second;
  }

 private:
  Said said_by(int32_t predicate) {
    using enum ptx::Comparison;
    const std::vector<int32_t>& made = ranges_.definitions(predicate);
    if (made.size() != 1) return {};
    const Instruction& in = ranges_.function().body[static_cast<size_t>(made[0])];
    const bool compares = in.form.operation == ptx::Operation::setp && in.operands.size() == 3 &&
                          in.predicate < 0 && in.operands[0].kind == ptx::Operand::Kind::reg;
    const ptx::Comparison asked = in.form.comparison;
    const bool opposite = asked == ne || asked == ge || asked == gt;
    const bool known = opposite || asked == eq || asked == lt || asked == le;
    if (compares && known && !ptx::is_float(in.form.type())) {
      const std::string a = value_of(in.operands[1]), b = value_of(in.operands[2]);
      const char* const sign = asked == eq || asked == ne ? "=" : asked == lt || asked == ge ? "<" : "<=";
      if (!a.empty() && !b.empty())
        return {fmt::format("{} {} {} {}", a, sign, b, ptx::name_of(in.form.type())), opposite};
    }
    return is_made_once(made[0]) ? Said{fmt::format("p{}", predicate)} : Said{};
  }

  /// Empty: it may change.
  std::string value_of(const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::immediate) return fmt::format("{}", operand.bits);
    if (operand.kind != ptx::Operand::Kind::reg || operand.negated) return {};
    const std::vector<int32_t>& made = ranges_.definitions(operand.reg);
    if (made.size() != 1) return {};
    const Instruction& in = ranges_.function().body[static_cast<size_t>(made[0])];
    if (in.form.operation == ptx::Operation::ld && in.form.space == ptx::Space::param && in.predicate < 0 &&
        in.operands[1].parameter >= 0 && ranges_.function().entry)
      return fmt::format("parameter {}+{} {}", in.operands[1].parameter, in.operands[1].offset,
                         ptx::name_of(in.form.type()));
    return is_made_once(made[0]) ? fmt::format("r{}", operand.reg) : std::string();
  }

  /// Unguarded, and no way leads back to it.
  bool is_made_once(int32_t instruction) {
    const ptx::Function& f = ranges_.function();
    if (f.body[static_cast<size_t>(instruction)].predicate >= 0) return false;
    std::vector<bool> seen(f.body.size() + 1);
    std::vector<int32_t> work{instruction};
    while (!work.empty()) {
      const int32_t here = work.back();
      work.pop_back();
      if (static_cast<size_t>(here) >= f.body.size()) continue;
      for (const int32_t to : ranges_.successors()[static_cast<size_t>(here)]) {
        if (to == instruction) return false;
        if (seen[static_cast<size_t>(to)]) continue;
        seen[static_cast<size_t>(to)] = true;
        work.push_back(to);
      }
    }
    return true;
  }

  ValueRanges& ranges_;
  std::map<int32_t, Said> said_;
};

/// Ways through a function on which a condition, if there is one, holds or does not.
struct Ways {
  ValueRanges& ranges;
  Conditions& conditions;
  std::string condition = {};
  bool holds = false;

  const Instruction& at(int32_t i) const { return ranges.function().body[static_cast<size_t>(i)]; }
  bool is_decided(const Instruction& in) const {
    return !condition.empty() && in.predicate >= 0 && conditions.by(in.predicate).what == condition;
  }
  bool runs(const Instruction& in) const {
    return (holds != conditions.by(in.predicate).opposite) != in.predicate_negated;
  }

  template <class Visit>
  void after(int32_t i, const Visit& visit) const {
    const Instruction& in = at(i);
    const bool branches = in.form.operation == ptx::Operation::bra && is_decided(in);
    const int32_t target = branches ? in.operands[0].target : -1;
    for (const int32_t to : ranges.successors()[static_cast<size_t>(i)])
      if (!branches || target < 0 || target == i + 1 || runs(in) == (to == target)) visit(to);
  }

  bool is_reached(int32_t instruction) const {
    std::vector<bool> seen(ranges.function().body.size() + 1);
    std::vector<int32_t> work{0};
    seen[0] = true;
    while (!work.empty() && !seen[static_cast<size_t>(instruction)]) {
      const int32_t here = work.back();
      work.pop_back();
      if (static_cast<size_t>(here) >= ranges.function().body.size()) continue;
      after(here, [&](int32_t to) {
        if (seen[static_cast<size_t>(to)]) return;
        seen[static_cast<size_t>(to)] = true;
        work.push_back(to);
      });
    }
    return seen[static_cast<size_t>(instruction)];
  }
};

/// Follows what one instruction writes, and what is made of it in registers, to what acts on it; notes what
/// decides the branches on the way.
class Taker {
 public:
  Taker(const Ways& ways, std::set<std::string>* conditions) : ways_(ways), conditions_(conditions) {}

  bool found(int32_t writer, int32_t reg) {
    follow(writer, reg);
    bool takes = false;
    while (!work_.empty() && !(takes && !conditions_)) {
      const auto [here, of] = work_.back();
      work_.pop_back();
      takes |= is_taken_at(here, of);
      if (known_.size() > kMostRegisters) return true;
    }
    return takes;
  }

 private:
  /// So many registers that depend on it are followed.
  static constexpr size_t kMostRegisters = 16;

  struct Register {
    std::vector<bool> read, written, seen;  ///< by instruction
  };
  Register& known(int32_t reg) {
    const auto [at, is_new] = known_.try_emplace(reg);
    if (!is_new) return at->second;
    const size_t count = ways_.ranges.function().body.size();
    Register& r = at->second;
    r.read.resize(count), r.written.resize(count), r.seen.resize(count + 1);
    for (const int32_t i : ways_.ranges.uses(reg)) r.read[static_cast<size_t>(i)] = true;
    for (const int32_t i : ways_.ranges.definitions(reg)) r.written[static_cast<size_t>(i)] = true;
    return r;
  }

  /// What can run right after an instruction finds the register as that left it.
  void follow(int32_t after, int32_t reg) {
    Register& r = known(reg);
    ways_.after(after, [&](int32_t to) {
      if (r.seen[static_cast<size_t>(to)] || static_cast<size_t>(to) >= r.read.size()) return;
      r.seen[static_cast<size_t>(to)] = true;
      work_.emplace_back(to, reg);
    });
  }

  bool is_taken_at(int32_t here, int32_t reg) {
    const Instruction& in = ways_.at(here);
    const bool decided = ways_.is_decided(in), rests = decided && !ways_.runs(in);
    const Register& r = known(reg);
    const bool overwritten = r.written[static_cast<size_t>(here)] && !rests && (in.predicate < 0 || decided);
    if (r.read[static_cast<size_t>(here)] && !rests) {
      const bool loads = in.form.operation == ptx::Operation::ld;
      // What other lanes get is theirs: they may go another way.
      if (loads || acts(in) || in.form.sync || in.predicate == reg) return true;
      for (const int32_t made : written_registers(in)) follow(here, made);
    }
    if (overwritten) return false;
    if (conditions_ && in.predicate >= 0 && in.form.operation == ptx::Operation::bra)
      conditions_->insert(ways_.conditions.by(in.predicate).what);
    follow(here, reg);
    return false;
  }

  const Ways& ways_;
  std::set<std::string>* conditions_;
  std::map<int32_t, Register> known_;
  std::vector<std::pair<int32_t, int32_t>> work_;  ///< instruction, and what register it finds
};

}  // namespace

bool is_overwritten(ValueRanges& ranges, int32_t instruction) {
  const Instruction& in = ranges.function().body[static_cast<size_t>(instruction)];
  const std::vector<int32_t> written = written_registers(in);
  if (written.empty() || in.predicate >= 0) return false;
  Conditions conditions(ranges);
  return std::all_of(written.begin(), written.end(), [&](int32_t reg) {
    std::set<std::string> decided;
    const Ways all{ranges, conditions};
    if (!Taker(all, &decided).found(instruction, reg)) return true;
    decided.erase("");
    return std::any_of(decided.begin(), decided.end(), [&](const std::string& condition) {
      const auto unread = [&](bool holds) {
        const Ways ways{ranges, conditions, condition, holds};
        return !Taker(ways, nullptr).found(instruction, reg) || !ways.is_reached(instruction);
      };
      return unread(true) && unread(false);
    });
  });
}

}  // namespace assay
