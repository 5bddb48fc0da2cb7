#include "src/base/watch/scaling.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace assay::watch {
namespace {

/// Products, and of each factor: fewer cost as much as keeping what they begin with.
constexpr size_t kLeast = 8, kLeastOfFactor = 4;

/// Of two f32, each time, rounded to nearest.
bool is_product(const ptx::Instruction& in, const WatchedInstruction& what) {
  const auto is_float = [](const FloatOperand& operand) {
    return operand.type == ptx::Type::f32 && operand.operand->kind == ptx::Operand::Kind::reg;
  };
  const ptx::Form& form = in.form;
  const bool multiplies = form.operation == ptx::Operation::mul && form.type_count == 1 &&
                          (form.rounding == ptx::Rounding::none || form.rounding == ptx::Rounding::rn) &&
                          !form.saturates && !form.packed && !form.float_pairs;
  return multiplies && what.kind == WatchedInstruction::Kind::scalar && in.predicate < 0 &&
         what.sources.size() == 2 && what.results.size() == 1 && is_float(what.results[0]) &&
         is_float(what.sources[0]) && is_float(what.sources[1]);
}

}  // namespace

std::optional<Scaling> scaling_from(const ptx::Function& f, const std::vector<WatchedInstruction>& watched,
                                    int32_t from, const std::vector<bool>& starts,
                                    const std::vector<int>& depth, const std::vector<bool>& scoped) {
  std::set<int32_t> written;
  const auto begin = static_cast<size_t>(from);
  size_t end = begin;  // behind the last one that stands in the function's own scope
  for (size_t i = begin; i < f.body.size() && is_product(f.body[i], watched[i]); ++i) {
    if (i > begin && starts[i]) break;
    const auto is_known = [&](const FloatOperand& source) {
      const int32_t reg = source.operand->reg;
      return !written.contains(reg) && !scoped[static_cast<size_t>(reg)];
    };
    if (!is_known(watched[i].sources[0]) || !is_known(watched[i].sources[1])) break;
    written.insert(watched[i].results[0].operand->reg);
    if (depth[i] == 1) end = i + 1;
  }
  if (depth[begin] > 1 || end - begin < kLeast) return std::nullopt;
  std::map<int32_t, size_t> uses;
  for (size_t i = begin; i < end; ++i)
    for (const FloatOperand& source : watched[i].sources) ++uses[source.operand->reg];
  Scaling made;
  made.end = static_cast<int32_t>(end);
  for (size_t i = begin; i < end; ++i) {
    int32_t x = watched[i].sources[0].operand->reg, factor = watched[i].sources[1].operand->reg;
    if (uses[x] > uses[factor]) std::swap(x, factor);
    made.of[factor].push_back(x);
  }
  for (const auto& [factor, all] : made.of)
    if (all.size() < kLeastOfFactor) return std::nullopt;
  return made;
}

std::string test_of_scaling(const Scaling& scaling, const ptx::Function& f, AddedRegisters& registers,
                            Code& code) {
  using Class = AddedRegisters::Class;
  const auto name = [&](int32_t reg) { return f.registers[static_cast<size_t>(reg)].name; };
  const std::string found = registers.make(Class::predicate);
  bool first = true;
  for (const auto& [factor, all] : scaling.of) {
    const std::string sum = registers.make(Class::word), magnitude = registers.make(Class::word);
    code.line(fmt::format("abs.f32 {}, {}", sum, name(all[0])));
    for (size_t i = 1; i < all.size(); ++i) {
      code.line(fmt::format("abs.f32 {}, {}", magnitude, name(all[i])));
      code.line(fmt::format("add.rn.f32 {0}, {0}, {1}", sum, magnitude));
    }
    code.line(fmt::format("mul.rn.f32 {0}, {0}, {1}", sum, name(factor)));
    code.line(fmt::format("abs.f32 {0}, {0}", sum));
    code.line(fmt::format("setp.geu{}.f32 {}, {}, 0f7F800000{}", first ? "" : ".or", found, sum,
                          first ? "" : ", " + found));
    first = false;
  }
  return found;
}

}  // namespace assay::watch
