#include "tests/ptx/token_mutation.h"

#include <algorithm>
#include <cctype>

#include "src/base/vm/instruction_row.h"

namespace assay::ptx {
namespace {

using Random = std::mt19937_64;

template <class List>
const auto& pick(const List& list, Random& random) {
  return list[random() % std::size(list)];
}

constexpr std::string_view numbers[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "3",
                                        "4",
                                        "8",
                                        "16",
                                        "31",
                                        "32",
                                        "33",
                                        "64",
                                        "255",
                                        "65535",
                                        "65536",
                                        "1024",
                                        "-8",
                                        "2147483647",
                                        "4294967295",
                                        "-2147483648",
                                        "0x7fffffffffffffff",
                                        "18446744073709551615",
                                        "0f7F800000",
                                        "0fFFC00000",
                                        "0f00000001",
                                        "0d7FF0000000000000",
                                        "1.0"};
constexpr std::string_view types[] = {".b8",  ".b16",  ".b32",   ".b64",    ".u8",   ".u16", ".u32",
                                      ".u64", ".s8",   ".s16",   ".s32",    ".s64",  ".f16", ".f32",
                                      ".f64", ".bf16", ".f16x2", ".bf16x2", ".pred", ".tf32"};

/// A piece of the text: a word (with its % . : and $), one other character, or white space and comments.
struct Token {
  enum class Kind { opcode, name, special, number, directive, mark, blank } kind;
  std::string text;
};

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%' ||
         c == ':';
}

Token::Kind kind_of(std::string_view word) {
  if (word[0] == '.') return Token::Kind::directive;
  if (std::isdigit(static_cast<unsigned char>(word[0]))) return Token::Kind::number;
  if (word.find('.') != std::string_view::npos)
    return word[0] == '%' ? Token::Kind::special : Token::Kind::opcode;
  return Token::Kind::name;
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    Token::Kind kind = Token::Kind::mark;
    if (in_word(text[i]) && text[i] != ':') {
      while (end < text.size() && in_word(text[end])) ++end;
      if (text[end - 1] == ':') --end;
      kind = kind_of(text.substr(i, end - i));
    } else if (std::isspace(static_cast<unsigned char>(text[i])) || text.substr(i, 2) == "//") {
      kind = Token::Kind::blank;
      if (text[i] == '/') end = std::min(text.find('\n', i), text.size());
    }
    tokens.push_back({kind, std::string(text.substr(i, end - i))});
    i = end;
  }
  return tokens;
}

std::string text_of(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

/// Indices of tokens of a kind.
std::vector<size_t> all_of(const std::vector<Token>& tokens, Token::Kind kind) {
  std::vector<size_t> found;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].kind == kind) found.push_back(i);
  return found;
}

/// Another token of the same kind stands in the place of one.
void exchange(std::vector<Token>& tokens, Token::Kind kind, Random& random) {
  const std::vector<size_t> places = all_of(tokens, kind);
  if (places.empty()) return;
  const std::string text = tokens[pick(places, random)].text;
  tokens[pick(places, random)].text = text;
}

void change_number(std::vector<Token>& tokens, Random& random) {
  const std::vector<size_t> places = all_of(tokens, Token::Kind::number);
  if (!places.empty()) tokens[pick(places, random)].text = pick(numbers, random);
}

void change_opcode(std::vector<Token>& tokens, Random& random) {
  const std::vector<size_t> places = all_of(tokens, Token::Kind::opcode);
  if (!places.empty()) tokens[pick(places, random)].text = pick(known_words(), random);
}

/// A type within an opcode or a declaration.
void change_type(std::vector<Token>& tokens, Random& random) {
  const std::vector<size_t> places =
      all_of(tokens, random() % 4 ? Token::Kind::opcode : Token::Kind::directive);
  if (places.empty()) return;
  std::string& word = tokens[pick(places, random)].text;
  const size_t dot = word.rfind('.');
  word = word.substr(0, dot) + std::string(pick(types, random));
}

