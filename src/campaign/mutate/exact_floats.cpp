#include "src/campaign/mutate/exact_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "src/campaign/mutate/reaching.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;
using ptx::Rounding;
using ptx::Type;

bool is_plain(const ptx::Form& form) {
  return !form.ftz && !form.saturates && !form.relu && !form.packed;
}

/// The write of `reg` before `at` from which only one straight way leads there; -1: there is none.
int32_t writer_on_the_way(ValueRanges& ranges, int32_t at, int32_t reg) {
  int32_t last = -1;
  for (const int32_t made : ranges.definitions(reg))
    if (made < at) last = std::max(last, made);
  return last >= 0 && ranges.is_straight(last, at) ? last : -1;
}

constexpr int kAllBits = 24, kDeepest = 6;

int bits_of_literal(uint64_t bits) {
  const uint64_t fraction = bits & 0x7fffff;
  return fraction == 0 ? 1 : kAllBits - std::countr_zero(fraction);
}

bool is_number(const Operand& operand, uint32_t bits) {
  return operand.kind == Operand::Kind::immediate && !operand.is_float_literal &&
         static_cast<uint32_t>(operand.bits) == bits;
}

int significant(ValueRanges& ranges, int32_t instruction, const Operand& operand, int depth);

/// Of what an instruction gives.
int significant_of(ValueRanges& ranges, int32_t at, int depth) {
  const Instruction& in = ranges.function().body[static_cast<size_t>(at)];
  const Type from = in.form.type();
  const auto of = [&](size_t i) { return significant(ranges, at, in.operands[i], depth + 1); };
  if (in.operands[0].kind != Operand::Kind::reg) return kAllBits;
  switch (in.form.operation) {
    case Operation::mov:
      return in.operands.size() == 2 && ptx::bytes_of(from) == 4 ? of(1) : kAllBits;
    case Operation::selp:
      return std::max(of(1), of(2));
    case Operation::neg:
    case Operation::abs:
      return from == Type::f32 ? of(1) : kAllBits;
    case Operation::cvt:
      if (in.form.types[0] != Type::f32 || !is_plain(in.form)) return kAllBits;
      return from == Type::f16 ? 11 : from == Type::bf16 ? 8 : kAllBits;
    case Operation::shl:  // the bits of a bf16 as those of an fp32, or of its upper half
      return from == Type::b32 && is_number(in.operands[2], 16) ? 8 : kAllBits;
    case Operation::and_:
      return from == Type::b32 && is_number(in.operands[2], 0xffff0000) ? 8 : kAllBits;
    default:
      return kAllBits;
  }
}

int significant(ValueRanges& ranges, int32_t instruction, const Operand& operand, int depth) {
  if (operand.kind == Operand::Kind::immediate) return bits_of_literal(operand.bits);
  if (operand.kind != Operand::Kind::reg || depth > kDeepest) return kAllBits;
  const auto made = reaching_writes(ranges, instruction, operand.reg);
  if (!made || made->empty()) return kAllBits;
  int most = 0;
  for (const int32_t at : *made) most = std::max(most, significant_of(ranges, at, depth));
  return most;
}

}  // namespace

int significant_bits(ValueRanges& ranges, int32_t instruction, const Operand& operand) {
  return significant(ranges, instruction, operand, 0);
}

bool is_rest_of_split(ValueRanges& ranges, int32_t instruction) {
  const auto& body = ranges.function().body;
  const Instruction& rest = body[static_cast<size_t>(instruction)];
  const bool subtracts =
      rest.form.operation == Operation::sub && rest.form.type() == Type::f32 && is_plain(rest.form);
  if (!subtracts || rest.operands[1].kind != Operand::Kind::reg ||
      rest.operands[2].kind != Operand::Kind::reg)
    return false;
  const int32_t x = rest.operands[1].reg,
                copied = writer_on_the_way(ranges, instruction, rest.operands[2].reg);
  if (copied < 0) return false;
  const Instruction& copy = body[static_cast<size_t>(copied)];
  if (copy.form.operation != Operation::mov || copy.predicate >= 0 || copy.operands.size() != 2 ||
      copy.operands[0].kind != Operand::Kind::reg || copy.operands[1].kind != Operand::Kind::reg ||
      ptx::bytes_of(copy.form.type()) != 4)
    return false;
  const int32_t rounded = writer_on_the_way(ranges, copied, copy.operands[1].reg);
  if (rounded < 0) return false;
  const Instruction& high = body[static_cast<size_t>(rounded)];
  const bool nearest = high.form.rounding == Rounding::rna || high.form.rounding == Rounding::rn;
  const std::vector<int32_t>& of_x = ranges.definitions(x);
  return high.form.operation == Operation::cvt && high.form.types[0] == Type::tf32 && nearest &&
         is_plain(high.form) && high.predicate < 0 && high.operands[1].kind == Operand::Kind::reg &&
         high.operands[1].reg == x &&
         std::none_of(of_x.begin(), of_x.end(), [&](int32_t i) { return i > rounded && i < instruction; });
}

