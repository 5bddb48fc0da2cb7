#include "src/base/watch/accumulators.h"

#include <fmt/format.h>

namespace assay::watch {
namespace {

std::string nan_word(int place) {
  return fmt::format("%assay_nan{}", place / 32);
}
std::string infinite_word(int place) {
  return fmt::format("%assay_inf{}", place / 32);
}
uint32_t bit(int place) {
  return 1u << place % 32;
}

}  // namespace

void Accumulators::add(const WatchedInstruction& product) {
  for (const FloatOperand& result : product.results) {
    if (result.operand->kind != ptx::Operand::Kind::reg) continue;
    const int halves = ptx::is_packed(result.type) ? 2 : 1;
    if (!first_.try_emplace(result.operand->reg, count_).second) continue;
    types_[result.operand->reg] = result.type;
    count_ += halves;
  }
}

void Accumulators::forget(const std::vector<int32_t>& registers, const std::string& guard, Code& code) {
  std::map<int, uint32_t> bits;
  for (const int32_t reg : registers)
    for (int half = 0; half < (ptx::is_packed(types_.at(reg)) ? 2 : 1); ++half)
      bits[place(reg, half) / 32] |= bit(place(reg, half));
  for (const auto& [word, those] : bits) {
    if (guard.empty())
      forgotten_[word] |= those;
    else
      for (const std::string& name : {nan_word(32 * word), infinite_word(32 * word)})
        code.line(fmt::format("{0}and.b32 {1}, {1}, {2:#x}", guard, name, ~those));
  }
}

void Accumulators::emit(Code& code) {
  for (const auto& [word, bits] : forgotten_)
    for (const std::string& name : {nan_word(32 * word), infinite_word(32 * word)})
      code.line(fmt::format("and.b32 {0}, {0}, {1:#x}", name, ~bits));
  forgotten_.clear();
}

void Accumulators::require_number(int32_t reg, int half, const std::string& predicate,
                                  const std::string& scratch, Code& code) const {
  const int at = place(reg, half);
  code.line(fmt::format("and.b32 {}, {}, {:#x}", scratch, nan_word(at), bit(at)));
  code.line(fmt::format("setp.eq.and.b32 {0}, {1}, 0, {0}", predicate, scratch));
}

void Accumulators::require_finite(int32_t reg, int half, const std::string& predicate,
                                  const std::string& scratch, Code& code) const {
  const int at = place(reg, half);
  require_number(reg, half, predicate, scratch, code);
  code.line(fmt::format("and.b32 {}, {}, {:#x}", scratch, infinite_word(at), bit(at)));
  code.line(fmt::format("setp.eq.and.b32 {0}, {1}, 0, {0}", predicate, scratch));
}

void Accumulators::set(int32_t reg, int half, const std::string& is_nan, const std::string& is_infinite,
                       Code& code) const {
  const int at = place(reg, half);
  for (const auto& [word, is] :
       {std::pair{nan_word(at), is_nan}, std::pair{infinite_word(at), is_infinite}}) {
    code.line(fmt::format("and.b32 {0}, {0}, {1:#x}", word, ~bit(at)));
    code.line(fmt::format("@{0} or.b32 {1}, {1}, {2:#x}", is, word, bit(at)));
  }
}

std::string Accumulators::declarations() const {
  return count_ ? fmt::format("\t.reg .b32 %assay_nan<{0}>, %assay_inf<{0}>;\n", words()) : "";
}

void Accumulators::begin(Code& code) const {
  for (int word = 0; word < words(); ++word)
    for (const std::string& name : {nan_word(32 * word), infinite_word(32 * word)})
      code.line(fmt::format("mov.b32 {}, 0", name));
}

}  // namespace assay::watch
