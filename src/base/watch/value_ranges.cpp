#include "src/base/watch/value_ranges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "src/base/vm/signature.h"
#include "src/base/watch/float_type.h"

namespace assay::watch {
namespace {

using ptx::Form;
using ptx::Operation;
using ptx::Rounding;
using ptx::Type;

constexpr double infinity = HUGE_VAL;
/// Approximate functions are off by less than this, relatively (PTX ISA: 2^-22 and a few ulps).
constexpr double slack = 1 + 0x1p-18;
/// Below it approximate functions may take a number for zero.
constexpr double smallest_normal = 0x1p-126;
constexpr int most_changes = 6;

const Range anything{-infinity, infinity, true};

bool reaches_infinity(const Range& r) {
  return r.most == infinity || r.least == -infinity;
}
bool holds_zero(const Range& r) {
  return r.least <= 0 && r.most >= 0;
}

Range hull(const Range& a, const Range& b) {
  if (a.is_empty()) return b;
  if (b.is_empty()) return a;
  return {std::min(a.least, b.least), std::max(a.most, b.most), a.nan || b.nan};
}

Range negated(Range r) {
  return {-r.most, -r.least, r.nan};
}

Range sum(const Range& a, const Range& b) {
  Range r{a.least + b.least, a.most + b.most, a.nan || b.nan};
  r.nan |= (a.most == infinity && b.least == -infinity) || (a.least == -infinity && b.most == infinity);
  if (std::isnan(r.least)) r.least = -infinity;
  if (std::isnan(r.most)) r.most = infinity;
  return r;
}

Range product(const Range& a, const Range& b) {
  Range r{infinity, -infinity, a.nan || b.nan};
  for (const double x : {a.least, a.most})
    for (const double y : {b.least, b.most}) {
      const double p = x == 0 || y == 0 ? 0 : x * y;
      r.least = std::min(r.least, p), r.most = std::max(r.most, p);
    }
  r.nan |= (reaches_infinity(a) && holds_zero(b)) || (reaches_infinity(b) && holds_zero(a));
  return r;
}

/// 1 / r, of approximate functions too.
Range reciprocal(const Range& r) {
  if (r.least < 2 * smallest_normal && r.most > -2 * smallest_normal) return {-infinity, infinity, r.nan};
  return {1 / r.most / (r.most > 0 ? slack : 1 / slack), 1 / r.least * (r.least > 0 ? slack : 1 / slack),
          r.nan};
}

/// min and max hand on the number where one operand is NaN; with .NaN the NaN.
Range extreme(const Range& a, const Range& b, bool most, bool hands_on_nan) {
  Range r = most ? Range{std::max(a.least, b.least), std::max(a.most, b.most)}
                 : Range{std::min(a.least, b.least), std::min(a.most, b.most)};
  if (hands_on_nan) return r.nan = a.nan || b.nan, r;
  if (a.nan) r.least = std::min(r.least, b.least), r.most = std::max(r.most, b.most);
  if (b.nan) r.least = std::min(r.least, a.least), r.most = std::max(r.most, a.most);
  r.nan = a.nan && b.nan;
  return r;
}

Range of_integer(Type type) {
  const int bits = 8 * ptx::bytes_of(type);
  if (ptx::is_unsigned(type)) return {0, std::ldexp(1.0, bits)};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1)};
}