/// A part between dots of an opcode disappears.
void drop_modifier(std::vector<Token>& tokens, Random& random) {
  const std::vector<size_t> places = all_of(tokens, Token::Kind::opcode);
  if (places.empty()) return;
  std::string& word = tokens[pick(places, random)].text;
  if (word.empty()) return;  // change_type left nothing
  const size_t dot = word.find('.', random() % word.size());
  if (dot == std::string::npos) return;
  word.erase(dot, std::min(word.find('.', dot + 1), word.size()) - dot);
}

void change_predicate(std::vector<Token>& tokens, Random& random) {
  std::vector<size_t> guards;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].text == "@") guards.push_back(i);
  if (guards.empty()) return;
  const size_t at = pick(guards, random);
  if (at + 1 < tokens.size() && tokens[at + 1].text == "!")
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  else if (random() % 2)
    tokens[at].text = "@!";
  else if (at + 1 < tokens.size())
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                 tokens.begin() + static_cast<std::ptrdiff_t>(at) + 2);
}

/// [a] and [a+4] become [a+n].
void change_offset(std::vector<Token>& tokens, Random& random) {
  std::vector<size_t> ends;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].text == "]") ends.push_back(i);
  if (!ends.empty()) tokens[pick(ends, random)].text = "+" + std::string(pick(numbers, random)) + "]";
}

void change_mark(std::vector<Token>& tokens, Random& random) {
  const std::vector<size_t> places = all_of(tokens, Token::Kind::mark);
  if (places.empty()) return;
  const size_t at = pick(places, random);
  if (random() % 2)
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at));
  else
    tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens[at]);
}

/// Lines deleted, doubled, or in each other's place.
std::string change_lines(std::string_view text, Random& random) {
  std::vector<std::string_view> lines;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find('\n', i), text.size() - 1) + 1;
    lines.push_back(text.substr(i, end - i));
    i = end;
  }
  if (lines.empty()) return std::string(text);
  const size_t a = random() % lines.size(), b = random() % lines.size();
  switch (random() % 3) {
    case 0:
      lines[a] = {};
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(b), lines[a]);
      break;
    default:
      std::swap(lines[a], lines[b]);
  }
  std::string made;
  for (const std::string_view line : lines) made += line;
  return made;
}

}  // namespace

const std::vector<std::string>& known_words() {
  static const std::vector<std::string> made = [] {
    std::vector<std::string> words;
    for (const vm::Row& row : vm::rows()) {
      const std::vector<std::string> forms = vm::forms_of(row);
      if (forms.empty()) continue;
      for (const size_t i : {size_t{0}, forms.size() - 1})
        words.push_back(forms[i].substr(0, forms[i].find(' ')));
    }
    for (const char* word : {".version 8.0", ".target sm_90",  ".address_size 64", ".visible",
                             ".extern",      ".weak",          ".entry",           ".func",
                             ".param",       ".reg",           ".shared",          ".global",
                             ".const",       ".local",         ".align",           ".loc",
                             ".file",        ".section",       ".pragma",          ".maxntid",
                             ".reqntid",     ".branchtargets", ".callprototype",   "%tid.x",
                             "%ntid.x",      "%ctaid.x",       "%laneid",          "_"})
      words.emplace_back(word);
    for (const std::string_view type : types) words.emplace_back(type);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
  }();
  return made;
}

std::string mutate_tokens(std::string_view text, int edits, Random& random) {
  std::vector<Token> tokens = tokens_of(text);
  for (int i = 0; i < edits; ++i) switch (random() % 12) {
      case 0:
      case 1:
        exchange(tokens, Token::Kind::name, random);
        break;
      case 2:
        exchange(tokens, Token::Kind::opcode, random);
        break;
      case 3:
        exchange(tokens, Token::Kind::special, random);
        break;
      case 4:
        change_number(tokens, random);
        break;
      case 5:
        change_opcode(tokens, random);
        break;
      case 6:
        change_type(tokens, random);
        break;
      case 7:
        drop_modifier(tokens, random);
        break;
      case 8:
        change_predicate(tokens, random);
        break;
      case 9:
        change_offset(tokens, random);
        break;
      case 10:
        change_mark(tokens, random);
        break;
      default:
        tokens = tokens_of(change_lines(text_of(tokens), random));
    }
  return text_of(tokens);
}

}  // namespace assay::ptx