bool is_rounded_to_bf16_only(const ValueRanges& ranges, int32_t reg) {
  std::vector<int32_t> work{reg};
  std::set<int32_t> seen{reg};
  bool rounded = false;
  while (!work.empty()) {
    const int32_t of = work.back();
    work.pop_back();
    for (const int32_t use : ranges.uses(of)) {
      const Instruction& in = ranges.function().body[static_cast<size_t>(use)];
      const Type to = in.form.types[0];
      const bool rounds = in.form.operation == Operation::cvt && (to == Type::bf16 || to == Type::bf16x2) &&
                          in.form.type() == Type::f32 && in.form.rounding == Rounding::rn &&
                          !in.form.saturates && !in.form.relu;
      const bool copies = (in.form.operation == Operation::mov && in.operands.size() == 2 &&
                           in.operands[1].kind == Operand::Kind::reg) ||
                          in.form.operation == Operation::selp;
      if (rounds) rounded = true;
      if (rounds) continue;
      if (!copies || in.operands[0].kind != Operand::Kind::reg || in.predicate == of ||
          ptx::bytes_of(in.form.type()) != 4)
        return false;
      if (seen.insert(in.operands[0].reg).second) work.push_back(in.operands[0].reg);
    }
  }
  return rounded;
}

namespace {

/// The f16 of the same value: a zero or a normal one of 11 bits.
std::optional<uint32_t> as_f16(uint32_t bits) {
  constexpr uint32_t kBelowF16 = 0x1fff, kLeast = 0x38800000, kMost = 0x477fe000;  // 2^-14, 65504
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude == 0) return sign;
  if (bits & kBelowF16 || magnitude < kLeast || magnitude > kMost) return std::nullopt;
  return sign | (magnitude - kLeast + 0x00800000) >> 13;
}

}  // namespace

std::optional<uint32_t> exact_result(const Instruction& in, const std::vector<uint32_t>& operands) {
  const ptx::Form& form = in.form;
  if (form.type() != Type::f32 || !is_plain(form) || form.rounding == Rounding::rm) return std::nullopt;
  std::vector<double> x;
  for (const uint32_t bits : operands) {
    const auto each = std::bit_cast<float>(bits);
    if (each != 0 && !std::isnormal(each)) return std::nullopt;
    x.push_back(each);
  }
  constexpr uint32_t kBelowTf32 = 0x1fff, kBelowBf16 = 0xffff;
  if (form.operation == Operation::cvt && form.types[0] == Type::tf32 && x.size() == 1)
    return operands[0] & kBelowTf32 ? std::nullopt : std::optional(operands[0]);
  if (form.operation == Operation::cvt && form.types[0] == Type::bf16 && x.size() == 1)
    return operands[0] & kBelowBf16 ? std::nullopt : std::optional(operands[0] >> 16);
  if (form.operation == Operation::cvt && form.types[0] == Type::f16 && x.size() == 1)
    return as_f16(operands[0]);
  if (x.size() != 2) return std::nullopt;
  if (form.operation == Operation::sub) x[1] = -x[1];
  double made = x[0] * x[1];  // 48 bits
  if (form.operation == Operation::add || form.operation == Operation::sub) {
    made = x[0] + x[1];
    const double rest = made - x[0];
    if (made - rest != x[0] || rest != x[1]) return std::nullopt;
  } else if (form.operation != Operation::mul) {
    return std::nullopt;
  }
  const auto narrow = static_cast<float>(made);
  if (double{narrow} != made || (made != 0 && !std::isnormal(narrow))) return std::nullopt;
  return std::bit_cast<uint32_t>(narrow);
}

}  // namespace assay
