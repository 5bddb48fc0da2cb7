// The test where a segment ends: results folded into few values that are finite only if all are.
#include <fmt/format.h>

#include "src/base/watch/segment.h"

namespace assay::watch {

using ptx::Type;
using Class = AddedRegisters::Class;

namespace {

/// "setp.geu.f32 p, ..." of the first test, "setp.geu.or.f32 p, ..., p" of those after it.
std::string compared(const char* how, const char* type, const std::string& found, bool first,
                     const std::string& operands) {
  return fmt::format("setp.{}{}.{} {}, {}{}", how, first ? "" : ".or", type, found, operands,
                     first ? "" : ", " + found);
}

}  // namespace

/// Writes the test; returns the predicate that some result is not finite, or, rarely, that some are so large
/// that their product is not. `closely`: without exponents of -infinity that are none of their own making.
std::string Segment::test(bool closely, Code& code) {
  std::vector<Folded> floats, doubles, halves[4];
  std::vector<const Value*> exponents;
  constexpr Type kHalves[] = {Type::f16x2, Type::bf16x2, Type::f16, Type::bf16};
  const auto fold = [&](const Part& part, const std::string& guard) {
    const Value& value = this->value(part);
    if (!value.is_tested()) return;
    if (closely && value.may_be_masked) return exponents.push_back(&value);
    const Folded one{&value, guard};
    if (value.type == Type::f64) doubles.push_back(one);
    if (value.type == Type::f32 || value.type == Type::tf32) floats.push_back(one);
    for (size_t i = 0; i < 4; ++i)
      if (value.type == kHalves[i]) halves[i].push_back(one);
  };
  for (const Item& item : items_) {
    const std::string guard = item.guard < 0
                                  ? ""
                                  : fmt::format("@{}{} ", item.instruction->predicate_negated ? "!" : "",
                                                values_[static_cast<size_t>(item.guard)].name);
    for (const Part& result : item.results) fold(result, guard);
  }
  for (const Part& state : states_) fold(state, "");
  const std::string found = added(Class::predicate);
  bool first = true;
  if (!floats.empty()) fold_floats(floats, found, first, code), first = false;
  if (!doubles.empty()) fold_doubles(doubles, found, first, code), first = false;
  for (size_t i = 0; i < 4; ++i)
    if (!halves[i].empty()) fold_halves(halves[i], kHalves[i], found, first, code), first = false;
  if (!exponents.empty()) fold_exponents(exponents, found, first, code);
  return found;
}

/// Whether one is -infinity and what it begins with is not: their difference is NaN where both are, which a
/// minimum leaves out.
void Segment::fold_exponents(const std::vector<const Value*>& all, const std::string& found, bool first,
                             Code& code) {
  const std::string least = added(Class::word), difference = added(Class::word);
  code.line(fmt::format("mov.b32 {}, 0", least));
  for (const Value* one : all) {
    code.line(fmt::format("sub.rn.f32 {}, {}, {}", difference, one->name,
                          values_[static_cast<size_t>(one->first)].name));
    code.line(fmt::format("min.f32 {0}, {0}, {1}", least, difference));
  }
  code.line(compared("eq", "f32", found, first, least + ", 0fFF800000"));
  for (const Value* one : all)
    if (!one->is_told) code.line(compared("geu", "f32", found, false, one->name + ", 0f7F800000"));
}

/// Products of two, summed: a factor or term that is not finite leaves no finite sum.
void Segment::fold_floats(const std::vector<Folded>& all, const std::string& found, bool first, Code& code) {
  std::string sum, waiting;
  for (const Folded& one : all) {
    if (!one.guard.empty()) continue;
    if (waiting.empty()) {
      waiting = one.value->name;
      continue;
    }
    const bool begins = sum.empty();
    if (begins) sum = added(Class::word);
    code.line(begins ? fmt::format("mul.rn.f32 {}, {}, {}", sum, waiting, one.value->name)
                     : fmt::format("fma.rn.f32 {0}, {1}, {2}, {0}", sum, waiting, one.value->name));
    waiting.clear();
  }
  for (const Folded& one : all) {
    if (one.guard.empty()) continue;
    if (sum.empty()) sum = added(Class::word), code.line(fmt::format("mov.b32 {}, 0", sum));
    code.line(fmt::format("{0}add.rn.f32 {1}, {1}, {2}", one.guard, sum, one.value->name));
  }
  if (sum.empty())
    sum = waiting;
  else if (!waiting.empty())
    code.line(fmt::format("add.rn.f32 {0}, {0}, {1}", sum, waiting));
  const std::string magnitude = added(Class::word);
  code.line(fmt::format("abs.f32 {}, {}", magnitude, sum));
  code.line(compared("geu", "f32", found, first, magnitude + ", 0f7F800000"));
}

/// The largest upper word without its sign: arithmetic on doubles is slow on many GPUs.
void Segment::fold_doubles(const std::vector<Folded>& all, const std::string& found, bool first, Code& code) {
  const std::string largest = added(Class::word), low = added(Class::word), high = added(Class::word);
  code.line(fmt::format("mov.b32 {}, 0", largest));
  for (const Folded& one : all) {
    code.line(fmt::format("mov.b64 {{{}, {}}}, {}", low, high, one.value->name));
    code.line(fmt::format("and.b32 {0}, {0}, 0x7FFFFFFF", high));
    code.line(fmt::format("{0}max.u32 {1}, {1}, {2}", one.guard, largest, high));
  }
  code.line(compared("ge", "u32", found, first, largest + ", 0x7FF00000"));
}

/// The sum of all times 0: 0 or NaN.
void Segment::fold_halves(const std::vector<Folded>& all, Type type, const std::string& found, bool first,
                          Code& code) {
  const bool packed = ptx::is_packed(type);
  const Class of = packed ? Class::word : Class::half;
  const std::string zero = added(of), sum = added(of);
  const char* const bits = packed ? "b32" : "b16";
  code.line(fmt::format("mov.{} {}, 0", bits, zero));
  code.line(fmt::format("mov.{} {}, 0", bits, sum));
  for (const Folded& one : all)
    code.line(fmt::format("{0}fma.rn.{1} {2}, {3}, {4}, {2}", one.guard, name_of(type), sum, one.value->name,
                          zero));
  code.line(compared("ne", bits, found, first, sum + ", 0"));
}

}  // namespace assay::watch