/// The exact result, before it is rounded to a format.
Range exact_result(const Form& form, const std::array<Range, 3>& x) {
  const Range &a = x[0], &b = x[1];
  switch (form.operation) {
    case Operation::add:
      return sum(a, b);
    case Operation::sub:
      return sum(a, negated(b));
    case Operation::mul:
      return product(a, b);
    case Operation::fma:
    case Operation::mad:
      return sum(product(a, b), x[2]);
    case Operation::div: {
      Range r = product(a, reciprocal(b));
      r.nan =
          a.nan || b.nan || (holds_zero(a) && holds_zero(b)) || (reaches_infinity(a) && reaches_infinity(b));
      r.nan |= form.approximate && reaches_infinity(a);  // of divisors beyond 2^126
      return r;
    }
    case Operation::rcp:
      return reciprocal(a);
    case Operation::sqrt:
      return {std::sqrt(std::max(a.least, 0.0)) / slack, std::sqrt(std::max(a.most, 0.0)) * slack,
              a.nan || a.least < 0};
    case Operation::rsqrt: {
      Range r = reciprocal({std::sqrt(std::max(a.least, 0.0)), std::sqrt(std::max(a.most, 0.0))});
      if (a.least < 2 * smallest_normal) r = {-infinity, infinity};
      return r.nan = a.nan || a.least < 0, r;
    }
    case Operation::lg2:
      return {a.least < 2 * smallest_normal ? -infinity : std::log2(a.least) - 1,
              std::log2(std::max(a.most, 1.0)) + 1, a.nan || a.least < 0};
    case Operation::ex2:
      return {0, std::exp2(a.most) * slack, a.nan};
    case Operation::tanh:
      return {-1.01, 1.01, a.nan};
    case Operation::sin:
    case Operation::cos:
      return {-1.01, 1.01, a.nan || reaches_infinity(a)};
    case Operation::neg:
      return negated(a);
    case Operation::abs:
      return {holds_zero(a) ? 0 : std::min(std::fabs(a.least), std::fabs(a.most)),
              std::max(std::fabs(a.least), std::fabs(a.most)), a.nan};
    case Operation::copysign: {
      const double most = std::max(std::fabs(b.least), std::fabs(b.most));
      return {-most, most, b.nan};
    }
    case Operation::min:
    case Operation::max:
      return extreme(a, b, form.operation == Operation::max, form.nan);
    case Operation::cvt:
      if (form.rounding >= Rounding::rni) return {std::floor(a.least), std::ceil(a.most), a.nan};
      return form.type_count == 2 && form.float_pairs ? anything : a;
    default:
      return anything;
  }
}

/// Where results of this magnitude or more are infinite; larger than all: exact arithmetic on doubles tells.
double overflow_of(Type type, Rounding rounding) {
  const bool nearest = rounding == Rounding::none || rounding == Rounding::rn || rounding == Rounding::rna;
  const bool outward = rounding == Rounding::rm || rounding == Rounding::rp;
  switch (element_of(type)) {
    case Type::f32:
    case Type::tf32:
      return outward ? 0x1.fffffep127 : nearest ? 0x1.ffffffp127 : 0x1p128;
    case Type::f16:
      return outward ? 65504 : nearest ? 65520 : 65536;
    case Type::bf16:
      return outward ? 0x1.fep127 : nearest ? 0x1.ffp127 : 0x1p128;
    default:
      return infinity;
  }
}

Range rounded(const Form& form, Type type, Range r) {
  if (r.is_empty()) return r;
  if (form.saturates && form.operation != Operation::cvt) return {0, 1};
  if (form.saturates) {
    const double largest = largest_of(type);
    return {std::clamp(r.least, -largest, largest), std::clamp(r.most, -largest, largest), r.nan};
  }
  if (form.operation == Operation::cvt && form.rounding >= Rounding::rni)
    return r;  // no larger than they were
  const double overflow = overflow_of(type, form.rounding);
  if (r.most >= overflow) r.most = infinity;
  if (r.least <= -overflow) r.least = -infinity;
  if (form.relu) r.least = std::max(r.least, 0.0), r.most = std::max(r.most, 0.0);
  return r;
}

Range finite_part(Range r, Type type) {
  if (r.is_empty()) return r;
  const double largest = largest_of(type);
  return {std::clamp(r.least, -largest, largest), std::clamp(r.most, -largest, largest), false};
}

Range of_literal(const ptx::Operand& literal, Type type) {
  const double value = value_of(type, literal_bits(literal, type));
  if (std::isnan(value)) return {0, 0, true};
  return {value, value};
}

}  // namespace

ValueRanges::ValueRanges(const ptx::Function& function) : facts_(function.registers.size()) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const ptx::Instruction& instruction : function.body) {
      Type type = Type::none;
      const Range made = made_by(instruction, &type);
      const bool one =
          instruction.operands.size() > 1 && instruction.operands[0].kind == ptx::Operand::Kind::reg;
      for (const int32_t reg : vm::signature_of(instruction).writes)
        changed |= one ? meet(reg, type, made) : meet(reg, Type::none, anything);
    }
  }
}

