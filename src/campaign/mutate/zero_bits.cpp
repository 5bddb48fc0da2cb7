#include "src/campaign/mutate/zero_bits.h"

#include <algorithm>
#include <bit>

#include "src/base/ptx/type.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// What is left of zeros below the lowest bit that may be set.
uint64_t low_zeros(uint64_t zeros) {
  return ones(std::countr_one(zeros));
}

/// The bits above all numbers of an interval without negative ones.
uint64_t above(const ValueRange& range, int bits) {
  return range.low < 0 ? 0 : ones(bits) & ~ones(std::bit_width(static_cast<uint64_t>(range.high)));
}

}  // namespace

int width_of(const ptx::Function& f, int32_t reg) {
  return 8 * ptx::bytes_of(f.registers[static_cast<size_t>(reg)].type);
}

uint64_t ZeroBits::of(const Operand& operand, int bits) {
  if (operand.kind == Operand::Kind::immediate) return ~operand.bits & ones(bits);
  if (operand.kind != Operand::Kind::reg || operand.negated) return 0;
  return of(operand.reg) & ones(bits);
}

uint64_t ZeroBits::of(int32_t reg) {
  const ptx::Function& f = ranges_.function();
  const int bits = width_of(f, reg);
  if (const auto found = known_.find(reg); found != known_.end()) return found->second;
  const std::vector<int32_t>& made = ranges_.definitions(reg);
  if (bits < 16 || made.empty() || made.size() > 8 || open_.size() > 100 || !open_.insert(reg).second)
    return 0;
  uint64_t zeros = ones(bits);
  for (const int32_t at : made) {
    const Instruction& in = f.body[static_cast<size_t>(at)];
    zeros &= in.operands[0].kind == Operand::Kind::reg ? result(in, bits) : 0;
  }
  zeros |= above(ranges_.of(reg), bits);
  open_.erase(reg);
  if (open_.empty()) known_[reg] = zeros;
  return zeros;
}

/// Of what an instruction writes, by its operands' zeros alone.
uint64_t ZeroBits::result(const Instruction& in, int bits) {
  using enum ptx::Operation;
  const ptx::Operation operation = in.form.operation;
  const ptx::Type type = in.form.type();
  if (ptx::is_float(type) || in.operands.size() < 2) return 0;
  const auto zeros = [&](size_t i) { return i < in.operands.size() ? of(in.operands[i], bits) : 0; };
  const auto literal = [&](size_t i) {
    const bool is = i < in.operands.size() && in.operands[i].kind == Operand::Kind::immediate;
    return is && in.operands[i].bits < static_cast<uint64_t>(bits) ? static_cast<int>(in.operands[i].bits)
                                                                   : -1;
  };
  const bool natural = zeros(1) >> (bits - 1) & 1;
  if (operation == mov) return zeros(1);
  if (operation == and_) return zeros(1) | zeros(2);
  if (operation == or_ || operation == xor_) return zeros(1) & zeros(2);
  if (operation == selp) return zeros(1) & zeros(2);
  if (operation == shl && literal(2) >= 0) return (zeros(1) << literal(2) | ones(literal(2))) & ones(bits);
  if (operation == shr && literal(2) >= 0) {
    const uint64_t moved_in = ones(bits) & ~ones(bits - literal(2));
    return zeros(1) >> literal(2) | (!is_signed(type) || natural ? moved_in : 0);
  }
  if (operation == add) return low_zeros(zeros(1)) & low_zeros(zeros(2));
  if (operation == sub) return low_zeros(zeros(1)) & low_zeros(zeros(2));
  if (operation == mul && in.form.product != ptx::Product::hi)
    return ones(std::min(bits, std::countr_one(zeros(1)) + std::countr_one(zeros(2))));
  if (operation == bfi && literal(3) >= 0 && in.operands.at(4).kind == Operand::Kind::immediate) {
    const uint64_t field =
        ones(static_cast<int>(std::min<uint64_t>(in.operands[4].bits, 64))) << literal(3) & ones(bits);
    return (zeros(1) << literal(3) & field) | (zeros(2) & ~field);
  }
  if (operation == cvt && in.operands[1].kind == Operand::Kind::reg && !is_signed(type)) {
    const int from = std::min(8 * ptx::bytes_of(type), width_of(ranges_.function(), in.operands[1].reg));
    return (of(in.operands[1].reg) & ones(std::min(from, bits))) | (ones(bits) & ~ones(from));
  }
  return 0;
}

}  // namespace assay
