#include "src/verification/diagnosis/index_maker.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace assay {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

namespace {

/// Identifiers of a line of code, members (after '.' or "->") left out.
std::set<std::string> identifiers(const std::string& text) {
  const std::string code = text.substr(0, text.find("//"));
  std::set<std::string> found;
  for (size_t at = 0; at < code.size();) {
    size_t end = at;
    while (end < code.size() && is_word(code[end])) ++end;
    const bool member = at > 0 && (code[at - 1] == '.' || code[at - 1] == '>');
    if (end > at && !std::isdigit(static_cast<unsigned char>(code[at])) && !member)
      found.insert(code.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return found;
}

/// Does the line move one of the names on: "key += 16 * warp"? Not a loop's head, and no sum of elements.
bool moves_index(const std::string& text, const std::set<std::string>& names) {
  if (text.find("for (") != std::string::npos) return false;
  for (size_t at = text.find(" += "); at != std::string::npos; at = text.find(" += ", at + 1)) {
    size_t begin = at;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    const bool of_elements = text.find_first_of("[(.", at) != std::string::npos;
    if (!of_elements && names.contains(text.substr(begin, at - begin))) return true;
  }
  return false;
}

/// Does the line declare one of the names as an integer: "const i64 column = ..."? What counts a loop is
/// right wherever the loop ends where it should.
bool declares_index(const std::string& text, const std::set<std::string>& names) {
  if (text.find("for (") != std::string::npos) return false;
  const size_t equals = text.find(" = ");
  if (equals == std::string::npos || text.compare(equals, 5, " = 0;") == 0) return false;  // of a loop
  size_t begin = equals;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  if (begin < 2 || text[begin - 1] != ' ' || !is_word(text[begin - 2])) return false;  // no type before it
  for (const char* other : {"float", "double", "half", "bool", "bfloat"})
    if (text.substr(0, begin).find(other) != std::string::npos) return false;
  return names.contains(text.substr(begin, equals - begin));
}

/// The nearest line above a statement that declares or moves an integer which the statement names. By the
/// text: a compiler gives the instructions of such a line to its neighbours.
SourceLocation index_made_at(const SourceLocation& store, const SourceText& source) {
  constexpr int kFarthest = 60;
  const SourceRange statement = source.statement_around(store);
  SourceLocation at = store;
  std::set<std::string> names;
  for (at.line = statement.first; at.line <= statement.last; ++at.line)
    names.merge(identifiers(source.line(at)));
  for (at.line = statement.first - 1; at.line > 0 && statement.first - at.line < kFarthest; --at.line)
    if (declares_index(source.line(at), names) || moves_index(source.line(at), names)) return at;
  return {};
}

/// File and line of an entry of Module::lines.
SourceLocation line_of(const ptx::Module& module, int32_t index) {
  SourceLocation where;
  const ptx::Line& line = module.lines[static_cast<size_t>(index)];
  where.line = line.line;
  if (line.file >= 0) where.file = module.files[static_cast<size_t>(line.file)];
  return where;
}

}  // namespace

std::optional<ChainLink> index_maker(const ptx::Module& module, int32_t function, int32_t instruction,
                                     const SourceText& source) {
  const int32_t line =
      module.functions[static_cast<size_t>(function)].body[static_cast<size_t>(instruction)].line;
  for (int32_t frame = line; frame >= 0; frame = module.lines[static_cast<size_t>(frame)].inlined_at) {
    const SourceLocation made = index_made_at(line_of(module, frame), source);
    if (made.line == 0) continue;
    ChainLink link;  // of no instruction
    link.where.function = module.functions[static_cast<size_t>(function)].name;
    link.where.file = made.file, link.where.line = made.line;
    link.text = source.line(made);
    return link;
  }
  return std::nullopt;
}

}  // namespace assay
