#include "src/campaign/mutate/overwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/vm/signature.h"

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

/// Looks for a reader of what one instruction writes to one register; notes what decides the branches that it
/// comes to.
class Readers {
 public:
  Readers(ValueRanges& ranges, int32_t writer, int32_t reg)
      : ranges_(ranges), writer_(writer), reg_(reg), reads_(ranges.function().body.size()), writes_(reads_) {
    for (const int32_t i : ranges.uses(reg)) reads_[static_cast<size_t>(i)] = true;
    for (const int32_t i : ranges.definitions(reg)) writes_[static_cast<size_t>(i)] = true;
  }

  bool found(const Ways& ways, std::set<std::string>* conditions) const {
    const ptx::Function& f = ranges_.function();
    std::vector<bool> seen(f.body.size() + 1);
    std::vector<int32_t> work;
    const auto add = [&](int32_t to) {
      if (seen[static_cast<size_t>(to)] || static_cast<size_t>(to) >= f.body.size()) return;
      seen[static_cast<size_t>(to)] = true;
      work.push_back(to);
    };
    bool read = false;
    ways.after(writer_, add);
    while (!work.empty()) {
      const int32_t here = work.back();
      work.pop_back();
      const Instruction& in = f.body[static_cast<size_t>(here)];
      const bool rests = ways.is_decided(in) && !ways.runs(in);
      if (reads_[static_cast<size_t>(here)] && !rests) {
        if (!conditions) return true;
        read = true;
        continue;
      }
      const bool surely = in.predicate < 0 || (ways.is_decided(in) && ways.runs(in));
      if (writes_[static_cast<size_t>(here)] && surely) continue;
      if (conditions && in.predicate >= 0 && in.form.operation == ptx::Operation::bra)
        conditions->insert(ways.conditions.by(in.predicate).what);
      ways.after(here, add);
    }
    return read;
  }

 private:
  ValueRanges& ranges_;
  int32_t writer_, reg_;
  std::vector<bool> reads_, writes_;
};

}  // namespace

bool is_overwritten(ValueRanges& ranges, int32_t instruction) {
  const Instruction& in = ranges.function().body[static_cast<size_t>(instruction)];
  const std::vector<int32_t> written = written_registers(in);
  if (written.empty() || in.predicate >= 0) return false;
  Conditions conditions(ranges);
  return std::all_of(written.begin(), written.end(), [&](int32_t reg) {
    const Readers readers(ranges, instruction, reg);
    std::set<std::string> decided;
    if (!readers.found({ranges, conditions}, &decided)) return true;
    decided.erase("");
    return std::any_of(decided.begin(), decided.end(), [&](const std::string& condition) {
      const auto unread = [&](bool holds) {
        const Ways ways{ranges, conditions, condition, holds};
        return !readers.found(ways, nullptr) || !ways.is_reached(instruction);
      };
      return unread(true) && unread(false);
    });
  });
}

}  // namespace assay
