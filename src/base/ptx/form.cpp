#include "src/base/ptx/form.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

namespace assay::ptx {
namespace {

struct Named {
  Operation operation;
  std::string_view name;
};

constexpr Named operations[] = {
#define ASSAY_OPERATION(enumerator, name) {Operation::enumerator, name},
#define ASSAY_SPELLING(enumerator, name) {Operation::enumerator, name},
#include "src/base/ptx/operations.def"
#undef ASSAY_SPELLING
#undef ASSAY_OPERATION
};

Operation operation_named(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, Operation> made;
    for (const Named& row : operations) made.emplace(row.name, row.operation);
    return made;
  }();
  const auto found = index.find(name);
  return found == index.end() ? Operation::none : found->second;
}

bool compares(const Form& f) {
  return f.operation == Operation::setp || f.operation == Operation::set;
}

void note_low(Form& f) {
  compares(f) ? void(f.comparison = Comparison::lo) : void(f.product = Product::lo);
}
void note_high(Form& f) {
  compares(f) ? void(f.comparison = Comparison::hi) : void(f.product = Product::hi);
}

template <Space space>
void note_space(Form& f) {
  if (f.space == Space::none) f.space = space;
}

using Note = void (*)(Form&);
#define NOTE(member, what) [](Form& f) { f.member = what; }
#define COMPARISON(name) \
  { #name, NOTE(comparison, Comparison::name) }
#define ROUNDING(name) \
  { #name, NOTE(rounding, Rounding::name) }
#define COMBINE(text, name) \
  { text, NOTE(combine, Combine::name) }
#define ORDER(text, name) \
  { text, NOTE(order, Order::name) }

/// What the parts behind an operation's name say.
const std::map<std::string_view, Note>& notes() {
  static const std::map<std::string_view, Note> rows = {
      ROUNDING(rn),
      ROUNDING(rna),
      ROUNDING(rz),
      ROUNDING(rm),
      ROUNDING(rp),
      ROUNDING(rni),
      ROUNDING(rzi),
      ROUNDING(rmi),
      ROUNDING(rpi),
      COMPARISON(eq),
      COMPARISON(ne),
      COMPARISON(lt),
      COMPARISON(le),
      COMPARISON(gt),
      COMPARISON(ge),
      COMPARISON(ls),
      COMPARISON(hs),
      COMPARISON(equ),
      COMPARISON(neu),
      COMPARISON(ltu),
      COMPARISON(leu),
      COMPARISON(gtu),
      COMPARISON(geu),
      COMPARISON(num),
      COMPARISON(nan),
      {"lo", note_low},
      {"hi", note_high},
      {"wide", NOTE(product, Product::wide)},
      COMBINE("add", add),
      COMBINE("min", min),
      COMBINE("max", max),
      COMBINE("and", and_),
      COMBINE("or", or_),
      COMBINE("xor", xor_),
      COMBINE("exch", exch),
      COMBINE("cas", cas),
      COMBINE("inc", inc),
      COMBINE("dec", dec),
      COMBINE("popc", popc),
      ORDER("weak", weak),
      ORDER("volatile", volatile_),
      ORDER("relaxed", relaxed),
      ORDER("acquire", acquire),
      ORDER("release", release),
      ORDER("acq_rel", acq_rel),
      ORDER("sc", sc),
      {"global", note_space<Space::global>},
      {"shared", note_space<Space::shared>},
      {"shared::cluster", note_space<Space::shared>},
      {"local", note_space<Space::local>},
      {"param", note_space<Space::param>},
      {"const", note_space<Space::constant>},
      {"v2", NOTE(vector, 2)},
      {"v4", NOTE(vector, 4)},
      {"v8", NOTE(vector, 8)},
      {"x2", NOTE(vector, 2)},
      {"x4", NOTE(vector, 4)},
      {"ftz", NOTE(ftz, true)},
      {"sat", NOTE(saturates, true)},
      {"satfinite", NOTE(saturates, true)},
      {"relu", NOTE(relu, true)},
      {"approx", NOTE(approximate, true)},
      {"full", NOTE(approximate, true)},
      {"NaN", NOTE(nan, true)},
      {"cc", NOTE(carry_out, true)},
      {"sync", NOTE(sync, true)},
      {"trans", NOTE(transposed, true)},
      {"L2::cache_hint", NOTE(cache_hint, true)},
      {"u16x2", NOTE(packed, true)},
      {"s16x2", NOTE(packed, true)},
      {"e4m3x2", NOTE(packed, true)},
      {"e5m2x2", NOTE(packed, true)},
      {"f32x2", [](Form& f) { f.packed = f.float_pairs = true; }},
      {"pack", NOTE(is_pack, true)},
      {"unpack", NOTE(is_unpack, true)},
  };
  return rows;
}
#undef ORDER
#undef COMBINE
#undef ROUNDING
#undef COMPARISON
#undef NOTE

/// f(part) for each part between dots; of the table's names also what follows a blank.
template <class F>
void for_parts(std::string_view opcode, F f) {
  for (size_t at = 0; at <= opcode.size();) {
    const size_t end = std::min(opcode.find_first_of(". ", at), opcode.size());
    f(opcode.substr(at, end - at));
    at = end + 1;
  }
}

std::string_view without_scope(std::string_view base, std::string_view part) {
  if (part == "shared::cluster") return base == "isspacep" ? part : "shared";
  for (const std::string_view scope : {"::cta", "::entry", "::func"})
    if (part.ends_with(scope)) return part.substr(0, part.size() - scope.size());
  return part;
}

/// Qualifiers that change no bits on this machine: cache operators and hints, memory order and scope,
/// uniformity.
bool is_ignored(std::string_view base, std::string_view part) {
  static constexpr std::string_view memory[] = {
      "ca",      "cg",      "cs",      "lu", "cv",  "wb",  "wt",  "nc",      "volatile", "weak", "relaxed",
      "acquire", "release", "acq_rel", "sc", "gpu", "sys", "cta", "cluster", "unified",  "mmio", "noftz"};
  if (part.starts_with("L1::") || part.starts_with("L2::")) return true;
  if (base == "bra" || base == "call" || base == "ret" || base == "brx") return part == "uni";
  if (base == "bar" || base == "barrier")
    return part == "cta" || part == "aligned" || part == "release" || part == "acquire" || part == "relaxed";
  if (base != "ld" && base != "st" && base != "atom" && base != "red" && base != "cp" && base != "fence" &&
      base != "membar" && base != "ldu" && base != "mbarrier")
    return false;
  return std::find(std::begin(memory), std::end(memory), part) != std::end(memory);
}

}  // namespace

std::string_view name_of(Operation operation) {
  for (const Named& row : operations)
    if (row.operation == operation) return row.name;
  return "";
}

std::string_view name_of(Comparison comparison) {
  static constexpr std::string_view names[] = {"",    "eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                               "lo",  "ls",  "hi",  "hs",  "equ", "neu", "ltu",
                                               "leu", "gtu", "geu", "num", "nan"};
  return names[static_cast<size_t>(comparison)];
}

std::string_view name_of(Rounding rounding) {
  static constexpr std::string_view names[] = {"", "rn", "rna", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};
  return names[static_cast<size_t>(rounding)];
}

std::string_view base_of(std::string_view opcode) {
  return opcode.substr(0, opcode.find_first_of(". "));
}

bool is_instruction_name(std::string_view base) {
  return base.find('.') == base.npos && operation_named(base) != Operation::none;
}

std::string canonical_form(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  std::string result(base);
  for (size_t at = base.size(); at < opcode.size();) {
    const size_t end = std::min(opcode.find('.', at + 1), opcode.size());
    std::string_view part = opcode.substr(at + 1, end - at - 1);
    at = end;
    if (is_ignored(base, part)) continue;
    part = without_scope(base, part);
    result += '.';
    result += part;
  }
  return result;
}

std::string unordered_form(std::string_view canonical) {
  static constexpr std::string_view stems[] = {"lo", "hi", "wide", "full", "l",         "r",     "to",
                                               "a",  "b",  "c",    "d",    "expect_tx", "parity"};
  const auto in = [](const auto& list, std::string_view part) {
    return std::find(std::begin(list), std::end(list), part) != std::end(list);
  };
  // Types of registers, and those of packed elements ("e4m3").
  const auto is_type = [](std::string_view part) {
    return std::string_view("busfet").find(part.substr(0, 1)) != part.npos &&
           part.find_first_of("0123456789") != part.npos;
  };
  std::string_view name = canonical;
  while (operation_named(name) == Operation::none && name.rfind('.') != name.npos)
    name = name.substr(0, name.rfind('.'));
  std::string result(name);
  std::vector<std::string_view> free, fixed;
  if (name.size() < canonical.size())
    for_parts(canonical.substr(name.size() + 1), [&](std::string_view part) {
      if (free.empty() && fixed.empty() && in(stems, part))
        result += ":" + std::string(part);
      else if (is_type(part) || part == "row" || part == "col" || base_of(canonical) == "cp")
        fixed.push_back(part);
      else
        free.push_back(part);
    });
  std::sort(free.begin(), free.end());
  for (const auto* parts : {&free, &fixed})
    for (const std::string_view part : *parts) result += "." + std::string(part);
  return result;
}

std::string with_part(std::string_view opcode, std::string_view from, std::string_view to) {
  std::string made;
  for_parts(opcode, [&](std::string_view part) {
    const std::string_view now = part == from ? to : part;
    if (now.empty()) return;
    if (!made.empty()) made += '.';
    made += now;
  });
  return made;
}

Form form_of(std::string_view opcode) {
  Form form;
  const std::string canonical = canonical_form(opcode);
  const std::string_view dotted = std::string_view(canonical).substr(0, canonical.find(' '));
  std::string_view name = dotted;
  while ((form.operation = operation_named(name)) == Operation::none && name.rfind('.') != name.npos)
    name = name.substr(0, name.rfind('.'));
  const auto named = std::count(name.begin(), name.end(), '.') + 1;
  form.carry_in = form.operation == Operation::addc || form.operation == Operation::subc ||
                  form.operation == Operation::madc;
  // The parts of the operation's name lie at its head, but for those that are ignored and may stand between.
  int64_t at = 0;
  const std::string_view base = base_of(opcode);
  for_parts(opcode, [&](std::string_view part) {
    const bool of_name = at < named && !is_ignored(base, part);
    at += of_name;
    if (of_name) return;
    form.in_cluster |= part == "shared::cluster";
    part = part.starts_with("L2::") ? part : without_scope(base, part);
    if (const auto type = type_named(part)) {
      if (form.type_count < form.types.size()) form.types[form.type_count++] = *type;
      form.packed |= is_packed(*type);
    } else if (const auto note = notes().find(part); note != notes().end()) {
      if (base != "cvt" || part != "pack") note->second(form);  // cvt.pack is no mov of a vector
    }
  });
  return form;
}

}  // namespace assay::ptx
