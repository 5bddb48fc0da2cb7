// The instruction table's forms as programs. Rows that say their sources and result speak for themselves;
// exchange, tensor cores, atomics and carries bring a body of their own.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "src/base/ptx/type.h"
#include "tools/fidelity/composed_forms.h"
#include "tools/fidelity/form.h"
#include "tools/fidelity/matrix_forms.h"

namespace assay::fidelity {
namespace {

using ptx::Type;
using vm::Kind;
using vm::Row;

Type last_type(const std::string& form) {
  return ptx::type_named(form.substr(form.rfind('.') + 1)).value_or(Type::none);
}
bool is_wide(Type type) {
  return ptx::bytes_of(type) == 8;
}
std::string suffix(const std::string& form) {
  return form.substr(form.rfind('.'));
}

/// All 256 truth tables: the fourth operand is an immediate.
std::string every_truth_table() {
  std::string body = "mov.b32 %d0, 0;\n";
  for (int table = 0; table < 256; ++table)
    body += fmt::format(
        "lop3.b32 %x0, %a0, %a1, %a2, {};\nmul.lo.u32 %d0, %d0, 0x01000193;\nxor.b32 %d0, %d0, %x0;\n",
        table);
  return body;
}

/// "form %d0, %a0, ...;"
Form plain(const Row& row, const std::string& name) {
  Form form{.name = name, .results = {row.result}};
  std::string sources;
  for (const Type type : row.sources)
    if (type != Type::none) {
      sources += fmt::format(", %a{}", form.operands.size());
      form.operands.push_back({type, Draw::crossed, static_cast<int>(form.operands.size())});
    }
  const bool halves = form.operands.size() == 1 && ptx::bytes_of(row.sources[0]) == 2;
  if (halves) form.operands[0].draw = Draw::counter;
  if (row.kind == Kind::compare && name.starts_with("setp")) {
    const bool halves_compared = ptx::bytes_of(row.sources[0]) == 2 && row.sources[0] >= Type::f16;
    form.results.assign(halves_compared ? 1 : 2, Type::pred);  // PTX has no second predicate for halves
    if (name.find(".and.") != std::string::npos || name.find(".or.") != std::string::npos ||
        name.find(".xor.") != std::string::npos) {
      sources += fmt::format(", %a{}", form.operands.size());
      form.operands.push_back({Type::pred});
    }
    form.body = name + (halves_compared ? " %d0" : " %d0|%d1") + sources + ";";
  } else if (name == "lop3.b32") {
    form.operands.resize(3);
    form.body = every_truth_table();
  } else {
    form.body = name + " %d0" + sources + ";";
  }
  return form;
}

std::optional<Form> exchange(const std::string& name) {
  Form form{.name = name};
  const auto with = [&](std::vector<DrawnOperand> operands, std::vector<Type> results, std::string body) {
    form.operands = std::move(operands);
    form.results = std::move(results);
    form.body = std::move(body);
    return form;
  };
  if (name.starts_with("shfl."))
    return with({{Type::b32}, {Type::u32, Draw::crossed, 1}, {Type::u32, Draw::uniform, 2}},
                {Type::b32, Type::pred},
                name + " %d0|%d1, %a0, %a1, %a2" + (name.find(".sync") != std::string::npos ? ", -1;" : ";"));
  if (name.starts_with("vote.sync"))
    return with({{Type::u32}, {Type::u32, Draw::uniform, 1}},
                {name.ends_with("pred") ? Type::pred : Type::b32},
                "setp.le.u32 %p0, %a0, %a1;\n" + name + " %d0, %p0, -1;");
  if (name.starts_with("match.")) {
    const std::string type = suffix(name), to = name.starts_with("match.all") ? " %d0|%d1, " : " %d0, ";
    std::vector<Type> results{Type::b32};
    if (name.starts_with("match.all")) results.push_back(Type::pred);
    const Type value = last_type(name);
    return with({{value}, {value, Draw::uniform, 1}}, results,
                fmt::format("and{0} %a0, %a0, %a1;\n{1}{2}%a0, -1;", type, name, to));
  }
  if (name.starts_with("redux.sync")) return with({{Type::b32}}, {Type::b32}, name + " %d0, %a0, -1;");
  if (name == "elect.sync") return with({}, {Type::b32, Type::pred}, "elect.sync %d0|%d1, -1;");
  if (name == "activemask.b32") return with({}, {Type::b32}, "activemask.b32 %d0;");
  return std::nullopt;
}

/// Sums of halves say that they do not flush, which changes no bits and which the table leaves out.
std::string assembled(std::string name, Type type) {
  const bool halves = ptx::is_float(type) && type != Type::f32 && type != Type::f64;
  if (halves) name.insert(name.find(".add.") + 4, ".noftz");
  return name;
}

/// Cells of its own for every thread: old values returned, new ones read back.
Form atomic(const std::string& name) {
  const Type type = last_type(name);
  const std::string bits = fmt::format("b{}", 8 * ptx::bytes_of(type));
  const bool shared = name.find(".shared") != std::string::npos, returns = name.starts_with("atom");
  const bool cas = name.find(".cas.") != std::string::npos;
  const size_t vector = name.find(".v");
  const int count = vector == std::string::npos ? 1 : name[vector + 2] - '0';
  const std::string space = shared ? "shared" : "global", at = shared ? "%cell" : "%memory";
  Form form{.name = name};
  for (int group = 0; group < 2; ++group)
    for (int i = 0; i < count; ++i) form.operands.push_back({type, Draw::crossed, group});
  if (cas) form.operands.insert(form.operands.end(), {{type, Draw::crossed, 2}, {Type::pred}});
  form.results.assign(static_cast<size_t>(returns ? 2 * count : count), type);
  const auto list = [&](const char* prefix, int first) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", prefix, first + i);
    return count > 1 ? "{" + text + "}" : text;
  };
  for (int i = 0; i < count; ++i)
    form.body += fmt::format("st.{}.{} [{}+{}], %a{};\n", space, bits, at, i * ptx::bytes_of(type), i);
  if (cas) form.body += fmt::format("selp.{0} %a1, %a0, %a1, %a3;\n", bits);
  form.body +=
      fmt::format("{}{} [{}], {}{};\n", assembled(name, type), returns ? " " + list("%d", count) + "," : "",
                  at, list("%a", count), cas ? ", %a2" : "");
  for (int i = 0; i < count; ++i)
    form.body += fmt::format("ld.{}.{} %d{}, [{}+{}];\n", space, bits, i, at, i * ptx::bytes_of(type));
  return form;
}

/// Carry in from an addition (or borrow from a subtraction), the form, and the carry out added to zero.
Form carry(const std::string& name) {
  const std::string type = suffix(name), family = name.starts_with("sub") ? "sub" : "add";
  const Type t = last_type(name);
  const std::string scratch = is_wide(t) ? "%y0" : "%x0";
  Form form{.name = name,
            .operands = {{t, Draw::crossed, 0}, {t, Draw::crossed, 1}, {t, Draw::crossed, 2}},
            .results = {t, t}};
  form.body = fmt::format("{}.cc{} {}, %a0, %a2;\n{} %d0, %a0, %a1{};\n", family, type, scratch, name,
                          name.starts_with("mad") ? ", %a2" : "");
  form.body += fmt::format("{}c{} %d1, 0, 0;", family, type);
  return form;
}

std::optional<Form> move(const std::string& name) {
  const std::string opcode = name.substr(0, name.find(' '));
  const Type type = last_type(opcode);
  if (ptx::bytes_of(type) == 2 || type == Type::f64) return std::nullopt;
  const Type half = is_wide(type) ? Type::b32 : Type::b16;
  if (name.ends_with(" pack"))
    return Form{.name = name,
                .operands = {{half, Draw::crossed, 0}, {half, Draw::crossed, 1}},
                .results = {type},
                .body = opcode + " %d0, {%a0, %a1};"};
  return Form{
      .name = name, .operands = {{type}}, .results = {half, half}, .body = opcode + " {%d0, %d1}, %a0;"};
}

std::optional<Form> form_of(const Row& row, const std::string& name) {
  if (row.kind == Kind::lanes && name == "fns.b32") return composed_form(name);
  if (row.kind == Kind::lanes || row.kind == Kind::exponential || row.kind == Kind::compare)
    return plain(row, name);
  if (row.kind != Kind::warp) return std::nullopt;
  // Another block's memory and cells of two registers have no place in one thread's body: tests of their own.
  if (name.starts_with("red.async") || name.find(".b128") != std::string::npos) return std::nullopt;
  if (std::optional<Form> composed = composed_form(name)) return composed;
  if (std::optional<Form> matrix = matrix_form(name)) return matrix;
  if (name.starts_with("atom") || name.starts_with("red.") || name.starts_with("red,")) return atomic(name);
  if (name.find(".cc") != std::string::npos || name.starts_with("addc") || name.starts_with("subc") ||
      name.starts_with("madc"))
    return carry(name);
  if (name.starts_with("mov.")) return move(name);
  return exchange(name);
}

int64_t indices_of(const Form& form, int log2_indices) {
  const int64_t sampled = int64_t{1} << log2_indices;
  if (form.name == "lop3.b32") return std::max<int64_t>(sampled / 16, 1 << 14);
  if (form.name.starts_with("mma.")) return sampled * 16;
  if (form.group > 32) return std::max<int64_t>(sampled / 32, 1 << 14);  // many results each
  if (form.operands.size() == 1 && form.operands[0].draw == Draw::counter)
    return std::min<int64_t>(sampled, 1 << 16);
  return sampled;
}

}  // namespace

