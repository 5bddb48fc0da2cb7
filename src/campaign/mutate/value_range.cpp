#include "src/campaign/mutate/value_range.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/counters.h"
#include "src/campaign/mutate/reaching.h"
#include "src/campaign/mutate/ways.h"

namespace assay {
namespace {

using ptx::Comparison;
using ptx::Form;
using ptx::Operand;
using ptx::Operation;
using ptx::Product;
using ptx::Type;

constexpr ValueRange kAnything;
/// No case has tensors of more bytes (src/case/case.cpp), so that no number of anything in them is above.
constexpr int64_t kLargestSize = int64_t{1} << 40;
/// Those of 32 bits are heads, channels, slots and counts of their blocks, which end there too.
constexpr int64_t kLargestNarrowSize = int64_t{1} << 30;

/// Allocations are at multiples of 256 bytes, and none is at 0.
constexpr int64_t kLeastAddress = 256;
/// Registers that more instructions write are not followed.
constexpr size_t kMostDefinitions = 8;

using Wide = __int128;

ValueRange fitting(Wide low, Wide high, int bits) {
  const Wide most = (Wide{1} << (bits - 1)) - 1;
  if (low < -most - 1 || high > most) return kAnything;
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

ValueRange united(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

ValueRange products(const ValueRange& a, const ValueRange& b, int bits) {
  const Wide all[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
  return fitting(*std::min_element(all, all + 4), *std::max_element(all, all + 4), bits);
}

/// The least 2^n - 1 that is not below.
int64_t all_ones_above(int64_t value) {
  int64_t ones = 0;
  while (ones < value) ones = ones * 2 + 1;
  return ones;
}

/// `most_threads`: of a block; 0: any number.
ValueRange special_range(const std::string& name, int32_t most_threads) {
  if (name.starts_with("%tid.")) return {0, most_threads > 0 ? most_threads - 1 : 1023};
  if (name.starts_with("%ntid.")) return {1, 1024};
  if (name == "%ctaid.x") return {0, INT32_MAX - 1};
  if (name == "%ctaid.y" || name == "%ctaid.z") return {0, 65534};
  if (name == "%laneid" || name == "%warpid") return {0, 31};
  return kAnything;
}

ValueRange full(Type type) {
  const int bits = 8 * ptx::bytes_of(type);
  if (type == Type::pred) return {0, 1};
  if (bits >= 64 || bits == 0) return kAnything;
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

/// a cmp b where every pair of values agrees: 1 or 0; else both.
ValueRange compared(Comparison comparison, const ValueRange& a, const ValueRange& b, bool is_unsigned) {
  if (is_unsigned && (a.low < 0 || b.low < 0)) return {0, 1};
  const auto decided = [](bool always, bool never) {
    return always ? ValueRange{1, 1} : never ? ValueRange{0, 0} : ValueRange{0, 1};
  };
  const bool apart = a.high < b.low || b.high < a.low, same = a.single() && a == b;
  switch (comparison) {
    case Comparison::lt:
    case Comparison::lo:
      return decided(a.high < b.low, a.low >= b.high);
    case Comparison::le:
    case Comparison::ls:
      return decided(a.high <= b.low, a.low > b.high);
    case Comparison::gt:
    case Comparison::hi:
      return decided(a.low > b.high, a.high <= b.low);
    case Comparison::ge:
    case Comparison::hs:
      return decided(a.low >= b.high, a.high < b.low);
    case Comparison::eq:
      return decided(same, apart);
    case Comparison::ne:
      return decided(apart, same);
    default:
      return {0, 1};
  }
}

ValueRange right_shifted(Type type, const ValueRange& a, const ValueRange& by) {
  const int bits = 8 * ptx::bytes_of(type);
  if (by.single() && by.low >= 0 && (a.low >= 0 || ptx::is_signed(type))) {
    const int64_t count = std::min<int64_t>(by.low, bits - (ptx::is_unsigned(type) ? 0 : 1));
    if (count > 63) return {0, 0};
    return {a.low >> count, a.high >> count};
  }
  if (ptx::is_unsigned(type) && bits == 32 && by.single() && by.low > 0 && by.low < 32)
    return {0, int64_t{0xffffffff} >> by.low};
  return a.low >= 0 ? ValueRange{0, a.high} : kAnything;  // whatever the count
}

/// Of x and a mask: bits above those in which x's bounds differ are the same in all of x.
ValueRange under_mask(const ValueRange& x, int64_t mask) {
  const auto low = static_cast<uint64_t>(x.low), high = static_cast<uint64_t>(x.high);
  const int free = std::bit_width(low ^ high);
  const uint64_t loose = free >= 63 ? INT64_MAX : (uint64_t{1} << free) - 1;
  const auto fixed = static_cast<int64_t>(low & ~loose & static_cast<uint64_t>(mask));
  return {fixed, std::min(x.high, fixed | static_cast<int64_t>(loose & static_cast<uint64_t>(mask)))};
}

/// Of and, or, xor.
ValueRange masked(Operation operation, const ValueRange& a, const ValueRange& b) {
  const bool natural = a.low >= 0 && b.low >= 0;
  if (operation != Operation::and_) {
    const int64_t low = operation == Operation::or_ ? std::max(a.low, b.low) : 0;  // no bit of either is lost
    return natural ? ValueRange{low, all_ones_above(std::max(a.high, b.high))} : kAnything;
  }
  if (a.low >= 0 && b.single()) return under_mask(a, b.low);
  if (b.low >= 0 && a.single()) return under_mask(b, a.low);
  if (natural) return {0, std::min(a.high, b.high)};
  return a.low >= 0 ? ValueRange{0, a.high} : b.low >= 0 ? ValueRange{0, b.high} : kAnything;
}

/// Interval of one integer operation on intervals. What reads unsigned numbers says nothing of negative ones.
ValueRange combined(const Form& form, Type type, const std::vector<ValueRange>& x) {
  const int bits = 8 * ptx::bytes_of(type);
  const bool wide = form.product == Product::wide, low = form.product == Product::lo;
  const int made = wide ? 2 * bits : bits;
  const bool natural = std::all_of(x.begin(), x.end(), [](const ValueRange& r) { return r.low >= 0; });
  switch (form.operation) {
    case Operation::mov:
      return x[0];
    case Operation::cvt:
      return fitting(x[0].low, x[0].high, bits);
    case Operation::selp:
      return x[2].single() ? x[x[2].low != 0 ? 0 : 1] : united(x[0], x[1]);
    case Operation::shr:
      if (ptx::is_unsigned(form.type()) && !natural && x[1].low < 0) return kAnything;
      return right_shifted(form.type(), x[0], x[1]);
    default:
      break;
  }
  if (ptx::is_unsigned(form.type()) && !natural) return kAnything;
  switch (form.operation) {
    case Operation::add:
      return fitting(Wide{x[0].low} + x[1].low, Wide{x[0].high} + x[1].high, bits);
    case Operation::sub:
      return fitting(Wide{x[0].low} - x[1].high, Wide{x[0].high} - x[1].low, bits);
    case Operation::mul:
      return low || wide ? products(x[0], x[1], made) : kAnything;
    case Operation::mad: {
      const ValueRange p = low || wide ? products(x[0], x[1], made) : kAnything;
      return p == kAnything ? p : fitting(Wide{p.low} + x[2].low, Wide{p.high} + x[2].high, made);
    }
    case Operation::min:
      return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
    case Operation::max:
      return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
    case Operation::shl:
      if (!x[1].single() || x[1].low < 0 || x[1].low >= 63) return kAnything;
      return products(x[0], {int64_t{1} << x[1].low, int64_t{1} << x[1].low}, bits);
    case Operation::and_:
    case Operation::or_:
    case Operation::xor_:
      return masked(form.operation, x[0], x[1]);
    case Operation::div:
      return natural && x[1].low > 0 ? ValueRange{x[0].low / x[1].high, x[0].high / x[1].low} : kAnything;
    case Operation::rem:
      return natural && x[1].low > 0 ? ValueRange{0, std::min(x[0].high, x[1].high - 1)} : kAnything;
    default:
      return kAnything;
  }
}

}  // namespace

std::vector<int32_t> written_registers(const ptx::Instruction& in) {
  return vm::signature_of(in).writes;
}
std::vector<int32_t> read_registers(const ptx::Instruction& in) {
  return vm::signature_of(in).reads;
}

bool is_integer_arithmetic(const ptx::Instruction& in) {
  using enum vm::Flow;
  switch (vm::signature_of(in).flow()) {
    case copy:
    case pack:
    case unpack:
    case select:
    case logic:
    case shift:
    case permute:
    case integer:
    case conversion:
    case comparison:
    case address:
      break;
    default:
      return false;
  }
  const auto& types = in.form.types;
  return std::none_of(types.begin(), types.end(), [](Type type) { return ptx::is_float(type); });
}

ValueRanges::ValueRanges(const ptx::Function& function, ParameterRoles roles)
    : function_(function),
      roles_(std::move(roles)),
      definitions_(function.registers.size()),
      uses_(function.registers.size()) {
  for (size_t i = 0; i < function.body.size(); ++i) {
    const vm::TextSignature signature = vm::signature_of(function.body[i]);
    for (const int32_t reg : signature.writes)
      definitions_[static_cast<size_t>(reg)].push_back(static_cast<int32_t>(i));
    for (const int32_t reg : signature.reads)
      uses_[static_cast<size_t>(reg)].push_back(static_cast<int32_t>(i));
  }
}

const std::vector<std::vector<int32_t>>& ValueRanges::successors() {
  if (successors_.empty()) successors_ = successors_of(function_);
  return successors_;
}
const std::vector<std::vector<int32_t>>& ValueRanges::predecessors() {
  if (predecessors_.empty()) predecessors_ = predecessors_of(function_);
  return predecessors_;
}

bool ValueRanges::is_straight(int32_t from, int32_t to) {
  if (from > to) return false;
  for (int32_t i = from; i < to; ++i) {
    const std::vector<int32_t>& next = successors()[static_cast<size_t>(i)];
    if (next.size() != 1 || next[0] != i + 1 || predecessors()[static_cast<size_t>(i) + 1].size() != 1)
      return false;
  }
  return true;
}

ValueRange ValueRanges::of(int32_t reg) {
  const ValueRange most = full(function_.registers[static_cast<size_t>(reg)].type);
  if (const auto found = known_.find(reg); found != known_.end()) return found->second;
  const std::vector<int32_t>& made = definitions(reg);
  if (made.empty() || made.size() > kMostDefinitions || open_.size() > 200 || !open_.insert(reg).second)
    return most;
  if (made.size() > 1) {
    auto counted = counted_.find(reg);
    if (counted == counted_.end()) counted = counted_.emplace(reg, counted_range(*this, reg)).first;
    if (counted->second) return open_.erase(reg), *counted->second;
  }
  std::optional<ValueRange> all;
  for (const int32_t at : made) {
    const ptx::Instruction& in = function_.body[static_cast<size_t>(at)];
    const ValueRange one = in.operands[0].kind == Operand::Kind::reg ? result(in) : most;
    all = all ? united(*all, one) : one;
  }
  open_.erase(reg);
  const ValueRange cut{std::max(all->low, most.low), std::min(all->high, most.high)};
  if (open_.empty()) known_[reg] = cut;  // within a loop it may be wider than need be
  return cut;
}

ValueRange ValueRanges::read_by(int32_t instruction, int32_t reg) {
  const std::vector<int32_t>& made = definitions(reg);
  const std::pair place{instruction, reg};
  if (instruction < 0 || made.size() < 2 || made.size() > kMostDefinitions || reading_.size() > 50)
    return of(reg);
  if (const auto found = read_.find(place); found != read_.end()) return found->second;
  if (!reading_.insert(place).second) return of(reg);
  const ValueRange most = of(reg);
  const auto reaching = reaching_writes(*this, instruction, reg);
  std::optional<ValueRange> all;
  if (reaching && reaching->size() < made.size())
    for (const int32_t at : *reaching) {
      const ptx::Instruction& in = function_.body[static_cast<size_t>(at)];
      const ValueRange one = in.operands[0].kind == Operand::Kind::reg ? result(in) : most;
      all = all ? united(*all, one) : one;
    }
  reading_.erase(place);
  if (!all) return read_[place] = most;
  return read_[place] = {std::max(all->low, most.low), std::min(all->high, most.high)};
}

ValueRange ValueRanges::operand(const Operand& operand, int32_t read_by) {
  if (operand.kind == Operand::Kind::reg)
    return operand.negated ? ValueRange{0, 1} : this->read_by(read_by, operand.reg);
  if (operand.kind == Operand::Kind::immediate && !operand.is_float_literal)
    return {static_cast<int64_t>(operand.bits), static_cast<int64_t>(operand.bits)};
  if (operand.kind == Operand::Kind::special) return special_range(operand.name, function_.max_threads);
  return kAnything;
}

/// How many of its low bits are 0, at least, whatever it is.
int ValueRanges::low_zeros(const Operand& operand, int depth) const {
  constexpr int kDeepest = 6;
  if (operand.kind == Operand::Kind::immediate) return std::countr_zero(operand.bits);
  if (operand.kind != Operand::Kind::reg || operand.negated || depth > kDeepest) return 0;
  const std::vector<int32_t>& made = definitions(operand.reg);
  if (made.size() != 1) return 0;
  const ptx::Instruction& in = function_.body[static_cast<size_t>(made[0])];
  const auto zeros = [&](size_t at) { return low_zeros(in.operands[at], depth + 1); };
  switch (in.form.operation) {
    case Operation::mov:
      return in.operands[1].kind == Operand::Kind::reg ? zeros(1) : 0;
    case Operation::shl:
      return in.operands[2].kind == Operand::Kind::immediate && in.operands[2].bits < 32
                 ? zeros(1) + static_cast<int>(in.operands[2].bits)
                 : 0;
    case Operation::and_:
      return std::max(zeros(1), zeros(2));
    case Operation::add:
    case Operation::or_:
      return std::min(zeros(1), zeros(2));
    default:
      return 0;
  }
}

/// Lies every number of the range in the bits that the operand always leaves 0? Both without a sign.
bool ValueRanges::apart(const Operand& operand, const ValueRange& other) {
  return other.low >= 0 && operand.kind == Operand::Kind::reg && of(operand.reg).low >= 0 &&
         static_cast<int>(std::bit_width(static_cast<uint64_t>(other.high))) <= low_zeros(operand, 0);
}

/// An address in a buffer: a parameter that is one in all plans, or such a one moved by an offset.
bool ValueRanges::is_place(int32_t reg, int depth) {
  constexpr int kDeepest = 8;
  const std::vector<int32_t>& made = definitions(reg);
  if (made.size() != 1 || depth > kDeepest) return false;
  const ptx::Instruction& in = function_.body[static_cast<size_t>(made[0])];
  const auto is = [&](size_t at) {
    const Operand& from = in.operands[at];
    return from.kind == Operand::Kind::reg && is_place(from.reg, depth + 1);
  };
  switch (in.form.operation) {
    case Operation::ld:
      return roles_.places.contains(in.operands[1].parameter);
    case Operation::mov:
    case Operation::cvta:
      return is(1);
    case Operation::add:
      return is(1) != is(2);
    case Operation::selp: {
      const ValueRange p = operand(in.operands[3]);
      return p.single() ? is(p.low != 0 ? 1 : 2) : is(1) && is(2);
    }
    default:
      return false;
  }
}

/// Of a comparison of a 64-bit register with 0 that is decided by its being an address.
std::optional<bool> ValueRanges::equals_null(const ptx::Instruction& in) {
  if (in.operands.size() != 3 || ptx::bytes_of(in.form.type()) != 8) return std::nullopt;
  const Operand &a = in.operands[1], &b = in.operands[2];
  const bool null = b.kind == Operand::Kind::immediate && !b.is_float_literal && b.bits == 0;
  if (a.kind != Operand::Kind::reg || !null || !is_place(a.reg, 0)) return std::nullopt;
  if (in.form.comparison == Comparison::eq) return false;
  if (in.form.comparison == Comparison::ne) return true;
  return std::nullopt;
}

/// A load of a table that holds no negative number: its address comes from the table's and from numbers
/// alone. Two tables in one address would be outside either. `within`: addresses being looked at.
bool ValueRanges::reads_natural_table(const ptx::Instruction& load, std::set<int32_t>& within) const {
  const int32_t address = load.operands[1].reg;
  if (load.form.operation != Operation::ld || load.form.space != ptx::Space::global || address < 0 ||
      !within.insert(address).second)
    return false;
  std::set<int32_t> seen;
  bool table = false;
  const bool only = comes_from_natural_table(address, within, seen, table);
  within.erase(address);
  return only && table;
}

bool ValueRanges::comes_from_natural_table(int32_t reg, std::set<int32_t>& within, std::set<int32_t>& seen,
                                           bool& table) const {
  if (!seen.insert(reg).second) return true;
  const std::vector<int32_t>& made = definitions(reg);
  return !made.empty() && std::all_of(made.begin(), made.end(), [&](int32_t i) {
    const ptx::Instruction& in = function_.body[static_cast<size_t>(i)];
    const bool loads = in.form.operation == Operation::ld;
    if (loads && in.operands[1].parameter >= 0) {
      const int32_t parameter = in.operands[1].parameter;
      if (roles_.natural_tables.contains(parameter)) return table = true;
      return roles_.numbers.contains(parameter);
    }
    if (loads) return reads_natural_table(in, within);
    if (!is_integer_arithmetic(in)) return false;
    const std::vector<int32_t> read = read_registers(in);
    return std::all_of(read.begin(), read.end(),
                       [&](int32_t each) { return comes_from_natural_table(each, within, seen, table); });
  });
}

ValueRange ValueRanges::loaded(const ptx::Instruction& in, Type type, const ValueRange& most) const {
  const Operand& from = in.operands[1];
  if (from.parameter >= 0 && roles_.sizes.contains(from.parameter)) {
    const auto limit = roles_.most.find(from.parameter), least = roles_.least.find(from.parameter);
    const int64_t any = ptx::bytes_of(type) <= 4 ? kLargestNarrowSize : kLargestSize;
    return {least == roles_.least.end() ? 0 : least->second,
            limit == roles_.most.end() ? any : limit->second};
  }
  if (ptx::bytes_of(type) == 8 && roles_.nulls.contains(from.parameter)) return {0, 0};
  if (ptx::bytes_of(type) == 8 && roles_.places.contains(from.parameter)) return {kLeastAddress, INT64_MAX};
  if (type == Type::u16 || type == Type::u8) return {0, type == Type::u16 ? 65535 : 255};
  std::set<int32_t> within;
  if (ptx::bytes_of(type) == 8 && from.parameter < 0 && reads_natural_table(in, within))
    return {0, kLargestSize};
  return most;
}

/// The single instruction that writes a register, unguarded; null: there is none.
const ptx::Instruction* ValueRanges::only_maker(const Operand& operand) const {
  if (operand.kind != Operand::Kind::reg || operand.negated) return nullptr;
  const std::vector<int32_t>& made = definitions(operand.reg);
  if (made.size() != 1) return nullptr;
  const ptx::Instruction& in = function_.body[static_cast<size_t>(made[0])];
  return in.predicate < 0 && in.operands[0].kind == Operand::Kind::reg ? &in : nullptr;
}

/// x - (x & -2^n) of a special register, which does not change: what nvcc makes of x % 2^n, with a bias of 0
/// added to what is masked where x is not negative.
std::optional<ValueRange> ValueRanges::rest_of_blocks(const ptx::Instruction& in) {
  const ptx::Instruction *const x = only_maker(in.operands[1]), *const masked = only_maker(in.operands[2]);
  if (in.form.operation != Operation::sub || ptx::bytes_of(in.form.type()) != 4 || !x || !masked ||
      x->form.operation != Operation::mov || x->operands[1].kind != Operand::Kind::special ||
      masked->form.operation != Operation::and_ || masked->operands[2].kind != Operand::Kind::immediate)
    return std::nullopt;
  const auto rest = ~static_cast<uint32_t>(masked->operands[2].bits);
  if (!std::has_single_bit(rest + uint64_t{1})) return std::nullopt;
  const auto is_x = [&](const Operand& of) {
    return of.kind == Operand::Kind::reg && of.reg == in.operands[1].reg;
  };
  if (!is_x(masked->operands[1])) {
    const ptx::Instruction* const biased = only_maker(masked->operands[1]);
    const bool adds = biased && biased->form.operation == Operation::add && is_x(biased->operands[1]);
    if (!adds || operand(biased->operands[2]) != ValueRange{0, 0}) return std::nullopt;
  }
  return ValueRange{0, rest};
}

ValueRange ValueRanges::result(const ptx::Instruction& in, int32_t at) {
  const Form& form = in.form;
  const bool moves = form.operation == Operation::mov, converts = form.operation == Operation::cvt;
  const Type written = in.operands[0].reg >= 0
                           ? function_.registers[static_cast<size_t>(in.operands[0].reg)].type
                           : Type::none;
  const Type type = converts ? form.types[0] : form.type();
  if (type == Type::none || ptx::is_float(type) || written == Type::none) return full(written);
  const bool changes = form.rounding != ptx::Rounding::none || form.saturates || form.ftz || form.relu;
  if (converts && (changes || form.type_count != 2)) return full(written);
  if (form.operation == Operation::ld) return loaded(in, type, full(written));
  if (form.operation == Operation::setp)
    if (const std::optional<bool> holds = equals_null(in)) return {*holds, *holds};
  if (form.operation == Operation::sub)
    if (const std::optional<ValueRange> rest = rest_of_blocks(in)) return *rest;
  std::vector<ValueRange> x;
  const ptx::Instruction* const first = function_.body.data();
  const bool own = std::less_equal<>()(first, &in) && std::less<>()(&in, first + function_.body.size());
  const int32_t place = own ? static_cast<int32_t>(&in - first) : at;
  for (size_t i = 1; i < in.operands.size(); ++i) x.push_back(operand(in.operands[i], place));
  if (form.operation == Operation::setp)
    return in.operands.size() == 3 ? compared(form.comparison, x[0], x[1], ptx::is_unsigned(form.type()))
                                   : ValueRange{0, 1};
  if (x.empty() || (!moves && !converts && x.size() < 2)) return full(written);
  const bool joins = form.operation == Operation::or_ || form.operation == Operation::xor_;
  if (joins && (apart(in.operands[1], x[1]) || apart(in.operands[2], x[0])))
    return {x[0].low + x[1].low, x[0].high + x[1].high};
  // A 32-bit pattern that is not a number of its own is the register's whole range.
  const ValueRange made = combined(form, type, x), most = full(written);
  return made.low < most.low || made.high > most.high ? most : made;
}

}  // namespace assay