/// True where that adds to what the register may hold.
bool ValueRanges::meet(int32_t reg, Type type, Range range) {
  Fact& fact = facts_[static_cast<size_t>(reg)];
  if (range.is_empty()) return false;
  if (!fact.range.is_empty() && fact.type != type) type = Type::none, range = anything;
  Range united = hull(fact.range, range);
  const bool same = united.least == fact.range.least && united.most == fact.range.most &&
                    united.nan == fact.range.nan && fact.type == type;
  if (same) return false;
  if (++fact.changes > most_changes) {
    if (united.least < fact.range.least) united.least = -infinity;
    if (united.most > fact.range.most) united.most = infinity;
  }
  fact.type = type, fact.range = united;
  return true;
}

Range ValueRanges::read(const ptx::Operand& operand, Type type) const {
  if (operand.kind == ptx::Operand::Kind::immediate) return of_literal(operand, type);
  if (operand.kind != ptx::Operand::Kind::reg) return anything;
  const Fact& fact = facts_[static_cast<size_t>(operand.reg)];
  if (fact.range.is_empty()) return {};
  return type == Type::none || element_of(fact.type) == element_of(type) ? fact.range : anything;
}

/// `type`: that of the value; none where it is anything. Empty as long as nothing is known of an operand.
Range ValueRanges::made_by(const ptx::Instruction& instruction, Type* type) const {
  const vm::Meaning* const meaning = vm::meaning_of(instruction);
  const auto& operands = instruction.operands;
  if (!meaning || operands.size() < 2) return anything;
  if (meaning->flow == vm::Flow::copy || meaning->flow == vm::Flow::select) {
    Range made;
    const size_t values = meaning->flow == vm::Flow::copy ? 1 : 2;
    *type = Type::none;
    for (size_t i = 1; i <= values; ++i) {
      const ptx::Operand& o = operands[i];
      Type own = instruction.form.type();
      if (o.kind == ptx::Operand::Kind::reg) {
        const Fact& fact = facts_[static_cast<size_t>(o.reg)];
        if (fact.range.is_empty()) continue;
        own = fact.type;
      } else if (o.kind != ptx::Operand::Kind::immediate || !ptx::is_float(own)) {
        return *type = Type::none, anything;
      }
      if (!made.is_empty() && own != *type) return *type = Type::none, anything;
      *type = own;
      made = hull(made, own == Type::none ? anything : read(o, own));
    }
    return made;
  }
  const bool computes = meaning->flow == vm::Flow::arithmetic || meaning->flow == vm::Flow::conversion;
  if (!computes || !ptx::is_float(meaning->result)) return anything;
  *type = meaning->result;
  std::array<Range, 3> x;
  for (size_t i = 0; i < 3 && i + 1 < operands.size() && meaning->sources[i] != Type::none; ++i) {
    const Type source = meaning->sources[i];
    x[i] = ptx::is_float(source) ? read(operands[i + 1], source) : of_integer(source);
    if (x[i].is_empty()) return {};
  }
  const bool packs = instruction.form.operation == Operation::cvt && meaning->sources[1] != Type::none;
  if (packs) x[0] = hull(x[0], x[1]);
  return rounded(instruction.form, *type, exact_result(instruction.form, x));
}

Births ValueRanges::births_of(const ptx::Instruction& instruction) const {
  const vm::Meaning& meaning = *vm::meaning_of(instruction);
  std::array<Range, 3> whole, finite;
  for (size_t i = 0; i < 3 && i + 1 < instruction.operands.size() && meaning.sources[i] != Type::none; ++i) {
    const Type type = meaning.sources[i];
    const bool is_number = ptx::is_float(type) || ptx::is_signed(type) || ptx::is_unsigned(type);
    if (!is_number) return {};  // floats of eight bits
    Range range = ptx::is_float(type) ? read(instruction.operands[i + 1], type) : of_integer(type);
    if (range.is_empty()) range = anything;
    range.nan = false;
    whole[i] = range, finite[i] = ptx::is_float(type) ? finite_part(range, type) : range;
  }
  if (instruction.form.operation == Operation::cvt && meaning.sources[1] != Type::none)
    whole[0] = hull(whole[0], whole[1]), finite[0] = hull(finite[0], finite[1]);
  const auto made = [&](const std::array<Range, 3>& x) {
    return rounded(instruction.form, meaning.result, exact_result(instruction.form, x));
  };
  return {made(whole).nan, reaches_infinity(made(finite))};
}

}  // namespace assay::watch
