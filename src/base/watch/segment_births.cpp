// The code aside: which instructions of a segment made NaN or infinities out of what is neither, and their
// notes in the buffer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "src/base/watch/birth_buffer.h"
#include "src/base/watch/float_type.h"
#include "src/base/watch/segment.h"

namespace assay::watch {

using ptx::Type;
using Class = AddedRegisters::Class;

namespace {

const char* suffix(bool wide) {
  return wide ? "f64" : "f32";
}
const char* infinity(bool wide) {
  return wide ? "0d7FF0000000000000" : "0f7F800000";
}
std::string list(const std::vector<std::string>& names) {
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

}  // namespace

void Segment::begin_births(Code& code) {
  mask_ = added(Class::wide), zero_half_ = added(Class::half), zero_word_ = added(Class::word);
  code.line(fmt::format("mov.b64 {}, 0", mask_));
  code.line(fmt::format("mov.b16 {}, 0", zero_half_));
  code.line(fmt::format("mov.b32 {}, 0", zero_word_));
}

std::vector<Segment::Element> Segment::elements(const Part& part, Code& code) {
  if (part.value >= 0) return elements(values_[static_cast<size_t>(part.value)].name, part.type, code);
  const double value = value_of(part.type, part.literal);
  if (std::isfinite(value)) return {{"", false, true}};
  const std::string name = added(Class::word);
  code.line(fmt::format("mov.b32 {}, {}", name, std::isnan(value) ? "0x7FFFFFFF" : "0x7F800000"));
  return {{name}};
}

std::vector<Segment::Element> Segment::elements(const std::string& name, Type type, Code& code) {
  const auto words = [&] { return std::array{added(Class::word), added(Class::word)}; };
  switch (type) {
    case Type::f64:
      return {{name, true}};
    case Type::f16: {
      const std::string word = added(Class::word);
      code.line(fmt::format("cvt.f32.f16 {}, {}", word, name));
      return {{word}};
    }
    case Type::bf16: {
      const std::string word = added(Class::word);
      code.line(fmt::format("mov.b32 {}, {{{}, {}}}", word, zero_half_, name));
      return {{word}};
    }
    case Type::f16x2: {
      const auto word = words();
      const std::string low = added(Class::half), high = added(Class::half);
      code.line(fmt::format("mov.b32 {{{}, {}}}, {}", low, high, name));
      code.line(fmt::format("cvt.f32.f16 {}, {}", word[0], low));
      code.line(fmt::format("cvt.f32.f16 {}, {}", word[1], high));
      return {{word[0]}, {word[1]}};
    }
    case Type::bf16x2: {
      const auto word = words();
      code.line(fmt::format("shl.b32 {}, {}, 16", word[0], name));
      code.line(fmt::format("and.b32 {}, {}, 0xFFFF0000", word[1], name));
      return {{word[0]}, {word[1]}};
    }
    default:
      return {{name}};
  }
}

void Segment::nan_born(const std::string& p, const Element& made, const std::vector<Element>& of,
                       Code& code) {
  code.line(fmt::format("setp.nan.{} {}, {}, {}", suffix(made.wide), p, made.name, made.name));
  for (const Element& e : of)
    if (!e.finite) code.line(fmt::format("setp.num.and.{0} {1}, {2}, {2}, {1}", suffix(e.wide), p, e.name));
}

void Segment::infinity_born(const std::string& p, const Element& made, const std::vector<Element>& of,
                            Code& code) {
  const std::string narrow = added(Class::word), wide = added(Class::wide);
  const auto test = [&](const Element& e, const char* how) {
    const std::string& magnitude = e.wide ? wide : narrow;
    code.line(fmt::format("abs.{} {}, {}", suffix(e.wide), magnitude, e.name));
    const bool more = how[0] == 'l';
    code.line(fmt::format("setp.{}.{} {}, {}, {}{}", how, suffix(e.wide), p, magnitude, infinity(e.wide),
                          more ? ", " + p : ""));
  };
  test(made, "eq");
  for (const Element& e : of)
    if (!e.finite) test(e, "lt.and");
}

void Segment::mark(const Item& item, int number, const std::string& nan, const std::string& infinity,
                   Code& code) {
  std::string guard;
  if (item.guard >= 0) {
    guard = values_[static_cast<size_t>(item.guard)].name;
    if (item.instruction->predicate_negated) {
      const std::string turned = added(Class::predicate);
      code.line(fmt::format("not.pred {}, {}", turned, guard));
      guard = turned;
    }
  }
  for (const auto& [p, bit] : {std::pair{nan, number}, std::pair{infinity, number + 32}}) {
    if (!guard.empty()) code.line(fmt::format("and.pred {0}, {0}, {1}", p, guard));
    code.line(fmt::format("@{0} or.b64 {1}, {1}, {2:#x}", p, mask_, uint64_t{1} << bit));
  }
}

void Segment::births_of_scalar(const Item& item, int number, Code& code) {
  const std::vector<Element> made = elements(item.results[0], code);
  std::vector<std::vector<Element>> sources;
  for (const Part& source : item.sources) sources.push_back(elements(source, code));
  std::string nans, infinities;
  for (size_t half = 0; half < made.size(); ++half) {
    std::vector<Element> of;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (item.watched.crosses && i != 1 - half) continue;
      of.push_back(sources[i].size() == 2 ? sources[i][half] : sources[i][0]);
    }
    const std::string nan = added(Class::predicate), infinity = added(Class::predicate);
    nan_born(nan, made[half], of, code);
    infinity_born(infinity, made[half], of, code);
    if (half == 0) {
      nans = nan, infinities = infinity;
      continue;
    }
    code.line(fmt::format("or.pred {0}, {0}, {1}", nans, nan));
    code.line(fmt::format("or.pred {0}, {0}, {1}", infinities, infinity));
  }
  mark(item, number, nans, infinities, code);
}

/// The same register with the largest finite number, or one near it, where an element is infinite.
std::string Segment::without_infinities(const std::string& name, vm::Element element, Code& code) {
  const vm::ElementFormat& format = vm::format_of(element);
  if (!format.infinities) return name;
  if (format.bits >= 32) {  // f64, tf32: lower bits of a word are cut off
    const bool wide = format.bits == 64;
    const Class of = wide ? Class::wide : Class::word;
    const std::string value = added(of), magnitude = added(of), p = added(Class::predicate);
    const char* const bits = wide ? "b64" : "b32";
    code.line(wide ? fmt::format("mov.b64 {}, {}", value, name)
                   : fmt::format("and.b32 {}, {}, 0xFFFFE000", value, name));
    code.line(fmt::format("abs.{} {}, {}", suffix(wide), magnitude, value));
    code.line(fmt::format("setp.eq.{} {}, {}, {}", suffix(wide), p, magnitude, infinity(wide)));
    code.line(fmt::format("selp.{0} {1}, 0, {1}, {2}", bits, value, p));
    return value;
  }
  // All elements of a word at a time: 1 is taken from those that are infinite.
  uint32_t magnitudes = 0, infinities = 0, signs = 0;
  for (int at = 0; at < 32; at += format.bits) {
    magnitudes |= ((1u << (format.bits - 1)) - 1) << at;
    infinities |= (((1u << format.exponent_bits) - 1) << format.fraction_bits) << at;
    signs |= 1u << (format.bits - 1) << at;
  }
  const std::string t = added(Class::word), value = added(Class::word);
  code.line(fmt::format("and.b32 {}, {}, {:#x}", t, name, magnitudes));
  code.line(fmt::format("xor.b32 {0}, {0}, {1:#x}", t, infinities));  // zero where it is infinite
  code.line(fmt::format("add.u32 {0}, {0}, {1:#x}", t, magnitudes));  // the sign where it is not
  code.line(fmt::format("not.b32 {0}, {0}", t));
  code.line(fmt::format("and.b32 {0}, {0}, {1:#x}", t, signs));
  code.line(fmt::format("shr.u32 {0}, {0}, {1}", t, format.bits - 1));
  code.line(fmt::format("sub.u32 {}, {}, {}", value, name, t));
  return value;
}

/// A 0 + 0 B: of each sum NaN where its row of A or column of B holds NaN or, unless they are to be taken
/// out (`clean`), an infinity; else 0. The instruction itself knows whose row and column a lane holds.
std::vector<std::string> Segment::finite_factors(const Item& item, bool clean, Code& code) {
  const size_t a = item.watched.a_count, b = item.watched.b_count, sums = item.results.size();
  std::vector<std::string> left, right, made;
  for (size_t i = 0; i < a + b; ++i) {
    std::string name = values_[static_cast<size_t>(item.sources[i].value)].name;
    const vm::Element element = i < a ? item.watched.a_element : item.watched.b_element;
    if (clean) name = without_infinities(name, element, code);
    (i < a ? left : right).push_back(name);
  }
  const bool wide_factors = item.sources[0].type == Type::f64, wide_sums = item.results[0].type == Type::f64;
  std::string zero_wide;
  if (wide_factors || wide_sums) {
    zero_wide = added(Class::wide);
    code.line(fmt::format("mov.b64 {}, 0", zero_wide));
  }
  const std::string& zero = wide_factors ? zero_wide : zero_word_;
  for (size_t i = 0; i < sums; ++i) made.push_back(added(wide_sums ? Class::wide : Class::word));
  const std::vector<std::string> none(sums, wide_sums ? zero_wide : zero_word_);
  const std::string& opcode = item.instruction->opcode;
  code.line(fmt::format("{} {}, {}, {}, {}", opcode, list(made), list(left),
                        list(std::vector<std::string>(b, zero)), list(none)));
  code.line(fmt::format("{} {}, {}, {}, {}", opcode, list(made), list(std::vector<std::string>(a, zero)),
                        list(right), list(made)));
  return made;
}

void Segment::births_of_product(Item& item, int number, Code& code) {
  const size_t factors = item.watched.a_count + item.watched.b_count;
  const std::vector<std::string> finite = finite_factors(item, false, code),
                                 numbers = finite_factors(item, true, code);
  std::string nans, infinities;
  item.made = added(item.results[0].type == Type::f64 ? Class::wide : Class::word);
  for (size_t i = 0; i < item.results.size(); ++i) {
    const Type type = item.results[i].type;
    const std::vector<Element> made = elements(item.results[i], code);
    std::vector<Element> added_to{{"", false, true}};
    if (!item.watched.in_place) added_to = elements(item.sources[factors + i], code);
    added_to.resize(made.size(), added_to[0]);
    const std::vector<Element> clean = elements(finite[i], type, code),
                               number_of = elements(numbers[i], type, code);
    for (size_t half = 0; half < made.size(); ++half) {
      const std::string nan = added(Class::predicate), infinity = added(Class::predicate);
      nan_born(nan, made[half], {added_to[half], number_of[half]}, code);
      infinity_born(infinity, made[half], {added_to[half], clean[half]}, code);
      if (item.watched.in_place) {
        const int32_t reg = item.watched.results[i].operand->reg;
        const std::string scratch = added(Class::word);
        accumulators_.require_number(reg, static_cast<int>(half), nan, scratch, code);
        accumulators_.require_finite(reg, static_cast<int>(half), infinity, scratch, code);
      }
      code.line(fmt::format("@{} mov.{} {}, {}", infinity, type == Type::f64 ? "b64" : "b32", item.made,
                            value(item.results[i]).name));
      if (nans.empty()) {
        nans = nan, infinities = infinity;
        continue;
      }
      code.line(fmt::format("or.pred {0}, {0}, {1}", nans, nan));
      code.line(fmt::format("or.pred {0}, {0}, {1}", infinities, infinity));
    }
  }
  mark(item, number, nans, infinities, code);
}

/// Of a register that products add to, what it holds when the segment ends.
void Segment::note_accumulator(const Part& part, Code& code) {
  const int32_t reg = value(part).reg;
  if (reg < 0 || !accumulators_.holds(reg)) return;
  const std::vector<Element> made = elements(part, code);
  for (size_t half = 0; half < made.size(); ++half) {
    const std::string nan = added(Class::predicate), infinite = added(Class::predicate);
    nan_born(nan, made[half], {}, code);
    infinity_born(infinite, made[half], {}, code);
    accumulators_.set(reg, static_cast<int>(half), nan, infinite, code);
  }
}

/// A part's bits as 64.
void Segment::widen(const std::string& to, const Part& part, Code& code) {
  if (part.value < 0) return code.line(fmt::format("mov.b64 {}, {:#x}", to, part.literal));
  const std::string& name = value(part).name;
  const int bytes = ptx::bytes_of(part.type);
  if (bytes == 8) return code.line(fmt::format("mov.b64 {}, {}", to, name));
  if (bytes == 4) return code.line(fmt::format("mov.b64 {}, {{{}, {}}}", to, name, zero_word_));
  code.line(fmt::format("mov.b64 {0}, {{{1}, {2}, {2}, {2}}}", to, name, zero_half_));
}

/// Operands and result of the item that is noted.
void Segment::load(const Item& item, Code& code) {
  if (item.watched.kind != WatchedInstruction::Kind::scalar) {
    if (item.made.empty()) return;
    const bool wide = item.results[0].type == Type::f64;
    const std::string p = added(Class::predicate), infinite = added(Class::wide);
    code.line(wide ? fmt::format("mov.b64 {}, {}", infinite, item.made)
                   : fmt::format("mov.b64 {}, {{{}, {}}}", infinite, item.made, zero_word_));
    code.line(fmt::format("setp.eq.u32 {}, {}, 0", p, kind_));
    code.line(fmt::format("selp.b64 {}, {}, {}, {}", result_, wide ? "0x7FFFFFFFFFFFFFFF" : "0x7FFF7FFF",
                          infinite, p));
    if (item.results[0].type == Type::f32) code.line(fmt::format("@{} mov.b64 {}, 0x7FFFFFFF", p, result_));
    return;
  }
  for (size_t i = 0; i < item.sources.size() && i < 3; ++i) widen(operand_[i], item.sources[i], code);
  widen(result_, item.results[0], code);
}

/// One birth after the other: how many, and of the first everything.
void Segment::note(const std::string& name, Code& code) {
  const std::string bit = added(Class::word), one = added(Class::wide), item = added(Class::word),
                    address = added(Class::wide), buffer = added(Class::wide), word = added(Class::word),
                    wide = added(Class::wide), p = added(Class::predicate);
  kind_ = added(Class::word), result_ = added(Class::wide);
  for (std::string& operand : operand_)
    operand = added(Class::wide), code.line(fmt::format("mov.b64 {}, 0", operand));
  code.line(fmt::format("ld.global.u64 {}, [{}]", buffer, kBufferVariable));
  code.line(fmt::format("setp.eq.b64 {}, {}, 0", p, buffer));
  code.line(fmt::format("@{} mov.b64 {}, 0", p, mask_));
  code.label(name + "_next");
  code.line(fmt::format("setp.eq.b64 {}, {}, 0", p, mask_));
  code.line(fmt::format("@{} bra {}_done", p, name));
  code.line(fmt::format("bfind.u64 {}, {}", bit, mask_));
  code.line(fmt::format("mov.b64 {}, 1", one));
  code.line(fmt::format("shl.b64 {0}, {0}, {1}", one, bit));
  code.line(fmt::format("xor.b64 {0}, {0}, {1}", mask_, one));
  code.line(fmt::format("and.b32 {}, {}, 31", item, bit));
  code.line(fmt::format("shr.u32 {}, {}, 5", kind_, bit));
  if (items_.size() > 1) {
    std::vector<std::string> targets;
    for (size_t i = 0; i < items_.size(); ++i) targets.push_back(fmt::format("{}_take{}", name, i));
    code.text += fmt::format("{}_items: .branchtargets {};\n", name, fmt::join(targets, ", "));
    code.line(fmt::format("brx.idx {}, {}_items", item, name));
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_.size() > 1) code.label(fmt::format("{}_take{}", name, i));
    load(items_[i], code);
    if (i + 1 < items_.size()) code.line(fmt::format("bra {}_note", name));
  }
  code.label(name + "_note");
  code.line(
      fmt::format("add.u32 {0}, {0}, {1}", item, items_[0].site));  // sites of a segment follow each other
  code.line(fmt::format("mad.lo.u32 {0}, {0}, {1}, {2}", item, kRecordsPerSite, kind_));
  code.line(fmt::format("mad.wide.u32 {}, {}, {}, {}", address, item, place::record, buffer));
  const auto at = [&](int offset) { return fmt::format("[{}+{}]", address, place::head + offset); };
  code.line(fmt::format("atom.global.add.u32 {}, {}, 1", word, at(place::count)));
  code.line(fmt::format("setp.ne.u32 {}, {}, 0", p, word));
  code.line(fmt::format("@{} bra {}_next", p, name));
  code.line(fmt::format("ld.global.u32 {}, [{}+{}]", word, buffer, place::current_launch));
  code.line(fmt::format("st.global.u32 {}, {}", at(place::launch), word));
  code.line(fmt::format("mov.u64 {}, %globaltimer", wide));
  code.line(fmt::format("st.global.u64 {}, {}", at(place::time), wide));
  for (int axis = 0; axis < 3; ++axis) {
    code.line(fmt::format("mov.u32 {}, %ctaid.{}", word, "xyz"[axis]));
    code.line(fmt::format("st.global.u32 {}, {}", at(place::block + 4 * axis), word));
    code.line(fmt::format("mov.u32 {}, %tid.{}", word, "xyz"[axis]));
    code.line(fmt::format("st.global.u32 {}, {}", at(place::thread + 4 * axis), word));
  }
  for (int i = 0; i < 3; ++i)
    code.line(fmt::format("st.global.u64 {}, {}", at(place::operands + 8 * i), operand_[i]));
  code.line(fmt::format("st.global.u64 {}, {}", at(place::result), result_));
  code.line(fmt::format("red.global.add.u32 [{}+{}], 1", buffer, place::noted));
  code.line(fmt::format("bra {}_next", name));
  code.label(name + "_done");
}

}  // namespace assay::watch
