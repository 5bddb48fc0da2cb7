#include "src/base/vm/births.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/tensor_core.h"
#include "src/base/vm/traced_launch.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {
namespace {

/// How a float of the type lies in a register: values of `bits` bits, one or two of them.
struct Lie {
  Dtype dtype = Dtype::fp32;
  int bits = 0;  ///< 0: no float
  int count = 1;
};
Lie lie_of(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::f64:
      return {Dtype::fp64, 64, 1};
    case Type::f32:
    case Type::tf32:
      return {Dtype::fp32, 32, 1};
    case Type::f16:
    case Type::f16x2:
      return {Dtype::fp16, 16, type == Type::f16x2 ? 2 : 1};
    case Type::bf16:
    case Type::bf16x2:
      return {Dtype::bf16, 16, type == Type::bf16x2 ? 2 : 1};
    default:
      return {};
  }
}

/// Classes of the values of 32 lanes, as masks.
struct Classes {
  uint32_t nan = 0, infinite = 0, subnormal = 0, zero = 0;
  void set(Dtype dtype, uint64_t bits, int lane) {
    const Format& f = format(dtype);
    const int fraction_bits = f.precision - 1;
    const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1),
                   largest = (uint64_t{1} << f.exponent_bits) - 1, exponent = bits >> fraction_bits & largest;
    const uint32_t one = 1u << lane;
    if (exponent == largest) (fraction ? nan : infinite) |= one;
    if (exponent == 0) (fraction ? subnormal : zero) |= one;
  }
  uint32_t special() const { return nan | infinite | subnormal; }
};

/// Of value `half` of a register; f32 first, for its speed.
Classes classes_of(const LaneBits& bits, const Lie& lie, int half) {
  Classes c;
  for (int lane = 0; lane < 32; ++lane)
    c.set(lie.dtype, bits[static_cast<size_t>(lane)] >> (lie.bits * half), lane);
  return c;
}

/// Whether any lane of the register may hold what is neither normal nor zero: exponents alone.
bool may_be_special(const Warp& warp, const Op& op, const Lie& lie, uint32_t mask) {
  if (lie.bits == 64) {
    const uint64_t* values = warp.wide(op.d);
    bool found = false;
    for (int i = 0; i < 32; ++i) {
      const uint64_t exponent = values[i] >> 52 & 0x7ff;
      found |= (exponent == 0x7ff || (exponent == 0 && values[i] << 12)) && mask >> i & 1;
    }
    return found;
  }
  const uint32_t* words = warp.word(op.d);
  uint32_t found = 0;
  if (lie.bits == 32) {
    for (int i = 0; i < 32; ++i) {
      const uint32_t magnitude = words[i] & 0x7fffffff;
      // Normal numbers and zero: magnitude - 1 wraps for zero.
      found |= (magnitude >= 0x7f800000 || magnitude - 1 < 0x7fffff ? 1u : 0u) & mask >> i;
    }
    return found & 1;
  }
  const uint32_t infinity = lie.dtype == Dtype::fp16 ? 0x7c00 : 0x7f80,
                 normal = lie.dtype == Dtype::fp16 ? 0x400 : 0x80;
  for (int half = 0; half < lie.count; ++half)
    for (int i = 0; i < 32; ++i) {
      const uint32_t magnitude = words[i] >> (16 * half) & 0x7fff;
      found |= (magnitude >= infinity || magnitude - 1 < normal - 1 ? 1u : 0u) & mask >> i;
    }
  return found & 1;
}

struct BirthCounts {
  uint64_t nans = 0, infinities = 0, subnormals = 0, divisions_by_zero = 0;
  int worst = 0;  ///< of the example: 3 NaN, 2 infinity, 1 subnormal
  uint64_t block = 0;
  uint32_t thread = 0;
  std::string example;
};

class BirthTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;

  std::vector<BirthCounts> counts;  ///< by op

  void begin_block(Block& block) {
    const Code& code = *block.context->code;
    if (code_ == &code) return;
    code_ = &code;
    counts.assign(code.ops.size(), {});
    facts_.clear();
    for (const Op& op : code.ops) facts_.push_back(facts_of(op));
  }

  void before(Warp& warp, const Op& op, uint32_t) {
    const Facts& facts = facts_[code_->index(op)];
    if (facts.matrix) {
      const bool wide = MatrixForm::of(op.immediate).sum == Element::f64;
      slots_.resize(op.slot_count);
      for (size_t i = 0; i < op.slot_count; ++i) read_lanes(warp, op.slots[i], wide, slots_[i]);
      return;
    }
    for (int k = 0; k < facts.arity; ++k) {
      const auto source = static_cast<size_t>(k);
      if (facts.source[source].bits == 64)
        std::memcpy(kept_[source].wide, warp.wide(op.s[k]), sizeof kept_[source].wide);
      else
        std::memcpy(kept_[source].word, warp.word(op.s[k]), sizeof kept_[source].word);
    }
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Facts& facts = facts_[code_->index(op)];
    if (facts.matrix) return sums(warp, op);
    if (facts.result.bits && may_be_special(warp, op, facts.result, mask)) results(warp, op, facts, mask);
  }

 private:
  struct Facts {
    bool matrix = false, divides = false, logarithm = false;
    int arity = 0;
    Lie result;
    std::array<Lie, 3> source;
  };

  Facts facts_of(const Op& op) const {
    const Signature& signature = code_->signature(op);
    Facts f;
    f.matrix = signature.flow() == Flow::matrix && !format_of(MatrixForm::of(op.immediate).sum).integer;
    const bool computes = signature.flow() == Flow::arithmetic || signature.flow() == Flow::conversion;
    if (f.matrix || !computes || op.d == no_slot || op.d_cell == Cell::mask) return f;
    f.result = lie_of(op.row->result);
    if (f.result.bits == 0) return f;
    for (; f.arity < 3 && op.row->sources[static_cast<size_t>(f.arity)] != ptx::Type::none; ++f.arity)
      f.source[static_cast<size_t>(f.arity)] = lie_of(op.row->sources[static_cast<size_t>(f.arity)]);
    using ptx::Operation;
    const Operation operation = signature.form.operation;
    f.divides = operation == Operation::div || operation == Operation::rcp || operation == Operation::rsqrt;
    f.logarithm = operation == Operation::lg2;
    return f;
  }

  LaneBits source_bits(const Facts& facts, int k) const {
    const auto source = static_cast<size_t>(k);
    LaneBits bits{};
    for (size_t i = 0; i < 32; ++i)
      bits[i] = facts.source[source].bits == 64 ? kept_[source].wide[i] : kept_[source].word[i];
    return bits;
  }

  void results(const Warp& warp, const Op& op, const Facts& facts, uint32_t mask) {
    LaneBits made{};
    read_lanes(warp, op.d, facts.result.bits == 64, made);
    const bool packs = facts.result.count == 2 && facts.source[0].count == 1;  // cvt d, high, low
    for (int half = 0; half < facts.result.count; ++half) {
      const Classes now = classes_of(made, facts.result, half);
      if ((now.special() & mask) == 0) continue;
      Classes any, divisor, dividend;
      for (int k = 0; k < facts.arity; ++k) {
        const Lie& lie = facts.source[static_cast<size_t>(k)];
        if (lie.bits == 0 || (packs && k != 1 - half)) continue;
        const Classes c = classes_of(source_bits(facts, k), lie, packs || lie.count == 1 ? 0 : half);
        any.nan |= c.nan, any.infinite |= c.infinite, any.subnormal |= c.subnormal;
        (k + 1 == facts.arity ? divisor : dividend) = c;
      }
      BirthCounts& count = counts[code_->index(op)];
      const uint32_t nans = now.nan & ~any.nan & mask,
                     infinities = now.infinite & ~any.nan & ~any.infinite & mask,
                     subnormals = now.subnormal & ~any.subnormal & mask;
      count.nans += static_cast<uint64_t>(std::popcount(nans));
      count.infinities += static_cast<uint64_t>(std::popcount(infinities));
      count.subnormals += static_cast<uint64_t>(std::popcount(subnormals));
      if (facts.divides || facts.logarithm)
        count.divisions_by_zero +=
            static_cast<uint64_t>(std::popcount(infinities & divisor.zero & ~dividend.zero));
      const int kind = nans ? 3 : infinities ? 2 : subnormals ? 1 : 0;
      if (kind <= count.worst) continue;
      const int lane = std::countr_zero(nans ? nans : infinities ? infinities : subnormals);
      std::string operands;
      for (int k = 0; k < facts.arity; ++k) {
        const Lie& lie = facts.source[static_cast<size_t>(k)];
        if (lie.bits == 0 || (packs && k != 1 - half)) continue;
        const uint64_t bits = source_bits(facts, k)[static_cast<size_t>(lane)] >>
                              (packs || lie.count == 1 ? 0 : lie.bits * half);
        operands += fmt::format("{}{:.6g}", operands.empty() ? "" : ", ", value(lie, bits));
      }
      note(warp, lane, kind, count,
           fmt::format("{} -> {:.6g}", operands,
                       value(facts.result, made[static_cast<size_t>(lane)] >> (facts.result.bits * half))));
    }
  }
  static double value(const Lie& lie, uint64_t bits) {
    return assay::decode(lie.dtype, lie.bits == 64 ? bits : bits & ((uint64_t{1} << lie.bits) - 1));
  }
  void note(const Warp& warp, int lane, int kind, BirthCounts& count, std::string example) {
    count.worst = kind, count.example = std::move(example);
    count.block = linear_of_block(warp), count.thread = warp.number * 32 + static_cast<uint32_t>(lane);
  }

  double element(const Warp& warp, Element e, const ElementPlace& at) const {
    const int bits = format_of(e).bits;
    uint64_t pattern = 0;
    if (at.slot < 0)
      std::memcpy(&pattern, warp.block->shared.data() + at.shared, static_cast<size_t>(bits / 8));
    else
      pattern = slots_[static_cast<size_t>(at.slot)][static_cast<size_t>(at.lane)] >> at.bit;
    if (bits < 64) pattern &= (uint64_t{1} << bits) - 1;
    return value_of(e, pattern);
  }

  /// Subnormal sums are not counted: the terms of a dot product have no one magnitude that they came from.
  void sums(const Warp& warp, const Op& op) {
    const MatrixForm form = MatrixForm::of(op.immediate);
    const int bits = format_of(form.sum).bits;
    const auto bits_at = [&](const ElementPlace& at) {
      const Slot slot = op.slots[at.slot];
      if (bits == 64) return warp.wide(slot)[at.lane];
      return uint64_t{warp.word(slot)[at.lane] >> at.bit & (bits == 16 ? 0xffffu : ~0u)};
    };
    bool special = false;
    for (int i = 0; i < op.written_slots && !special; ++i) {
      const Slot slot = op.slots[i];
      for (int lane = 0; lane < 32; ++lane) {
        if (bits == 64) {
          special |= (warp.wide(slot)[lane] >> 52 & 0x7ff) == 0x7ff;
        } else {
          const uint32_t word = warp.word(slot)[lane];
          special |= bits == 32 ? (word & 0x7f800000) == 0x7f800000
                                : (word & 0x7c00) == 0x7c00 || (word >> 16 & 0x7c00) == 0x7c00;
        }
      }
    }
    if (!special) return;
    const MatrixElements elements(warp, op);
    BirthCounts& count = counts[code_->index(op)];
    elements.each_sum([&](int row, int column, const ElementPlace& at) {
      const double sum = value_of(form.sum, bits_at(at));
      if (std::isfinite(sum)) return;
      bool nan = false, infinite = false;
      const auto see = [&](double x) { nan |= std::isnan(x), infinite |= std::isinf(x); };
      for (int i = 0; i < form.a_depth(); ++i) {
        see(element(warp, form.a, elements.a(row, i)));
        see(element(warp, form.b, elements.b(elements.column_of_a(row, i), column)));
      }
      if (elements.adds()) see(element(warp, form.sum, elements.c(row, column)));
      const bool born = std::isnan(sum) ? !nan : !nan && !infinite;
      if (!born) return;
      ++(std::isnan(sum) ? count.nans : count.infinities);
      const int kind = std::isnan(sum) ? 3 : 2;
      if (kind > count.worst) note(warp, at.lane, kind, count, fmt::format("-> {:.6g}", sum));
    });
  }

  const Code* code_ = nullptr;
  std::vector<Facts> facts_;
  struct {
    alignas(64) uint32_t word[32];
    alignas(64) uint64_t wide[32];
  } kept_[3];
  std::vector<LaneBits> slots_;
};

}  // namespace

