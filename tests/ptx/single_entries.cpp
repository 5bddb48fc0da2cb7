#include "tests/ptx/single_entries.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace assay::ptx {
namespace {

/// From ".entry" or ".func" to the closing brace (or the semicolon of a declaration).
struct Piece {
  bool entry;
  std::string name;
  std::string_view text;
};

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

/// The first name behind the keyword and the list of results.
std::string name_in(std::string_view line) {
  size_t at = line.find(line.find(".entry") != std::string_view::npos ? ".entry" : ".func");
  at = line.find_first_of(" \t\n(", at);
  while (at < line.size() && !in_name(line[at])) {
    if (line[at] == '(') at = std::min(line.find(')', at), line.size() - 1);
    ++at;
  }
  size_t end = at;
  while (end < line.size() && in_name(line[end])) ++end;
  return std::string(line.substr(at, end - at));
}

bool starts_function(std::string_view line) {
  return line.starts_with('.') &&
         (line.find(".entry") != std::string_view::npos || line.find(".func") != std::string_view::npos) &&
         line.find('"') == std::string_view::npos;
}

/// Start of the line after the one that holds `at`.
size_t next_line(std::string_view text, size_t at) {
  return std::min(text.find('\n', at), text.size() - 1) + 1;
}

/// The brace that closes the one at `open`; comments may hold others.
size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text.substr(at, 2) == "//") at = std::min(text.find('\n', at), text.size() - 1);
    depth += (text[at] == '{') - (text[at] == '}');
    if (depth == 0) return at;
  }
  return text.size() - 1;
}

/// The functions; `rest` is the text without them and without debug information.
std::vector<Piece> pieces_of(std::string_view text, std::string* rest) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t line_end = next_line(text, at);
    const std::string_view line = text.substr(at, line_end - at);
    if (line.find(".section") < line.find_first_not_of(" \t") + 1) {  // debug information
      at = next_line(text, closing_brace(text, std::min(text.find('{', at), text.size() - 1)));
      continue;
    }
    if (!starts_function(line)) {
      *rest += line;
      at = line_end;
      continue;
    }
    const size_t body = std::min(text.find_first_of("{;", at), text.size() - 1);
    const size_t end = next_line(text, text[body] == ';' ? body : closing_brace(text, body));
    pieces.push_back({line.find(".entry") != std::string_view::npos, name_in(text.substr(at, end - at)),
                      text.substr(at, end - at)});
    at = end;
  }
  return pieces;
}

using Names = std::set<std::string, std::less<>>;

/// Those of `known` that stand in the text as whole words.
Names named_in(std::string_view text, const Names& known) {
  Names found;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_name(text[end])) ++end;
    if (const auto name = known.find(text.substr(at, end - at)); name != known.end()) found.insert(*name);
    at = end + 1;
  }
  return found;
}

}  // namespace

std::vector<SingleEntry> single_entries(std::string_view text) {
  std::string head;
  const std::vector<Piece> pieces = pieces_of(text, &head);
  Names functions;
  for (const Piece& piece : pieces)
    if (!piece.entry) functions.insert(piece.name);
  std::map<std::string, Names, std::less<>> named;  // of all pieces of a name
  for (const Piece& piece : pieces) named[piece.name].merge(named_in(piece.text, functions));
  const Names named_by_head = named_in(head, functions);

  std::vector<SingleEntry> result;
  for (const Piece& entry : pieces) {
    if (!entry.entry) continue;
    Names needed;
    std::vector<const Names*> open{&named_by_head, &named[entry.name]};
    while (!open.empty()) {
      const Names& used = *open.back();
      open.pop_back();
      for (const std::string& name : used)
        if (needed.insert(name).second) open.push_back(&named[name]);
    }
    std::string made = head;
    for (const Piece& piece : pieces)
      if (&piece == &entry || (!piece.entry && needed.contains(piece.name))) made += piece.text;
    result.push_back({entry.name, std::move(made)});
  }
  return result;
}

}  // namespace assay::ptx
