#include "src/campaign/mutate/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/dropped_bits.h"
#include "src/campaign/mutate/reaching.h"
#include "src/campaign/mutate/value_range.h"
#include "src/campaign/mutate/ways.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;
using ptx::Rounding;

struct Question {
  const ptx::Function& original;
  const ptx::Mutation& mutation;
  const Instruction& before;
  const Instruction* after;     ///< null where the instruction is gone or became several
  ValueRanges& ranges;          ///< of the original
  ValueRanges* changed_ranges;  ///< of the changed function; null where `after` is
  bool is(std::string_view change) const { return mutation.change->name == change; }
};

/// What it computes on is integers or bits.
bool is_integer(const Instruction& in) {
  return in.form.type() != ptx::Type::none && !ptx::is_float(in.form.type());
}

/// Does more than write registers: stores, synchronises, decides where the run goes.
bool acts(const vm::TextSignature& s) {
  const bool stores = std::any_of(s.accesses.begin(), s.accesses.end(), [](const vm::Access& access) {
    return access.direction != vm::Access::Direction::read;
  });
  const bool waits = s.meaning && s.meaning->asynchronous.step != vm::Step::none;
  return s.writes.empty() || stores || waits || s.form.sync || s.control != vm::Control::none;
}

/// Instructions whose results reach memory, a barrier, a branch or an address, by marking backwards.
std::vector<bool> needed(const ptx::Function& f, const ValueRanges& ranges) {
  std::vector<bool> marked(f.body.size());
  std::vector<int32_t> work;
  for (size_t i = 0; i < f.body.size(); ++i)
    if (acts(vm::signature_of(f.body[i]))) work.push_back(static_cast<int32_t>(i));
  while (!work.empty()) {
    const auto at = static_cast<size_t>(work.back());
    work.pop_back();
    if (marked[at]) continue;
    marked[at] = true;
    for (const int32_t reg : read_registers(f.body[at]))
      for (const int32_t made : ranges.definitions(reg)) work.push_back(made);
  }
  return marked;
}

std::string unused_result(const Question& q) {
  const bool may_trap =
      q.before.form.operation == Operation::ld || q.before.form.operation == Operation::call;
  if (written_registers(q.before).empty() || may_trap || q.is("drop-guard")) return {};
  if (q.after && written_registers(*q.after) != written_registers(q.before)) return {};
  if (needed(q.original, q.ranges)[static_cast<size_t>(q.mutation.instruction)]) return {};
  return "nothing that is stored or branched on depends on its result";
}

/// Both give one and the same value, whatever the inputs are.
std::string constant_result(const Question& q) {
  if (!q.after || written_registers(q.before).size() != 1 || q.before.predicate >= 0) return {};
  if (written_registers(*q.after) != written_registers(q.before) ||
      q.after->operands[0].kind != Operand::Kind::reg)
    return {};
  const ValueRange was = q.ranges.result(q.before), is = q.ranges.result(*q.after);
  if (!was.single() || was != is) return {};
  return fmt::format("its result is {} for all values that its operands can have", was.low);
}

/// Predicates that hold always or never.
std::string constant_guard(const Question& q) {
  if (q.before.predicate < 0 || !(q.is("drop-guard") || q.is("drop-branch"))) return {};
  const ValueRange p = q.ranges.of(q.before.predicate);
  if (!p.single()) return {};
  const bool runs = (p.low != 0) != q.before.predicate_negated;
  if (runs != q.is("drop-guard")) return {};
  return fmt::format("its predicate {} holds for all values that its operands can have",
                     runs ? "always" : "never");
}

std::optional<int64_t> literal(const Instruction& in, size_t operand) {
  if (operand >= in.operands.size() || in.operands[operand].kind != Operand::Kind::immediate)
    return std::nullopt;
  return static_cast<int64_t>(in.operands[operand].bits);
}

/// Counts beyond the width shift as the width does (PTX ISA 9.7.8.7, 9.7.8.8).
std::string saturated_shift(const Question& q) {
  if (!q.after || !q.is("shift-constant") || vm::signature_of(q.before).flow() != vm::Flow::shift) return {};
  const auto was = literal(q.before, 2), is = literal(*q.after, 2);
  const ptx::Type type = q.before.form.type();
  if (!was || !is || type == ptx::Type::none) return {};
  const int64_t most = 8 * ptx::bytes_of(type) - (ptx::is_signed(type) ? 1 : 0);
  if (*was < most || *is < most) return {};
  return fmt::format("a shift by {} or by {} moves every bit out", *was, *is);
}

