#include "src/base/watch/function_text.h"

#include <cctype>

#include "src/base/watch/text_characters.h"

namespace assay::watch {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

/// Whether the name at `at` is that of a function's definition.
bool is_header(std::string_view text, size_t at, size_t length) {
  const char before = at ? text[at - 1] : ' ', after = text[at + length];
  return !is_name(before) && before != '.' && !is_name(after);
}

}  // namespace

FunctionText::FunctionText(std::string_view text, const ptx::Function& function,
                           const std::vector<size_t>& lines, size_t from)
    : text_(text) {
  for (const ptx::Instruction& in : function.body) {
    const size_t begin = lines[static_cast<size_t>(in.ptx_line - 1)] + static_cast<size_t>(in.ptx_column - 1);
    extents_.push_back({begin, text.find(';', begin) + 1});
  }
  find_header(function, from);
  find_scopes();
}

/// The name of an entry or function is followed by its parameters, or by its body.
void FunctionText::find_header(const ptx::Function& function, size_t from) {
  size_t at = text_.rfind(function.name, extents_[0].begin);
  while (at != text_.npos && at >= from && !is_header(text_, at, function.name.size()))
    at = at == 0 ? text_.npos : text_.rfind(function.name, at - 1);
  header_ = at;
}

void FunctionText::find_scopes() {
  depth_.assign(extents_.size(), 1);
  each_character(text_, header_, extents_[0].begin,
                 [&](size_t i, char c) { return c == '{' ? opening_ = i, false : true; });
  int depth = 0;
  size_t behind = opening_;
  for (size_t i = 0; i <= extents_.size(); ++i) {
    const size_t end = i < extents_.size() ? extents_[i].begin : text_.size();
    each_character(text_, behind, end, [&](size_t position, char c) {
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth == 0 && c == '}') return closing_ = position, false;
      return true;
    });
    if (i == extents_.size()) break;
    depth_[i] = depth;
    behind = extents_[i].end;
  }
}

void FunctionText::leave_out_names(size_t begin, size_t end, Insertions& insertions, int depth) const {
  each_character(text_, begin, end, [&](size_t i, char c) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    const char before = text_[i - 1];
    if (c == '.' && depth == 0 && !is_name(before) && text_.compare(i, 5, ".reg ") == 0)
      insertions.leave_out(i, text_.find(';', i) + 1);
    if (c != ':' || before == ':' || text_[i + 1] == ':') return true;
    size_t name = i;
    while (name > begin && is_name(text_[name - 1])) --name;
    insertions.leave_out(name, i + 1);
    return true;
  });
}

}  // namespace assay::watch
