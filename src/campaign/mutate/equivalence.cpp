#include "src/campaign/mutate/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/dropped_bits.h"
#include "src/campaign/mutate/exact_floats.h"
#include "src/campaign/mutate/needed.h"
#include "src/campaign/mutate/overwritten.h"
#include "src/campaign/mutate/reaching.h"
#include "src/campaign/mutate/value_range.h"
#include "src/campaign/mutate/ways.h"
#include "src/campaign/mutate/zero_bits.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;
using ptx::Rounding;
using ptx::Type;

struct Question {
  const ptx::Function& original;
  const ptx::Mutation& mutation;
  const Instruction& before;
  const Instruction* after;     ///< null where the instruction is gone or became several
  ValueRanges& ranges;          ///< of the original
  ValueRanges* changed_ranges;  ///< of the changed function; null where `after` is
  bool is(std::string_view change) const { return mutation.change->name == change; }
  /// What the changed instruction can find in a register.
  ValueRange read(int32_t reg) const { return ranges.read_by(mutation.instruction, reg); }
};

/// What it computes on is integers or bits.
bool is_integer(const Instruction& in) {
  return in.form.type() != ptx::Type::none && !ptx::is_float(in.form.type());
}

bool same_operand(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.reg == b.reg && a.bits == b.bits && a.name == b.name &&
         a.negated == b.negated && a.offset == b.offset && a.symbol == b.symbol &&
         a.parameter == b.parameter &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(), same_operand);
}

std::string unused_result(const Question& q) {
  const bool may_trap =
      q.before.form.operation == Operation::ld || q.before.form.operation == Operation::call;
  if (written_registers(q.before).empty() || may_trap || q.is("drop-guard")) return {};
  if (q.after && written_registers(*q.after) != written_registers(q.before)) return {};
  const NeededRegisters needed(q.ranges);
  const std::vector<int32_t> written = written_registers(q.before);
  if (acts(q.before) || std::any_of(written.begin(), written.end(), [&](int32_t r) { return needed.has(r); }))
    return {};
  return "nothing that is stored or branched on depends on its result";
}

/// Elements of a vector of results, and of a tensor core's addends beside them, that only what nothing
/// depends on takes or gives.
std::string unused_elements(const Question& q) {
  if (!q.after || q.before.opcode != q.after->opcode || q.before.predicate != q.after->predicate) return {};
  const std::vector<Operand>&was = q.before.operands, &is = q.after->operands;
  const bool product = q.before.form.operation == Operation::mma;
  if (was.size() != is.size() || was.empty() || was[0].kind != Operand::Kind::vector || acts(q.before))
    return {};
  for (size_t i = 1; i < was.size(); ++i)
    if (!(product && i == 3) && !same_operand(was[i], is[i])) return {};
  const size_t count = was[0].elements.size();
  if (is[0].elements.size() != count) return {};
  if (product && (was.size() != 4 || was[3].elements.size() != count || is[3].elements.size() != count))
    return {};
  const NeededRegisters before(q.ranges), after(q.ranges, q.mutation.instruction, *q.after);
  const auto unneeded = [&](const Operand& element) {
    return element.kind == Operand::Kind::sink ||
           (element.reg >= 0 && !before.has(element.reg) && !after.has(element.reg));
  };
  for (size_t i = 0; i < count; ++i) {
    const bool same = same_operand(was[0].elements[i], is[0].elements[i]) &&
                      (!product || same_operand(was[3].elements[i], is[3].elements[i]));
    if (!same && (!unneeded(was[0].elements[i]) || !unneeded(is[0].elements[i]))) return {};
  }
  return "nothing that is stored or branched on depends on the elements that change";
}

std::string overwritten(const Question& q) {
  const bool may_trap =
      q.before.form.operation == Operation::ld || q.before.form.operation == Operation::call;
  if (may_trap || acts(q.before) || !q.after || written_registers(*q.after) != written_registers(q.before) ||
      q.after->predicate >= 0 || !is_overwritten(q.ranges, q.mutation.instruction))
    return {};
  return "its result is overwritten before anything takes it, on every way";
}

/// Both give one and the same value, whatever the inputs are.
std::string constant_result(const Question& q) {
  if (!q.after || written_registers(q.before).size() != 1 || q.before.predicate >= 0) return {};
  if (written_registers(*q.after) != written_registers(q.before) ||
      q.after->operands[0].kind != Operand::Kind::reg)
    return {};
  const ValueRange was = q.ranges.result(q.before), is = q.ranges.result(*q.after, q.mutation.instruction);
  if (!was.single() || was != is) return {};
  return fmt::format("its result is {} for all values that its operands can have", was.low);
}