/// x + 0 and x - 0.
std::string added_zero(const Question& q) {
  if (!q.is("add-to-sub") || !is_integer(q.before)) return {};
  const Operand& second = q.before.operands.at(2);
  if (second.kind != Operand::Kind::reg || q.ranges.of(second.reg) != ValueRange{0, 0}) return {};
  return fmt::format("{} is 0 for all values that it can have",
                     q.original.registers[static_cast<size_t>(second.reg)].name);
}

bool same_operand(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.reg == b.reg && a.bits == b.bits && a.name == b.name && a.negated == b.negated;
}

/// Where both sides of a comparison are equal, a choice between the two is one thing.
std::string choice_of_equals(const Question& q) {
  if (!q.is("compare-edge") || q.before.operands.size() != 3 ||
      q.before.operands[0].kind != Operand::Kind::reg)
    return {};
  if (!is_integer(q.before)) return {};
  const Operand &a = q.before.operands[1], &b = q.before.operands[2];
  const std::vector<int32_t>& uses = q.ranges.uses(q.before.operands[0].reg);
  const bool only_choices = !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](int32_t at) {
    const Instruction& use = q.original.body[static_cast<size_t>(at)];
    if (use.form.operation != Operation::selp || use.predicate >= 0) return false;
    const Operand &x = use.operands[1], &y = use.operands[2];
    return (same_operand(x, a) && same_operand(y, b)) || (same_operand(x, b) && same_operand(y, a));
  });
  return only_choices ? "where the two are equal, either is chosen with the same result" : "";
}

/// Literals that a register of 32 bits can hold at an instruction, where all writes that reach it are copies
/// of literals; false where something else is among them.
bool collect_literals(const Question& q, const Operand& operand, int32_t at, std::set<int32_t>& seen,
                      std::set<uint64_t>& literals) {
  if (operand.kind == Operand::Kind::immediate) return literals.insert(operand.bits), true;
  if (operand.kind != Operand::Kind::reg || operand.negated) return false;
  const auto made = reaching_writes(q.original, at, operand.reg);
  return made && std::all_of(made->begin(), made->end(), [&](int32_t write) {
           if (!seen.insert(write).second) return true;  // a copy of itself around a loop adds nothing
           const Instruction& maker = q.original.body[static_cast<size_t>(write)];
           const bool copy = maker.form.operation == Operation::mov &&
                             ptx::bytes_of(maker.form.type()) == 4 &&
                             maker.operands[0].kind == Operand::Kind::reg;
           return copy && collect_literals(q, maker.operands[1], write, seen, literals);
         });
}

/// The bits that an operand of the changed instruction always has.
std::optional<uint64_t> always(const Question& q, const Operand& operand) {
  std::set<int32_t> seen;
  std::set<uint64_t> literals;
  if (!collect_literals(q, operand, q.mutation.instruction, seen, literals) || literals.size() != 1)
    return std::nullopt;
  return *literals.begin();
}

/// A copy of a literal that the mutant writes itself.
std::string copied_literal(const Question& q) {
  if (!q.after || q.before.form.operation != Operation::mov || q.after->form.operation != Operation::mov ||
      q.before.predicate >= 0)
    return {};
  if (q.before.opcode != q.after->opcode || q.before.operands.size() != 2) return {};
  const auto was = always(q, q.before.operands[1]), is = always(q, q.after->operands[1]);
  if (!was || !is || *was != *is) return {};
  return "what it copies is always that literal";
}

/// x + 0 is x: exact, however it is rounded (-0 + 0 is +0 but where it is rounded down).
std::string exact_addition(const Question& q) {
  if (!q.is("change-rounding") || !q.after) return {};
  const ptx::Form& was = q.before.form;
  const bool adds =
      was.operation == Operation::add && was.rounding == Rounding::rn && was.type() == ptx::Type::f32;
  if (!adds || was.ftz || was.saturates || q.after->form.rounding == Rounding::rm) return {};
  for (const size_t i : {1u, 2u})
    if (const auto bits = always(q, q.before.operands.at(i)); bits && *bits == 0)
      return "one of its terms is always 0: nothing is rounded";
  return {};
}

/// A literal of which only bits change that are masked or shifted away.
std::string dropped_bits(const Question& q) {
  if (!q.after || !changes_dropped_bits_only(q.ranges, q.mutation.instruction, *q.after)) return {};
  return "the bits that the literal changes are dropped before anything is stored, addressed or branched on";
}