std::vector<Form> forms(int log2_indices, std::vector<std::string>* others) {
  std::vector<Form> result;
  for (const Row& row : vm::rows())
    for (const std::string& name : vm::forms_of(row)) {
      std::optional<Form> form = form_of(row, name);
      if (!form) {
        if (others) others->push_back(name);
        continue;
      }
      form->status = row.status;
      form->indices = indices_of(*form, log2_indices);
      result.push_back(std::move(*form));
    }
  for (Form& form : wgmma_variants()) {
    form.status = vm::Status::measured_on(90);
    form.indices = indices_of(form, log2_indices);
    result.push_back(std::move(form));
  }
  return result;
}

std::vector<Form> exhaustive_forms() {
  std::vector<Form> result;
  for (const Row& row : vm::rows()) {
    if ((row.kind != Kind::lanes && row.kind != Kind::exponential) || row.flow == vm::Flow::copy ||
        row.sources[0] != Type::f32 || row.sources[1] != Type::none)
      continue;
    for (const std::string& name : vm::forms_of(row)) {
      if (row.flow == vm::Flow::conversion && !ptx::is_float(row.result) && ptx::form_of(name).saturates)
        continue;  // the same as without
      Form form = plain(row, name);
      form.operands[0].draw = Draw::counter;
      form.status = row.status;
      form.indices = int64_t{1} << 32;
      result.push_back(std::move(form));
    }
  }
  const auto rank = [](const Form& form) {
    if (form.status.on(90) == vm::Evidence::measured) return 0;
    if (form.results[0] != Type::f32 && ptx::name_of(form.results[0]).find('f') == std::string_view::npos)
      return 3;
    return form.name.starts_with("cvt") || form.name.starts_with("sqrt") || form.name.starts_with("rcp") ? 1
                                                                                                         : 2;
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const Form& a, const Form& b) { return rank(a) < rank(b); });
  return result;
}

}  // namespace assay::fidelity