std::vector<LineBirths> run_births(
    const Program& program, const TensorMap& inputs, const MachineOptions& options,
    const std::function<SourceLocation(const ptx::Module&, int32_t, int32_t)>& locate) {
  PreparedProgram prepared(program, inputs, options);
  std::vector<LineBirths> lines;
  std::map<std::string, size_t> known;
  for (size_t launch = 0; launch < program.launches.size(); ++launch) {
    BirthTrace trace;
    const TracedLaunch done = run_traced(prepared, launch, trace);
    const Code& code = prepared.code(launch);
    for (size_t i = 0; i < trace.counts.size(); ++i) {
      const BirthCounts& count = trace.counts[i];
      const Op& op = code.ops[i];
      if (count.worst == 0 || op.instruction < 0) continue;
      const SourceLocation at = locate ? locate(*code.module, op.function, op.instruction) : where(code, op);
      const std::string key =
          fmt::format("{}:{}:{}", at.file, at.file.empty() ? at.ptx_line : at.line, opcode_of(code, op));
      const auto [found, is_new] = known.try_emplace(key, lines.size());
      if (is_new) lines.push_back({.where = at, .instruction = opcode_of(code, op)});
      LineBirths& line = lines[found->second];
      const bool worse = (count.nans && !line.nans) || (count.infinities && !line.nans && !line.infinities);
      line.nans += count.nans, line.infinities += count.infinities, line.subnormals += count.subnormals;
      line.divisions_by_zero += count.divisions_by_zero;
      if (!is_new && !worse) continue;
      line.block = unfold(count.block, program.launches[launch].grid);
      line.thread = unfold(count.thread, program.launches[launch].block);
      line.example = count.example;
    }
    if (done.trap) break;
  }
  return lines;
}

}  // namespace assay::vm