/// Integers of at most 24 bits are fp32 numbers.
std::string exact_conversion(const Question& q) {
  const ptx::Form& form = q.before.form;
  if (!q.is("change-rounding") || form.operation != Operation::cvt || form.rounding != Rounding::rn ||
      form.types[0] != ptx::Type::f32 || !is_integer(q.before))
    return {};
  const Operand& source = q.before.operands.at(1);
  const bool narrow = ptx::bytes_of(form.type()) <= 2;
  if (!narrow && source.kind != Operand::Kind::reg) return {};
  if (!narrow) {
    const ValueRange r = q.ranges.of(source.reg);
    if (r.low < -(1 << 24) || r.high > 1 << 24) return {};
  }
  return "the integers that it converts are exact in fp32: nothing is rounded";
}

/// What nvcc makes of a 64-bit division: both operands' bits under `mask`, and where none is set the branch
/// to a division of 32 bits.
struct LongDivision {
  int32_t mask_at = -1, test_at = -1, branch_at = -1;
  uint64_t mask = 0;
};

/// The single use of a single result; -1: another number of either.
int32_t only_use(const Question& q, int32_t instruction) {
  const std::vector<int32_t> made = written_registers(q.original.body[static_cast<size_t>(instruction)]);
  if (made.size() != 1 || q.ranges.definitions(made[0]).size() != 1) return -1;
  const std::vector<int32_t>& uses = q.ranges.uses(made[0]);
  return uses.size() == 1 ? uses[0] : -1;
}

bool is_wide(const Instruction& in, Operation operation) {
  return in.form.operation == operation && in.form.type() == ptx::Type::b64;
}

/// The one that the instruction, its mask, its test or its branch, belongs to.
std::optional<LongDivision> long_division_of(const Question& q) {
  const auto& body = q.original.body;
  const auto at = [&](int32_t i) -> const Instruction& { return body[static_cast<size_t>(i)]; };
  LongDivision d;
  d.branch_at = q.mutation.instruction;
  if (at(d.branch_at).form.operation == Operation::and_) d.branch_at = only_use(q, d.branch_at);
  if (d.branch_at >= 0 && at(d.branch_at).form.operation == Operation::setp)
    d.branch_at = only_use(q, d.branch_at);
  if (d.branch_at < 0) return std::nullopt;
  const Instruction& in = at(d.branch_at);
  if (in.form.operation != Operation::bra || in.predicate < 0 || in.predicate_negated) return std::nullopt;
  const auto& tests = q.ranges.definitions(in.predicate);
  if (tests.size() != 1) return std::nullopt;
  d.test_at = tests[0];
  const Instruction& test = at(d.test_at);
  if (test.form.operation != Operation::setp || test.form.comparison != ptx::Comparison::eq ||
      literal(test, 2) != 0 || test.operands[1].kind != Operand::Kind::reg)
    return std::nullopt;
  const auto& masks = q.ranges.definitions(test.operands[1].reg);
  if (masks.size() != 1 || !is_wide(at(masks[0]), Operation::and_) ||
      literal(at(masks[0]), 2) != int64_t{-4294967296})
    return std::nullopt;
  d.mask_at = masks[0];
  d.mask = static_cast<uint64_t>(*literal(at(d.mask_at), 2));
  const auto long_way = static_cast<size_t>(d.branch_at) + 1;
  const auto short_way = static_cast<size_t>(in.operands[0].target);
  if (long_way >= body.size() || short_way + 3 >= body.size()) return std::nullopt;
  const Instruction &whole = body[long_way], &half = body[short_way + 2], &back = body[short_way + 3];
  const Operation kind = whole.form.operation;
  const ptx::Form& widens = back.form;
  if ((kind != Operation::div && kind != Operation::rem) || half.form.operation != kind ||
      half.form.type() != ptx::Type::u32 || widens.operation != Operation::cvt ||
      widens.types[0] != ptx::Type::u64 || widens.type() != ptx::Type::u32 ||
      written_registers(whole) != written_registers(back))
    return std::nullopt;
  return d;
}