/// Predicates that hold always or never.
std::string constant_guard(const Question& q) {
  if (q.before.predicate < 0 || !(q.is("drop-guard") || q.is("drop-branch"))) return {};
  const ValueRange p = q.read(q.before.predicate);
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
  if (second.kind != Operand::Kind::reg || q.read(second.reg) != ValueRange{0, 0}) return {};
  return fmt::format("{} is 0 for all values that it can have",
                     q.original.registers[static_cast<size_t>(second.reg)].name);
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

std::optional<uint64_t> exactly_always(const Question&, const Instruction&, int32_t at, int depth = 0);

/// Literals that a register can hold at an instruction, where all writes that reach it are copies
/// of literals, or what float arithmetic makes of them exactly; false where something else is among them.
bool collect_literals(const Question& q, const Instruction& reader, const Operand& operand, int32_t at,
                      std::set<int32_t>& seen, std::set<uint64_t>& literals, int depth) {
  if (operand.kind == Operand::Kind::immediate)
    return literals.insert(operand.bits & ones(8 * ptx::bytes_of(reader.form.type()))), true;
  if (operand.kind != Operand::Kind::reg || operand.negated) return false;
  const auto made = reaching_writes(q.ranges, at, operand.reg);
  return made && std::all_of(made->begin(), made->end(), [&](int32_t write) {
           if (!seen.insert(write).second) return true;  // a copy of itself around a loop adds nothing
           const Instruction& maker = q.original.body[static_cast<size_t>(write)];
           if (maker.operands[0].kind != Operand::Kind::reg) return false;
           if (maker.form.operation == Operation::mov)
             return ptx::bytes_of(maker.form.type()) == ptx::bytes_of(reader.form.type()) &&
                    collect_literals(q, maker, maker.operands[1], write, seen, literals, depth);
           const auto exact = exactly_always(q, maker, write, depth + 1);
           return exact && (literals.insert(*exact), true);
         });
}

/// The bits that an operand of an instruction always has.
std::optional<uint64_t> always_at(const Question& q, const Instruction& reader, const Operand& operand,
                                  int32_t at, int depth = 0) {
  std::set<int32_t> seen;
  std::set<uint64_t> literals;
  if (!collect_literals(q, reader, operand, at, seen, literals, depth) || literals.size() != 1)
    return std::nullopt;
  return *literals.begin();
}
/// Of the changed instruction, before or after.
std::optional<uint64_t> always(const Question& q, const Instruction& in, size_t operand) {
  return always_at(q, in, in.operands.at(operand), q.mutation.instruction);
}

/// What it gives where all its operands are always the same and nothing is rounded.
std::optional<uint64_t> exactly_always(const Question& q, const Instruction& in, int32_t at, int depth) {
  constexpr int kDeepest = 4;
  if (in.predicate >= 0 || depth > kDeepest) return std::nullopt;
  std::vector<uint32_t> operands;
  for (size_t i = 1; i < in.operands.size(); ++i) {
    const auto bits = always_at(q, in, in.operands[i], at, depth);
    if (!bits) return std::nullopt;
    operands.push_back(static_cast<uint32_t>(*bits));
  }
  return exact_result(in, operands);
}

std::string constant_float(const Question& q) {
  if (!q.after || q.before.predicate >= 0 || written_registers(*q.after) != written_registers(q.before) ||
      q.after->operands[0].kind != Operand::Kind::reg)
    return {};
  const auto was = exactly_always(q, q.before, q.mutation.instruction);
  if (!was) return {};
  const auto is = q.after->form.operation == Operation::mov
                      ? always(q, *q.after, 1)
                      : exactly_always(q, *q.after, q.mutation.instruction);
  if (!is || *is != *was) return {};
  return "its operands are always the same, and so is its result";
}

/// x - tf32(x), and what is rounded once more to where it is rounded anyhow.
std::string exact_rest(const Question& q) {
  if (q.is("round-to-bf16")) {
    const std::vector<int32_t> made = written_registers(q.before);
    return made.size() == 1 && is_rounded_to_bf16_only(q.ranges, made[0])
               ? "all that reads its result rounds it to bf16 in the same way"
               : "";
  }
  const bool rounds = q.is("change-rounding") && q.after && q.after->form.rounding != Rounding::rm;
  const Type to = q.before.form.types[0];
  if (rounds && q.before.form.operation == Operation::cvt && (to == Type::tf32 || to == Type::bf16) &&
      q.before.form.type() == Type::f32 &&
      significant_bits(q.ranges, q.mutation.instruction, q.before.operands.at(1)) <=
          (to == Type::tf32 ? 11 : 8))
    return "what it rounds has few enough bits: nothing is rounded";
  return rounds && q.before.form.rounding == Rounding::rn &&
                 is_rest_of_split(q.ranges, q.mutation.instruction)
             ? "what is left of a number after the nearest tf32 is exact: nothing is rounded"
             : "";
}

/// A copy of a literal that the mutant writes itself.
std::string copied_literal(const Question& q) {
  if (!q.after || q.before.form.operation != Operation::mov || q.after->form.operation != Operation::mov ||
      q.before.predicate >= 0)
    return {};
  if (q.before.opcode != q.after->opcode || q.before.operands.size() != 2) return {};
  const auto was = always(q, q.before, 1), is = always(q, *q.after, 1);
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
    if (const auto bits = always(q, q.before, i); bits && *bits == 0)
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
    const ValueRange r = q.read(source.reg);
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
        copied_literal, exact_addition, exact_rest, constant_float, long_division, absorbed, dropped_bits,
        unused_result, unused_elements, overwritten, never_come_to})
    if (std::string argument = argue(question); !argument.empty()) return argument;
  return {};
}

}  // namespace assay
