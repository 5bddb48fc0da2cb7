#include "src/campaign/mutate/dropped_bits.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "src/base/ptx/type.h"
#include "src/campaign/mutate/zero_bits.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;

bool is_literal(const Operand& operand) {
  return operand.kind == Operand::Kind::immediate && !operand.is_float_literal;
}

/// From the lowest bit on: where carries can go.
uint64_t upward(uint64_t bits, int width) {
  return bits == 0 ? 0 : ones(width) & ~ones(std::countr_zero(bits));
}

uint64_t field_of(const Operand& position, const Operand& length, int width) {
  if (position.bits >= static_cast<uint64_t>(width)) return 0;
  return ones(static_cast<int>(std::min<uint64_t>(length.bits, 64))) << position.bits & ones(width);
}

class Difference {
 public:
  explicit Difference(ValueRanges& ranges) : ranges_(ranges), zeros_(ranges) {}

  bool is_dropped(int32_t instruction, const Instruction& after) {
    const Instruction& before = at(instruction);
    if (before.opcode != after.opcode || before.predicate >= 0 || !writes_one(before)) return false;
    const int32_t made = before.operands[0].reg;
    const auto first = of_literals(before, after, width_of(ranges_.function(), made));
    return first && follow(made, *first);
  }

 private:
  const Instruction& at(int32_t i) const { return ranges_.function().body[static_cast<size_t>(i)]; }
  static bool writes_one(const Instruction& in) {
    return written_registers(in).size() == 1 && in.operands[0].kind == Operand::Kind::reg;
  }

  /// Bits in which the two results can differ.
  std::optional<uint64_t> of_literals(const Instruction& before, const Instruction& after, int width) {
    if (before.operands.size() != after.operands.size()) return std::nullopt;
    size_t changed = 0;
    for (size_t i = 1; i < before.operands.size(); ++i) {
      const Operand &was = before.operands[i], &is = after.operands[i];
      if (is_literal(was) && is_literal(is) && was.bits != is.bits && changed == 0)
        changed = i;
      else if (was.kind != is.kind || was.reg != is.reg || was.bits != is.bits || was.name != is.name)
        return std::nullopt;
    }
    if (changed == 0) return std::nullopt;
    const uint64_t was = before.operands[changed].bits & ones(width),
                   is = after.operands[changed].bits & ones(width);
    using enum ptx::Operation;
    const ptx::Operation operation = before.form.operation;
    if (operation == mov || operation == or_ || operation == xor_) return was ^ is;
    if (operation == and_ && changed == 2) return (was ^ is) & ~zeros_.of(before.operands[1], width);
    if (operation == add && changed == 2)
      return of_sums(zeros_.of(before.operands[1], width), was, is, width);
    if (operation == bfi && changed >= 3 && is_literal(before.operands[3]) &&
        is_literal(before.operands[4]) && before.operands[3].bits == after.operands[3].bits &&
        before.operands[3].bits < static_cast<uint64_t>(width)) {
      const uint64_t inserted = ~zeros_.of(before.operands[1], width) << before.operands[3].bits,
                     kept = ~zeros_.of(before.operands[2], width);
      return (field_of(before.operands[3], before.operands[4], width) ^
              field_of(after.operands[3], after.operands[4], width)) &
             (inserted | kept);
    }
    return std::nullopt;
  }
  /// x + was and x + is: the low bits only, where these sums carry nothing upwards.
  static uint64_t of_sums(uint64_t zeros, uint64_t was, uint64_t is, int width) {
    for (int low = 1; low < width; ++low) {
      const uint64_t x = ~zeros & ones(low);
      if (was >> low == is >> low && x + (was & ones(low)) <= ones(low) && x + (is & ones(low)) <= ones(low))
        return ones(low);
    }
    return ones(width);
  }

  bool follow(int32_t reg, uint64_t bits) {
    if (bits == 0) return true;
    std::map<int32_t, uint64_t> differing{{reg, bits}};
    std::vector<int32_t> work{reg};
    constexpr size_t kMostRegisters = 64;
    while (!work.empty()) {
      const int32_t of = work.back();
      work.pop_back();
      for (const int32_t use : ranges_.uses(of)) {
        const Instruction& in = at(use);
        if (in.predicate == of || !writes_one(in)) return false;
        const int32_t made = in.operands[0].reg;
        const auto result = of_result(in, width_of(ranges_.function(), made), differing);
        if (!result) return false;
        uint64_t& known = differing[made];
        if ((*result & ~known) == 0) continue;
        known |= *result;
        work.push_back(made);
        if (differing.size() > kMostRegisters) return false;
      }
    }
    return true;
  }

  /// Bits in which a result can differ; nothing where any difference may mean anything.
  std::optional<uint64_t> of_result(const Instruction& in, int width,
                                    const std::map<int32_t, uint64_t>& differing) {
    const auto d = [&](size_t i) -> uint64_t {
      if (i >= in.operands.size() || in.operands[i].kind != Operand::Kind::reg) return 0;
      const auto found = differing.find(in.operands[i].reg);
      return found == differing.end() ? 0 : found->second;
    };
    const auto can_be_one = [&](size_t i) {
      return (~zeros_.of(in.operands[i], width) & ones(width)) | d(i);
    };
    using enum ptx::Operation;
    const ptx::Operation operation = in.form.operation;
    const ptx::Type type = in.form.type();
    if (type == ptx::Type::none || ptx::is_float(type) || in.operands.size() < 2) return std::nullopt;
    const bool is_signed = ptx::is_signed(type);
    const uint64_t any = d(1) | d(2) | d(3) | d(4);
    const auto count = [&] {
      return in.operands.size() > 2 && is_literal(in.operands[2]) &&
                     in.operands[2].bits < static_cast<uint64_t>(width)
                 ? static_cast<int>(in.operands[2].bits)
                 : -1;
    };
    if (operation == mov || operation == or_ || operation == xor_ || operation == selp) return any;
    if (operation == and_) return (d(1) & can_be_one(2)) | (d(2) & can_be_one(1));
    if (operation == shl && count() >= 0) return d(1) << count() & ones(width);
    if (operation == shr && count() >= 0) {
      const uint64_t copies =
          is_signed && (d(1) >> (width - 1) & 1) ? ones(width) & ~ones(width - count()) : 0;
      return d(1) >> count() | copies;
    }
    if (operation == add || operation == sub || operation == mad ||
        (operation == mul && in.form.product != ptx::Product::hi))
      return upward(any, width);
    if (operation == bfi && is_literal(in.operands[3]) && is_literal(in.operands[4])) {
      const uint64_t field = field_of(in.operands[3], in.operands[4], width);
      return (field == 0 ? 0 : d(1) << in.operands[3].bits & field) | (d(2) & ~field);
    }
    if (operation == cvt && in.operands[1].kind == Operand::Kind::reg) {
      const int from = std::min(8 * ptx::bytes_of(type), width_of(ranges_.function(), in.operands[1].reg));
      const bool copied = is_signed && from < width && (d(1) >> (from - 1) & 1);
      return (d(1) & ones(std::min(from, width))) | (copied ? ones(width) & ~ones(from) : 0);
    }
    return std::nullopt;
  }

  ValueRanges& ranges_;
  ZeroBits zeros_;
};

}  // namespace

bool changes_dropped_bits_only(ValueRanges& ranges, int32_t instruction, const Instruction& after) {
  return Difference(ranges).is_dropped(instruction, after);
}

}  // namespace assay