/// A quotient of 64 bits is computed in 32 where both operands fit; the long way gives the same, always. So
/// does a mutant that goes the short way only where the kernel does.
std::string long_division(const Question& q) {
  const std::optional<LongDivision> d = long_division_of(q);
  if (!d) return {};
  bool less_often = false;
  if (q.mutation.instruction == d->branch_at) {
    less_often = q.is("drop-branch");
  } else if (q.after && q.mutation.instruction == d->test_at) {
    const auto other = literal(*q.after, 2);
    less_often = (q.is("fix-predicate") && literal(*q.after, 1) == 0) ||
                 (q.after->opcode == q.original.body[static_cast<size_t>(d->test_at)].opcode && other &&
                  (static_cast<uint64_t>(*other) & ~d->mask) != 0);  // the masked bits never are that number
  } else if (q.after && q.mutation.instruction == d->mask_at) {
    const auto other = literal(*q.after, 2);
    const bool more_bits =
        is_wide(*q.after, Operation::and_) && other && (static_cast<uint64_t>(*other) & d->mask) == d->mask;
    less_often = more_bits || (is_wide(*q.after, Operation::or_) && other && *other != 0);
  }
  return less_often ? "the 64-bit division gives what the 32-bit one would: only slower" : "";
}

/// Each branch before it that decides whether it runs goes the same way in every launch.
std::string never_come_to(const Question& q) {
  if (is_come_to(q.original, q.ranges, q.mutation.instruction)) return {};
  return "no way leads to it with what the kernel's plans pass";
}

/// What is made of the result is the same single value with the mutant's result, in every place where it
/// goes.
std::string absorbed(const Question& q) {
  if (!q.after || !q.changed_ranges || q.before.predicate >= 0) return {};
  std::vector<int32_t> work = written_registers(q.before);
  if (work.size() != 1 || written_registers(*q.after) != work) return {};
  std::set<int32_t> seen(work.begin(), work.end());
  bool used = false;
  constexpr size_t kMostRegisters = 12;
  while (!work.empty()) {
    const int32_t reg = work.back();
    work.pop_back();
    for (const int32_t at : q.ranges.uses(reg)) {
      const Instruction &use = q.original.body[static_cast<size_t>(at)],
                        &same = q.changed_ranges->function().body[static_cast<size_t>(at)];
      const std::vector<int32_t> made = written_registers(use);
      const bool one = made.size() == 1 && use.operands[0].kind == Operand::Kind::reg;
      if (!one || use.form.operation == Operation::ld || use.predicate == reg) return {};
      used = true;
      const ValueRange was = q.ranges.result(use), is = q.changed_ranges->result(same);
      if (was.single() && was == is) continue;
      if (use.form.operation == Operation::selp || use.form.operation == Operation::setp || !is_integer(use))
        return {};
      if (seen.insert(made[0]).second) work.push_back(made[0]);
      if (seen.size() > kMostRegisters) return {};
    }
  }
  return used ? "what is made of its result is one and the same value for all values that its operands can "
                "have"
              : "";
}

}  // namespace

std::string why_equivalent(const ptx::Module& original, const ptx::Module& changed,
                           const ptx::Mutation& mutation, const ParameterRoles& roles) {
  const ptx::Function& f = original.functions[static_cast<size_t>(mutation.function)];
  const ptx::Function& g = changed.functions[static_cast<size_t>(mutation.function)];
  ValueRanges ranges(f, roles);
  const auto at = static_cast<size_t>(mutation.instruction);
  const bool one = g.body.size() == f.body.size() && g.registers.size() == f.registers.size();
  // Registers are numbered as they are first named, so the changed instruction may name others in their
  // place.
  Instruction renamed;
  if (one) {
    renamed = g.body[at];
    const auto rename = [&](auto&& self, Operand& operand) -> void {
      if (operand.reg >= 0)
        for (size_t r = 0; r < f.registers.size(); ++r)
          if (f.registers[r].name == g.registers[static_cast<size_t>(operand.reg)].name) {
            operand.reg = static_cast<int32_t>(r);
            break;
          }
      for (Operand& element : operand.elements) self(self, element);
    };
    for (Operand& operand : renamed.operands) rename(rename, operand);
  }
  ValueRanges changed_ranges(g, roles);
  const Question question{
      f, mutation, f.body[at], one ? &renamed : nullptr, ranges, one ? &changed_ranges : nullptr};
  for (const auto argue :
       {constant_result, constant_guard, saturated_shift, added_zero, choice_of_equals, exact_conversion,
        copied_literal, exact_addition, long_division, absorbed, dropped_bits, unused_result, never_come_to})
    if (std::string argument = argue(question); !argument.empty()) return argument;
  return {};
}

}  // namespace assay
