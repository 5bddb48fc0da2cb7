#include "tools/fidelity/composed_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "src/base/ptx/type.h"

namespace assay::fidelity {
namespace {

using ptx::Type;

bool holds(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

Type type_at(const std::string& name, size_t from_end) {
  size_t end = name.size(), dot = name.rfind('.');
  for (; from_end > 0; --from_end) end = dot, dot = name.rfind('.', end - 1);
  return ptx::type_named(name.substr(dot + 1, end - dot - 1)).value_or(Type::none);
}

/// lop3.bool.b32 d|p: a table of every kind of term.
Form logic(const std::string& name) {
  Form form{.name = name, .results = {Type::b32, Type::pred}};
  for (int i = 0; i < 3; ++i) form.operands.push_back({Type::b32, Draw::crossed, i});
  form.operands.push_back({Type::pred});
  // Of words by chance no result is zero: one of three terms, cut to a few bits.
  form.body = "and.b32 %a0, %a0, 3;\nand.b32 %a1, %a1, 3;\nand.b32 %a2, %a2, 3;\n" + name +
              " %d0|%d1, %a0, %a1, %a2, 0x9a, %a3;";
  return form;
}

Form comparison(const std::string& name) {
  const Type of = type_at(name, 0);
  return {.name = name,
          .operands = {{of, Draw::crossed, 0}, {of, Draw::crossed, 1}, {Type::pred}},
          .results = {type_at(name, 1)},
          .body = name + " %d0, %a0, %a1, %a2;"};
}

/// The name's letters choose the parts of registers, so that a family has every kind.
struct Chosen {
  size_t number;
  explicit Chosen(const std::string& name) : number(name.size()) {
    for (const char letter : name) number = number * 31 + static_cast<unsigned char>(letter);
    number ^= number >> 17;
  }
  template <size_t n>
  std::string of(const char* const (&parts)[n]) {
    const size_t which = number % (n + 1);
    number = number / (n + 1) * 2654435761u + which;
    return which == n ? "" : std::string(".") + parts[which];
  }
};

Form video(const std::string& name) {
  static constexpr const char *of_word[] = {"b0", "b1", "b2", "b3", "h0", "h1"},
                              *of_halves[] = {"h10", "h32", "h01", "h13", "h20"},
                              *of_bytes[] = {"b3210", "b7654", "b0123", "b4416", "b1357"},
                              *made_halves[] = {"h1", "h0", "h10"},
                              *made_bytes[] = {"b3", "b210", "b31", "b3210"};
  Chosen chosen(name);
  Form form{.name = name, .results = {Type::b32}};
  const std::string base = name.substr(0, name.find('.'));
  const bool halves = base.back() == '2', bytes = base.back() == '4',
             second = holds(name, ".add") || holds(name, ".min") || holds(name, ".max");
  const bool mad = base == "vmad";
  std::string d, a, b;
  if (halves) d = chosen.of(made_halves), a = chosen.of(of_halves), b = chosen.of(of_halves);
  if (bytes) d = chosen.of(made_bytes), a = chosen.of(of_bytes), b = chosen.of(of_bytes);
  if (!halves && !bytes) {
    d = second || mad ? "" : chosen.of(of_word);
    a = chosen.of(of_word), b = chosen.of(of_word);
  }
  const bool third = halves || bytes || second || mad || !d.empty();
  for (int i = 0; i < (third ? 3 : 2); ++i) form.operands.push_back({Type::b32, Draw::crossed, i});
  form.body = fmt::format("{} %d0{}, %a0{}, %a1{}{};", name, d, a, b, third ? ", %a2" : "");
  return form;
}

}  // namespace

std::optional<Form> composed_form(const std::string& name) {
  static constexpr const char* of_video[] = {"vadd",  "vsub", "vabsdiff", "vmin", "vmax",
                                             "vavrg", "vset", "vshl",     "vshr", "vmad"};
  if (name == "lop3.and.b32" || name == "lop3.or.b32") return logic(name);
  if (name == "fns.b32")  // of bits that there are
    return Form{.name = name,
                .operands = {{Type::b32, Draw::crossed, 0},
                             {Type::b32, Draw::crossed, 1},
                             {Type::s32, Draw::crossed, 2}},
                .results = {Type::b32},
                .body = "and.b32 %a1, %a1, 31;\nfns.b32 %d0, %a0, %a1, %a2;"};
  if (name.starts_with("set.")) return comparison(name);
  const bool is_video = std::any_of(std::begin(of_video), std::end(of_video),
                                    [&](const char* base) { return name.starts_with(base); });
  if (is_video) return video(name);
  return std::nullopt;
}

}  // namespace assay::fidelity
