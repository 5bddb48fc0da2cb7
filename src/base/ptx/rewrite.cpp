#include "src/base/ptx/rewrite.h"

#include <algorithm>
#include <cctype>

#include "src/base/ptx/form.h"

namespace assay::ptx {
namespace {

bool is_opcode_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':';
}

/// A colon by itself; "::" is part of an opcode.
bool ends_a_label(std::string_view text, size_t i) {
  return text[i] == ':' && text.substr(i, 2) != "::" && (i == 0 || text[i - 1] != ':');
}

bool continues_a_word(std::string_view text, size_t i) {
  if (i == 0 || ends_a_label(text, i - 1)) return false;
  const char before = text[i - 1];
  return is_opcode_char(before) || before == '$' || before == '%';
}

/// Just after the comment or string that starts at `i`.
size_t end_of_quotation(std::string_view text, size_t i) {
  if (text[i] == '"') {
    for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
      if (text[i] == '\\') ++i;
    return std::min(i + 1, text.size());
  }
  const std::string_view close = text[i + 1] == '/' ? "\n" : "*/";
  const size_t found = text.find(close, i + 2);
  return found == std::string_view::npos ? text.size() : found + close.size();
}

/// The opcode with its rounding spelled out; unchanged if it is no float mul, add, sub or mad, or has one.
std::string explicit_opcode(std::string_view opcode) {
  if (opcode.find('.') == opcode.npos) return std::string(opcode);
  using enum Operation;
  const Form form = form_of(opcode);
  const Operation o = form.operation;
  if ((o != mul && o != add && o != sub && o != mad) || form.rounding != Rounding::none ||
      !(is_float(form.type()) || form.float_pairs))
    return std::string(opcode);
  const std::string_view rest = opcode.substr(name_of(o).size());
  return std::string(name_of(o == mad ? fma : o)) + ".rn" + std::string(rest);
}

}  // namespace

std::string make_rounding_explicit(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 64);
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//" || text.substr(i, 2) == "/*" || text[i] == '"') {
      const size_t end = end_of_quotation(text, i);
      result += text.substr(i, end - i);
      i = end;
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) && !continues_a_word(text, i)) {
      size_t end = i;
      while (end < text.size() && is_opcode_char(text[end]) && !ends_a_label(text, end)) ++end;
      result += explicit_opcode(text.substr(i, end - i));
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

}  // namespace assay::ptx
