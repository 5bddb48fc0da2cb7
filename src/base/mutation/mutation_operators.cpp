// The mutation operators: what a compiler's or a person's slip may do to one instruction.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "src/base/mutation/mutation.h"
#include "src/base/ptx/type.h"

namespace assay::ptx {
namespace {

using Ways = std::vector<std::string>;
using Operations = std::initializer_list<Operation>;

const Instruction& instruction_of(const MutationSite& site) {
  return site.function.body[static_cast<size_t>(site.instruction)];
}

const Form& form_of(const MutationSite& site) {
  return instruction_of(site).form;
}

bool is_one_of(const MutationSite& site, Operations operations) {
  return std::find(operations.begin(), operations.end(), form_of(site).operation) != operations.end();
}

/// Type of the single register that the instruction writes; none where it writes no or several ones.
Type written_type(const MutationSite& site) {
  const Instruction& in = instruction_of(site);
  const bool one = site.writes.size() == 1 && in.operands[0].kind == Operand::Kind::reg;
  return one ? site.function.registers[static_cast<size_t>(in.operands[0].reg)].type : Type::none;
}

/// The instruction with another opcode and other operands.
std::string rewritten(const MutationSite& site, std::string opcode, std::vector<std::string> operands) {
  return InstructionText{site.text.guard, std::move(opcode), std::move(operands)}.joined();
}
std::string renamed(const MutationSite& site, std::string opcode) {
  return rewritten(site, std::move(opcode), site.text.operands);
}

Ways drop_guard(const MutationSite& site) {
  if (site.text.guard.empty()) return {};
  InstructionText made = site.text;
  made.guard.clear();
  return {made.joined()};
}

Ways invert_guard(const MutationSite& site) {
  if (site.text.guard.empty()) return {};
  InstructionText made = site.text;
  made.guard = made.guard.starts_with("@!") ? "@" + made.guard.substr(2) : "@!" + made.guard.substr(1);
  return {made.joined()};
}

/// Nothing in its place: of instructions that write no register.
Ways dropped_if(bool applies) {
  return applies ? Ways{""} : Ways{};
}
Ways drop_branch(const MutationSite& site) {
  return dropped_if(!site.text.guard.empty() && form_of(site).operation == Operation::bra);
}
Ways drop_store(const MutationSite& site) {
  return dropped_if(is_one_of(site, {Operation::st, Operation::red, Operation::stmatrix}));
}
Ways drop_barrier(const MutationSite& site) {
  return dropped_if(is_one_of(site, {Operation::bar_sync, Operation::bar_arrive, Operation::bar_warp_sync,
                                     Operation::barrier_cluster}));
}
Ways drop_copy(const MutationSite& site) {
  return dropped_if(is_one_of(site, {Operation::cp_async, Operation::cp_async_bulk}) &&
                    form_of(site).space == Space::shared);
}
bool waits_for_groups(const MutationSite& site) {
  return is_one_of(site, {Operation::cp_async_wait_group, Operation::cp_async_bulk_wait_group,
                          Operation::wgmma_wait_group});
}
Ways drop_wait(const MutationSite& site) {
  return dropped_if(waits_for_groups(site) || form_of(site).operation == Operation::cp_async_wait_all);
}
Ways drop_commit(const MutationSite& site) {
  return dropped_if(is_one_of(site, {Operation::cp_async_commit_group, Operation::cp_async_bulk_commit_group,
                                     Operation::wgmma_commit_group}));
}

/// An immediate integer, written in decimal.
bool integer_of(const std::string& text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Ways wait_for_fewer(const MutationSite& site) {
  int64_t groups = 0;
  if (!waits_for_groups(site) || !integer_of(site.text.operands.at(0), &groups)) return {};
  return {rewritten(site, site.text.opcode, {std::to_string(groups + 1)})};
}

Ways shift_constant(const MutationSite& site) {
  using enum Operation;
  if (!is_one_of(site, {add,  sub, mul,  mad, div,  rem,  min, max, shl,  shr,
                        and_, or_, xor_, mov, setp, selp, bfe, bfi, shfl, shf}))
    return {};
  Ways ways;
  for (size_t i = 1; i < site.text.operands.size(); ++i) {
    int64_t value = 0;
    if (!integer_of(site.text.operands[i], &value) || form_of(site).type() == Type::pred) continue;
    if (form_of(site).operation == shfl && i > 2) continue;
    for (const int step : {1, -1}) {
      std::vector<std::string> operands = site.text.operands;
      operands[i] = std::to_string(value + step);
      ways.push_back(rewritten(site, site.text.opcode, operands));
    }
  }
  return ways;
}

/// By the bytes of one access.
Ways shift_address(const MutationSite& site) {
  const Form& form = form_of(site);
  const bool reaches = is_one_of(site, {Operation::ld, Operation::st, Operation::atom, Operation::red});
  if (!reaches || form.space == Space::param) return {};
  const int64_t bytes = int64_t{form.vector} * bytes_of(form.type());
  Ways ways;
  for (size_t i = 0; i < site.text.operands.size(); ++i) {
    const std::string& operand = site.text.operands[i];
    if (!operand.starts_with('[')) continue;
    const size_t sign = operand.find_first_of("+-");
    int64_t offset = 0;
    if (sign != operand.npos) {
      const size_t digits = operand.find_first_not_of("+ ", sign);
      if (!integer_of(operand.substr(digits, operand.size() - 1 - digits), &offset)) continue;
    }
    const std::string base = operand.substr(0, sign == operand.npos ? operand.size() - 1 : sign);
    for (const int64_t step : {bytes, -bytes}) {
      std::vector<std::string> operands = site.text.operands;
      operands[i] = fmt::format("{}+{}]", base, offset + step);
      ways.push_back(rewritten(site, site.text.opcode, operands));
    }
  }
  return ways;
}

/// 0 becomes 1, anything else twice itself.
Ways change_literal(const MutationSite& site) {
  Ways ways;
  for (size_t i = 1; i < site.text.operands.size(); ++i) {
    const std::string& operand = site.text.operands[i];
    uint32_t bits = 0;
    if (operand.size() != 10 || !(operand.starts_with("0f") || operand.starts_with("0F"))) continue;
    if (std::from_chars(operand.data() + 2, operand.data() + 10, bits, 16).ec != std::errc()) continue;
    const uint32_t exponent = bits >> 23 & 0xff;
    if (exponent >= 254) continue;
    std::vector<std::string> operands = site.text.operands;
    operands[i] = fmt::format("0f{:08X}", exponent == 0 ? bits | 0x3f800000u : bits + 0x00800000u);
    ways.push_back(rewritten(site, site.text.opcode, operands));
  }
  return ways;
}

/// Of what does not commute: the two that a reader may confuse. Of fma and mad the last factor and the
/// addend.
Ways swap_sources(const MutationSite& site) {
  using enum Operation;
  const Form& form = form_of(site);
  const bool late = is_one_of(site, {fma, mad});
  const bool symmetric = form.comparison == Comparison::eq || form.comparison == Comparison::ne;
  const bool first =
      is_one_of(site, {sub, div, rem, shl, shr, selp}) || (form.operation == setp && !symmetric);
  const size_t at = late ? 2 : 1;
  if ((!late && !first) || site.text.operands.size() < at + 2 || form.product == Product::wide) return {};
  std::vector<std::string> operands = site.text.operands;
  if (operands[at] == operands[at + 1]) return {};
  std::swap(operands[at], operands[at + 1]);
  return {rewritten(site, site.text.opcode, operands)};
}

/// "%rd12" of "[%rd12+128]"; empty where the base is no register.
std::string base_register(const std::string& operand) {
  if (!operand.starts_with("[%")) return {};
  return operand.substr(1, operand.find_first_of("+-]") - 1);
}

/// A copy from one space to another names both.
bool names_space(const Form& form, Space space) {
  const bool copies = form.operation == Operation::cp_async || form.operation == Operation::cp_async_bulk;
  return form.operation != Operation::cvta && (form.space == space || (copies && space == Space::global));
}

/// The address register of the nearest other access to the same memory, those before it first.
Ways swap_addresses(const MutationSite& site) {
  const Instruction& in = instruction_of(site);
  if (!is_one_of(site, {Operation::ld, Operation::st, Operation::ldmatrix})) return {};
  size_t address = 0;
  while (address < in.operands.size() && in.operands[address].kind != Operand::Kind::address) ++address;
  if (address == in.operands.size() || in.operands[address].reg < 0) return {};
  const Space space = in.form.space == Space::global ? Space::global : Space::shared;
  const auto other_base = [&](const Instruction& other) -> int32_t {
    if (!names_space(other.form, space)) return -1;
    for (const Operand& operand : other.operands)
      if (operand.kind == Operand::Kind::address && operand.reg >= 0 &&
          operand.reg != in.operands[address].reg)
        return operand.reg;
    return -1;
  };
  const auto& body = site.function.body;
  int32_t found = -1;
  for (int32_t i = site.instruction - 1; i >= 0 && found < 0; --i)
    found = other_base(body[static_cast<size_t>(i)]);
  for (size_t i = static_cast<size_t>(site.instruction) + 1; i < body.size() && found < 0; ++i)
    found = other_base(body[i]);
  if (found < 0) return {};
  const Register& reg = site.function.registers[static_cast<size_t>(found)];
  const Register& own = site.function.registers[static_cast<size_t>(in.operands[address].reg)];
  if (bytes_of(reg.type) != bytes_of(own.type)) return {};
  std::vector<std::string> operands = site.text.operands;
  const std::string old = base_register(operands[address]);
  if (old.empty()) return {};
  operands[address].replace(1, old.size(), reg.name);
  return {rewritten(site, site.text.opcode, operands)};
}

/// The first two of a vector of registers change places.
Ways swap_elements(const MutationSite& site) {
  if (form_of(site).operation == Operation::call) return {};
  Ways ways;
  for (size_t i = 0; i < site.text.operands.size(); ++i) {
    const std::string& operand = site.text.operands[i];
    if (!operand.starts_with('{')) continue;
    const size_t first = operand.find(','),
                 second = std::min(operand.find(',', first + 1), operand.size() - 1);
    if (first == operand.npos) continue;
    const auto blankless = [](std::string text) {
      std::erase(text, ' ');
      return text;
    };
    const std::string a = blankless(operand.substr(1, first - 1));
    const std::string b = blankless(operand.substr(first + 1, second - first - 1));
    if (a == b) continue;
    std::vector<std::string> operands = site.text.operands;
    operands[i] = fmt::format("{{{}, {}{}", b, a, operand.substr(second));
    ways.push_back(rewritten(site, site.text.opcode, operands));
  }
  return ways;
}

std::string with_operation(const MutationSite& site, Operation operation) {
  return with_part(site.text.opcode, name_of(form_of(site).operation), name_of(operation));
}

/// d = a b + c  ->  d = a b.
Ways fma_to_mul(const MutationSite& site) {
  if (!is_one_of(site, {Operation::fma, Operation::mad}) || site.text.operands.size() != 4) return {};
  const auto& o = site.text.operands;
  return {rewritten(site, with_operation(site, Operation::mul), {o[0], o[1], o[2]})};
}

/// d = a b + c  ->  d = a + c.
Ways fma_to_add(const MutationSite& site) {
  if (!is_one_of(site, {Operation::fma, Operation::mad}) || site.text.operands.size() != 4) return {};
  const Product product = form_of(site).product;
  if (product == Product::wide || product == Product::hi) return {};
  const auto& o = site.text.operands;
  return {rewritten(site, with_part(with_operation(site, Operation::add), "lo", ""), {o[0], o[1], o[3]})};
}

Ways exchanged(const MutationSite& site, Operation a, Operation b) {
  const Operation now = form_of(site).operation;
  if (now != a && now != b) return {};
  return {renamed(site, with_operation(site, now == a ? b : a))};
}

Ways add_to_sub(const MutationSite& site) {
  return exchanged(site, Operation::add, Operation::sub);
}
Ways max_to_min(const MutationSite& site) {
  return exchanged(site, Operation::max, Operation::min);
}
Ways and_to_or(const MutationSite& site) {
  return exchanged(site, Operation::and_, Operation::or_);
}
Ways shift_direction(const MutationSite& site) {
  const Form& form = form_of(site);
  const int bits = 8 * bytes_of(form.type());
  if (form.operation == Operation::shl) return {renamed(site, fmt::format("shr.u{}", bits))};
  if (form.operation == Operation::shr) return {renamed(site, fmt::format("shl.b{}", bits))};
  return {};
}

using Comparisons = std::initializer_list<std::pair<Comparison, Comparison>>;
Ways compared(const MutationSite& site, Comparisons exchanges) {
  const Form& form = form_of(site);
  for (const auto& [from, to] : exchanges)
    if (form.operation == Operation::setp && form.comparison == from)
      return {renamed(site, with_part(site.text.opcode, name_of(from), name_of(to)))};
  return {};
}

/// lt <-> le, gt <-> ge, of unsigned and unordered comparisons too.
Ways compare_edge(const MutationSite& site) {
  using enum Comparison;
  return compared(site, {{lt, le},
                         {le, lt},
                         {gt, ge},
                         {ge, gt},
                         {lo, ls},
                         {ls, lo},
                         {hi, hs},
                         {hs, hi},
                         {ltu, leu},
                         {leu, ltu},
                         {gtu, geu},
                         {geu, gtu}});
}
Ways compare_opposite(const MutationSite& site) {
  using enum Comparison;
  return compared(site, {{lt, ge},
                         {ge, lt},
                         {gt, le},
                         {le, gt},
                         {eq, ne},
                         {ne, eq},
                         {lo, hs},
                         {hs, lo},
                         {hi, ls},
                         {ls, hi},
                         {ltu, ge},
                         {geu, lt},
                         {gtu, le},
                         {leu, gt},
                         {equ, ne},
                         {neu, eq}});
}

Ways fix_predicate(const MutationSite& site) {
  if (form_of(site).operation != Operation::setp || written_type(site) != Type::pred) return {};
  const std::string& p = site.text.operands[0];
  return {rewritten(site, "mov.pred", {p, "1"}), rewritten(site, "mov.pred", {p, "0"})};
}

std::string move_of(Type type) {
  const int bits = 8 * bytes_of(type);
  return type == Type::pred                       ? "mov.pred"
         : type == Type::f32 || type == Type::f64 ? fmt::format("mov.f{}", bits)
                                                  : fmt::format("mov.b{}", bits);
}

Ways fix_choice(const MutationSite& site) {
  if (form_of(site).operation != Operation::selp) return {};
  const auto& o = site.text.operands;
  const std::string move = with_operation(site, Operation::mov);
  return {rewritten(site, move, {o[0], o[1]}), rewritten(site, move, {o[0], o[2]})};
}

Ways drop_sign(const MutationSite& site) {
  if (!is_one_of(site, {Operation::neg, Operation::abs, Operation::not_})) return {};
  return {rewritten(site, move_of(written_type(site)), site.text.operands)};
}

Ways drop_function(const MutationSite& site) {
  using enum Operation;
  if (!is_one_of(site, {ex2, lg2, rcp, sqrt, rsqrt, tanh, sin, cos})) return {};
  if (written_type(site) == Type::none) return {};
  return {rewritten(site, move_of(written_type(site)), site.text.operands)};
}

/// rn -> rz, rp of arithmetic and conversions whose result is a float.
Ways change_rounding(const MutationSite& site) {
  using enum Operation;
  const Rounding rounding = form_of(site).rounding;
  if (!is_one_of(site, {add, sub, mul, fma, mad, div, sqrt, rcp, cvt})) return {};
  if (rounding != Rounding::rn && rounding != Rounding::rna) return {};
  return {renamed(site, with_part(site.text.opcode, name_of(rounding), "rz")),
          renamed(site, with_part(site.text.opcode, name_of(rounding), "rp"))};
}

/// The result rounded to bf16 and back.
Ways round_to_bf16(const MutationSite& site) {
  using enum Operation;
  if (!is_one_of(site, {add, sub, mul, fma, mad, div, sqrt, rcp, ex2, lg2, tanh, rsqrt})) return {};
  if (written_type(site) != Type::f32) return {};
  const std::string& d = site.text.operands[0];
  const std::string guard = site.text.guard.empty() ? "" : site.text.guard + " ";
  return {fmt::format(
      "{} {{ .reg .b16 %assay_low, %assay_high; {}cvt.rn.bf16.f32 %assay_high, {}; mov.b16 %assay_low, 0; "
      "{}mov.b32 {}, {{%assay_low, %assay_high}}; }}",
      site.text.joined(), guard, d, guard, d)};
}

Ways zero_result(const MutationSite& site) {
  const Type type = written_type(site);
  if (type == Type::none || type == Type::pred || bytes_of(type) > 8) return {};
  const char* zero = type == Type::f32 ? "0f00000000" : type == Type::f64 ? "0d0000000000000000" : "0";
  if (form_of(site).operation == Operation::mov && site.text.operands.at(1) == zero) return {};
  return {rewritten(site, move_of(type), {site.text.operands[0], zero})};
}

}  // namespace

const std::vector<MutationOperator>& mutation_operators() {
  static const std::vector<MutationOperator> rows = {
      {"drop-guard", "guarded ones", "runs whether its predicate holds or not", drop_guard},
      {"invert-guard", "guarded ones", "runs where its predicate does not hold", invert_guard},
      {"drop-branch", "guarded bra", "is never taken", drop_branch},
      {"drop-store", "st, red, stmatrix", "is left out", drop_store},
      {"drop-barrier", "bar, barrier", "is left out", drop_barrier},
      {"drop-copy", "cp.async", "is left out", drop_copy},
      {"drop-wait", "cp.async.wait_*, wgmma.wait_group", "is left out", drop_wait},
      {"drop-commit", "cp.async.commit_group, wgmma.commit_group", "is left out", drop_commit},
      {"wait-for-fewer", "cp.async.wait_group, wgmma.wait_group", "one more group may stay in flight",
       wait_for_fewer},
      {"shift-constant", "integer arithmetic, logic, mov, setp, selp, shfl",
       "an immediate integer, one more or one less", shift_constant},
      {"shift-address", "ld, st, atom, red", "the access before, or the one after", shift_address},
      {"change-literal", "all with an fp32 literal", "twice the literal; 1 for 0", change_literal},
      {"swap-sources", "sub, div, rem, shl, shr, selp, setp, fma, mad", "two sources change places",
       swap_sources},
      {"swap-addresses", "ld, st, ldmatrix", "the address register of a neighbouring access", swap_addresses},
      {"swap-elements", "vectors of registers", "the first two change places", swap_elements},
      {"fma-to-mul", "fma, mad", "without its addend", fma_to_mul},
      {"fma-to-add", "fma, mad", "without its second factor", fma_to_add},
      {"add-to-sub", "add, sub", "each for the other", add_to_sub},
      {"max-to-min", "max, min", "each for the other", max_to_min},
      {"and-to-or", "and, or", "each for the other", and_to_or},
      {"shift-direction", "shl, shr", "each for the other", shift_direction},
      {"compare-edge", "setp", "lt for le, gt for ge, and back", compare_edge},
      {"compare-opposite", "setp", "the opposite comparison", compare_opposite},
      {"fix-predicate", "setp", "always true, or always false", fix_predicate},
      {"fix-choice", "selp", "always the first, or always the second", fix_choice},
      {"drop-sign", "neg, abs, not", "a plain copy", drop_sign},
      {"drop-function", "ex2, lg2, rcp, sqrt, rsqrt, tanh, sin, cos", "a plain copy", drop_function},
      {"change-rounding", "float arithmetic, cvt", "toward zero, or up", change_rounding},
      {"round-to-bf16", "float arithmetic that gives f32", "its result rounded to bf16", round_to_bf16},
      {"zero-result", "all that write one register", "zero", zero_result},
  };
  return rows;
}

}  // namespace assay::ptx
