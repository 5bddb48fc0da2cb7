#include "src/campaign/mutate/value_range.h"

#include <algorithm>
#include <string_view>

#include "src/base/ptx/type.h"

namespace assay {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr ValueRange kAnything;
/// No case has tensors of more bytes (src/case/case.cpp), so that no number of anything in them is above.
constexpr int64_t kLargestSize = int64_t{1} << 40;
/// Those of 32 bits are heads, channels, slots and counts of their blocks, which end there too.
constexpr int64_t kLargestNarrowSize = int64_t{1} << 30;

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= opcode.size();) {
    const size_t end = std::min(opcode.find('.', at), opcode.size());
    parts.push_back(opcode.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

void collect(const Operand& operand, std::vector<int32_t>& registers) {
  if (operand.reg >= 0) registers.push_back(operand.reg);
  for (const Operand& element : operand.elements) collect(element, registers);
}

bool writes_registers(const ptx::Instruction& in) {
  static const std::set<std::string, std::less<>> none{
      "st", "red",  "bra",    "brx",   "ret",      "exit", "bar",      "barrier",
      "cp", "trap", "membar", "fence", "prefetch", "call", "stmatrix", "wgmma"};
  const std::string base = in.opcode.substr(0, in.opcode.find('.'));
  return !in.operands.empty() && !none.contains(base);
}

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
ValueRange compared(const std::string& comparison, const ValueRange& a, const ValueRange& b,
                    bool is_unsigned) {
  if (is_unsigned && (a.low < 0 || b.low < 0)) return {0, 1};
  const auto decided = [](bool always, bool never) {
    return always ? ValueRange{1, 1} : never ? ValueRange{0, 0} : ValueRange{0, 1};
  };
  if (comparison == "lt" || comparison == "lo") return decided(a.high < b.low, a.low >= b.high);
  if (comparison == "le" || comparison == "ls") return decided(a.high <= b.low, a.low > b.high);
  if (comparison == "gt" || comparison == "hi") return decided(a.low > b.high, a.high <= b.low);
  if (comparison == "ge" || comparison == "hs") return decided(a.low >= b.high, a.high < b.low);
  const bool apart = a.high < b.low || b.high < a.low, same = a.single() && a == b;
  if (comparison == "eq") return decided(same, apart);
  if (comparison == "ne") return decided(apart, same);
  return {0, 1};
}

/// Interval of one integer operation on intervals, by the opcode's parts.
ValueRange combined(const std::vector<std::string>& parts, Type type, const std::vector<ValueRange>& x) {
  const std::string& base = parts[0];
  const int bits = 8 * ptx::bytes_of(type);
  const bool is_unsigned = parts.back().starts_with('u');
  const bool natural = std::all_of(x.begin(), x.end(), [](const ValueRange& r) { return r.low >= 0; });
  const bool wide = parts.size() > 1 && parts[1] == "wide", low = parts.size() > 1 && parts[1] == "lo";
  if (is_unsigned && !natural && base != "mov" && base != "cvt" && base != "selp") {
    if (base == "shr" && bits == 32 && x.size() == 2 && x[1].single() && x[1].low > 0 && x[1].low < 32)
      return {0, int64_t{0xffffffff} >> x[1].low};
    return kAnything;
  }
  if (base == "mov") return x[0];
  if (base == "cvt") return fitting(x[0].low, x[0].high, bits);
  if (base == "add") return fitting(Wide{x[0].low} + x[1].low, Wide{x[0].high} + x[1].high, bits);
  if (base == "sub") return fitting(Wide{x[0].low} - x[1].high, Wide{x[0].high} - x[1].low, bits);
  if (base == "mul" && (low || wide)) return products(x[0], x[1], wide ? 2 * bits : bits);
  if (base == "mad" && (low || wide)) {
    const int of = wide ? 2 * bits : bits;
    const ValueRange p = products(x[0], x[1], of);
    return p == kAnything ? p : fitting(Wide{p.low} + x[2].low, Wide{p.high} + x[2].high, of);
  }
  if (base == "min") return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
  if (base == "max") return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
  if (base == "selp") return united(x[0], x[1]);
  const bool constant = x.size() == 2 && x[1].single() && x[1].low >= 0;
  if (base == "shl" && constant && x[1].low < 63)
    return products(x[0], {int64_t{1} << x[1].low, int64_t{1} << x[1].low}, bits);
  if (base == "shr" && constant && (natural || parts[1].starts_with('s'))) {
    const int64_t count = std::min<int64_t>(x[1].low, bits - (is_unsigned ? 0 : 1));
    return count > 63 ? ValueRange{0, 0}
                      : ValueRange{x[0].low >> std::min<int64_t>(count, 63),
                                   x[0].high >> std::min<int64_t>(count, 63)};
  }
  if (base == "shr" && x[0].low >= 0) return {0, x[0].high};  // whatever the count
  if (base == "and" && x[0].low >= 0 && x[1].low >= 0) return {0, std::min(x[0].high, x[1].high)};
  if (base == "and" && (x[0].low >= 0 || x[1].low >= 0)) return {0, x[0].low >= 0 ? x[0].high : x[1].high};
  if ((base == "or" || base == "xor") && natural) return {0, all_ones_above(std::max(x[0].high, x[1].high))};
  if (base == "div" && natural && x[1].low > 0) return {x[0].low / x[1].high, x[0].high / x[1].low};
  if (base == "rem" && natural && x[1].low > 0) return {0, std::min(x[0].high, x[1].high - 1)};
  return kAnything;
}

}  // namespace

std::vector<int32_t> written_registers(const ptx::Instruction& in) {
  std::vector<int32_t> registers;
  if (writes_registers(in)) collect(in.operands[0], registers);
  return registers;
}

std::vector<int32_t> read_registers(const ptx::Instruction& in) {
  std::vector<int32_t> registers;
  if (in.predicate >= 0) registers.push_back(in.predicate);
  for (size_t i = writes_registers(in) ? 1 : 0; i < in.operands.size(); ++i)
    collect(in.operands[i], registers);
  return registers;
}

ValueRanges::ValueRanges(const ptx::Function& function, ParameterRoles roles)
    : function_(function),
      roles_(std::move(roles)),
      definitions_(function.registers.size()),
      uses_(function.registers.size()) {
  for (size_t i = 0; i < function.body.size(); ++i) {
    for (const int32_t reg : written_registers(function.body[i]))
      definitions_[static_cast<size_t>(reg)].push_back(static_cast<int32_t>(i));
    for (const int32_t reg : read_registers(function.body[i]))
      uses_[static_cast<size_t>(reg)].push_back(static_cast<int32_t>(i));
  }
}

ValueRange ValueRanges::of(int32_t reg) {
  const ValueRange most = full(function_.registers[static_cast<size_t>(reg)].type);
  if (const auto found = known_.find(reg); found != known_.end()) return found->second;
  const std::vector<int32_t>& made = definitions(reg);
  if (made.empty() || made.size() > 8 || open_.size() > 200 || !open_.insert(reg).second) return most;
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

ValueRange ValueRanges::operand(const Operand& operand) {
  if (operand.kind == Operand::Kind::reg) return operand.negated ? ValueRange{0, 1} : of(operand.reg);
  if (operand.kind == Operand::Kind::immediate && !operand.is_float_literal)
    return {static_cast<int64_t>(operand.bits), static_cast<int64_t>(operand.bits)};
  if (operand.kind == Operand::Kind::special) return special_range(operand.name, function_.max_threads);
  return kAnything;
}

/// A load of a table that holds no negative number: its address comes from the table's and from numbers alone. Two
/// tables in one address would be outside either. `within`: addresses being looked at.
bool ValueRanges::reads_natural_table(const ptx::Instruction& load, std::set<int32_t>& within) const {
  const int32_t address = load.operands[1].reg;
  if (!load.opcode.starts_with("ld.global.") || address < 0 || !within.insert(address).second) return false;
  std::set<int32_t> seen;
  bool table = false;
  const bool only = comes_from_natural_table(address, within, seen, table);
  within.erase(address);
  return only && table;
}

bool ValueRanges::comes_from_natural_table(int32_t reg, std::set<int32_t>& within, std::set<int32_t>& seen,
                                           bool& table) const {
  static const std::set<std::string, std::less<>> arithmetic{"mov", "add",  "sub",  "mul", "mad", "div", "rem",
                                                             "min", "max",  "shl",  "shr", "and", "or",  "xor",
                                                             "cvt", "cvta", "selp", "bfe", "bfi"};
  if (!seen.insert(reg).second) return true;
  const std::vector<int32_t>& made = definitions(reg);
  return !made.empty() && std::all_of(made.begin(), made.end(), [&](int32_t i) {
    const ptx::Instruction& in = function_.body[static_cast<size_t>(i)];
    const std::vector<std::string> parts = parts_of(in.opcode);
    if (parts[0] == "ld" && in.operands[1].parameter >= 0) {
      const int32_t parameter = in.operands[1].parameter;
      if (roles_.natural_tables.contains(parameter)) return table = true;
      return roles_.numbers.contains(parameter);
    }
    if (parts[0] == "ld") return reads_natural_table(in, within);
    const auto type = ptx::type_named(parts.back());
    if (!arithmetic.contains(parts[0]) || (type && ptx::is_float(*type))) return false;
    const std::vector<int32_t> read = read_registers(in);
    return std::all_of(read.begin(), read.end(), [&](int32_t each) {
      return comes_from_natural_table(each, within, seen, table);
    });
  });
}

ValueRange ValueRanges::loaded(const ptx::Instruction& in, Type type, const ValueRange& most) const {
  const Operand& from = in.operands[1];
  if (from.parameter >= 0 && roles_.sizes.contains(from.parameter)) {
    const auto limit = roles_.most.find(from.parameter);
    const int64_t any = ptx::bytes_of(type) <= 4 ? kLargestNarrowSize : kLargestSize;
    return {0, limit == roles_.most.end() ? any : limit->second};
  }
  if (type == Type::u16 || type == Type::u8) return {0, type == Type::u16 ? 65535 : 255};
  std::set<int32_t> within;
  if (ptx::bytes_of(type) == 8 && from.parameter < 0 && reads_natural_table(in, within)) return {0, kLargestSize};
  return most;
}

ValueRange ValueRanges::result(const ptx::Instruction& in) {
  const std::vector<std::string> parts = parts_of(in.opcode);
  const Type written = in.operands[0].reg >= 0
                           ? function_.registers[static_cast<size_t>(in.operands[0].reg)].type
                           : Type::none;
  const auto type =
      ptx::type_named(parts[0] == "cvt" && parts.size() > 1 ? parts[parts.size() - 2] : parts.back());
  if (!type || ptx::is_float(*type) || written == Type::none) return full(written);
  if (parts[0] == "cvt" && !ptx::type_named(parts[1])) return full(written);
  if (parts[0] == "ld") return loaded(in, *type, full(written));
  std::vector<ValueRange> x;
  for (size_t i = 1; i < in.operands.size(); ++i) x.push_back(operand(in.operands[i]));
  if (parts[0] == "setp")
    return in.operands.size() == 3 ? compared(parts[1], x[0], x[1], parts.back().starts_with('u'))
                                   : ValueRange{0, 1};
  if (x.empty() || (parts[0] != "mov" && parts[0] != "cvt" && x.size() < 2)) return full(written);
  // A 32-bit pattern that is not a number of its own is the register's whole range.
  const ValueRange made = combined(parts, *type, x), most = full(written);
  return made.low < most.low || made.high > most.high ? most : made;
}

}  // namespace assay
