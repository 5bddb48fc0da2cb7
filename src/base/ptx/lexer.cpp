#include "src/base/ptx/lexer.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "src/base/numerics/bad_input.h"

namespace assay::ptx {
namespace {

/// By character: does it belong to a name, to an opcode; is it a brace, or begins a string or a comment.
struct Characters {
  bool name[256] = {}, opcode[256] = {}, braces[256] = {};
  constexpr Characters() {
    for (int c = 0; c < 256; ++c) {
      name[c] =
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
      opcode[c] = name[c] || c == '.' || c == ':';
      braces[c] = c == '{' || c == '}' || c == '"' || c == '/';
    }
  }
};
constexpr Characters characters;

bool is_name_char(char c) {
  return characters.name[static_cast<unsigned char>(c)];
}

/// 'c', or '\xff' where it would not print.
std::string shown(char c) {
  static constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return {'\'', c, '\''};
  return {'\'', '\\', 'x', digits[byte >> 4], digits[byte & 15], '\''};
}

/// No brace, and no beginning of a string or a comment.
bool nothing_in_sixteen(std::string_view text) {
  typedef char Sixteen __attribute__((vector_size(16)));
  if (text.size() < sizeof(Sixteen)) return false;
  Sixteen c;
  std::memcpy(&c, text.data(), sizeof c);
  const auto found = (c == '{') | (c == '}') | (c == '"') | (c == '/');
  uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) == 0;
}

/// A message is one line that a person can read, however long a name in the text is.
constexpr size_t longest_message = 240;

}  // namespace

Lexer::Lexer(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

void Lexer::skip_comments() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (is_blank(c)) {
      ++position_;
    } else if (c == '/' && text_.substr(position_, 2) == "//") {
      if (text_.substr(position_).starts_with("// begin inline asm")) {
        assembly_begin_ = position_;
        assembly_end_ = std::min(text_.find("// end inline asm", position_), text_.size());
      }
      const size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else if (c == '/' && text_.substr(position_, 2) == "/*") {
      const size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) fail("comment is not closed");
      position_ = end + 2;
    } else {
      return;
    }
  }
}

void Lexer::expect(char c) {
  if (accept(c)) return;
  const char got = peek();
  fail(std::string("expected '") + c + "', got " + (got ? shown(got) : "the end of the text"));
}

std::string_view Lexer::name() {
  skip_blank();
  size_t end = position_;
  if (end < text_.size() && text_[end] == '%') ++end;
  if (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) && end == position_)
    return {};
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  const std::string_view found = text_.substr(position_, end - position_);
  position_ = end;
  return found;
}

std::string_view Lexer::directive() {
  skip_blank();
  if (position_ >= text_.size() || text_[position_] != '.') return {};
  size_t end = position_ + 1;
  while (end < text_.size() && (is_name_char(text_[end]) || text_[end] == ':')) ++end;
  const std::string_view found = text_.substr(position_ + 1, end - position_ - 1);
  position_ = end;
  return found;
}

std::string_view Lexer::opcode() {
  skip_blank();
  size_t end = position_;
  while (end < text_.size() && characters.opcode[static_cast<unsigned char>(text_[end])]) ++end;
  const std::string_view found = text_.substr(position_, end - position_);
  position_ = end;
  return found;
}

bool Lexer::number_next() {
  const char c = peek();
  if (std::isdigit(static_cast<unsigned char>(c))) return true;
  return c == '-' || c == '+';
}

Literal Lexer::literal() {
  bool negative = false;
  while (peek() == '-' || peek() == '+') negative ^= text_[position_++] == '-';
  skip_blank();
  const size_t start = position_;
  size_t end = start;
  while (end < text_.size() && (is_name_char(text_[end]) || text_[end] == '.' ||
                                ((text_[end] == '-' || text_[end] == '+') && end > start &&
                                 (text_[end - 1] == 'e' || text_[end - 1] == 'E') &&
                                 text_.substr(start, 2) != "0x" && text_.substr(start, 2) != "0X")))
    ++end;
  const std::string_view word = text_.substr(start, end - start);
  if (word.empty()) fail("expected a number");
  Literal result;
  const bool hex_float =
      word.size() > 2 && word[0] == '0' && std::string_view("fFdD").find(word[1]) != std::string_view::npos;
  const char* first = word.data();
  const char* last = first + word.size();
  std::from_chars_result parsed{};
  if (hex_float) {
    parsed = std::from_chars(first + 2, last, result.bits, 16);
    result.is_float = true;
    result.float_bytes = word[1] == 'f' || word[1] == 'F' ? 4 : 8;
    if (word.size() != 2 + 2u * result.float_bytes)
      fail("float literal " + std::string(word) + " has a wrong number of digits");
    if (negative) result.bits ^= result.float_bytes == 4 ? 0x80000000u : 0x8000000000000000u;
  } else if (word.find('.') != std::string_view::npos ||
             (word.find_first_of("eE") != std::string_view::npos && word.substr(0, 2) != "0x" &&
              word.substr(0, 2) != "0X")) {
    double value = 0;
    parsed = std::from_chars(first, last, value);
    result.is_float = true;
    result.float_bytes = 8;
    result.bits = std::bit_cast<uint64_t>(negative ? -value : value);
  } else {
    while (last > first && (last[-1] == 'U' || last[-1] == 'u')) --last;
    const std::string_view digits(first, static_cast<size_t>(last - first));
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X"))
      base = 16;
    else if (digits.starts_with("0b") || digits.starts_with("0B"))
      base = 2;
    else if (digits.size() > 1 && digits[0] == '0')
      base = 8;
    parsed = std::from_chars(first + (base == 16 || base == 2 ? 2 : 0), last, result.bits, base);
    if (negative) result.bits = 0 - result.bits;
  }
  if (parsed.ec != std::errc() || parsed.ptr != last) fail("malformed number " + std::string(word));
  position_ = end;
  return result;
}

int64_t Lexer::integer() {
  if (!number_next()) fail("expected a number");
  const size_t start = position_;
  constexpr size_t kShort = 18;  // digits of no more than 63 bits
  size_t end = start;
  int64_t decimal = 0;
  for (; end < text_.size() && text_[end] >= '0' && text_[end] <= '9' && end < start + kShort; ++end)
    decimal = 10 * decimal + (text_[end] - '0');
  const bool ends = end == text_.size() || !characters.opcode[static_cast<unsigned char>(text_[end])];
  if (ends && end > start && (text_[start] != '0' || end == start + 1)) {
    position_ = end;
    return decimal;
  }
  const Literal value = literal();
  if (value.is_float) fail_at(start, "expected an integer");
  return static_cast<int64_t>(value.bits);
}

int64_t Lexer::integer(std::string_view what, int64_t least, int64_t most) {
  if (!number_next()) fail("expected a number");
  const size_t start = position_;
  const int64_t value = integer();
  if (value >= least && value <= most) return value;
  fail_at(start,
          std::string(what) + " is not between " + std::to_string(least) + " and " + std::to_string(most));
}

std::string Lexer::quoted() {
  expect('"');
  std::string result;
  while (position_ < text_.size() && text_[position_] != '"') {
    if (text_[position_] == '\n') break;
    if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
    result += text_[position_++];
  }
  if (position_ >= text_.size() || text_[position_] != '"') fail("string is not closed");
  ++position_;
  return result;
}

void Lexer::skip_braces() {
  for (int depth = 1; depth > 0;) {
    while (nothing_in_sixteen(text_.substr(position_))) position_ += 16;
    while (position_ < text_.size() && !characters.braces[static_cast<unsigned char>(text_[position_])])
      ++position_;
    const char c = peek();  // past a comment
    if (c == '\0') fail("expected '}', got the end of the text");
    if (c == '"') {
      quoted();
      continue;
    }
    depth += (c == '{') - (c == '}');
    ++position_;
  }
}

void Lexer::skip_statement() {
  while (peek() != ';') {
    if (peek() == '\0') fail("expected ';', got the end of the text");
    if (peek() == '"')
      quoted();
    else
      ++position_;
  }
  ++position_;
}

size_t Lexer::next_position() {
  skip_blank();
  return position_;
}

void Lexer::rewind(size_t position) {
  position_ = position;
}

void Lexer::advance_to(size_t position) {
  if (position < line_position_) {
    line_ -= static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(position),
                                         text_.begin() + static_cast<ptrdiff_t>(line_position_), '\n'));
    line_position_ = position;
    const size_t end_of_last = position > 0 ? text_.rfind('\n', position - 1) : std::string_view::npos;
    line_start_ = end_of_last == std::string_view::npos ? 0 : end_of_last + 1;
  }
  const size_t end = std::min(position, text_.size());
  constexpr size_t kFar = 1024;  // a body that is passed over
  if (end > line_position_ + kFar) {
    const std::string_view passed = text_.substr(line_position_, end - line_position_);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (const size_t last = passed.rfind('\n'); last != passed.npos) line_start_ = line_position_ + last + 1;
    line_position_ = end;
    return;
  }
  for (size_t at; line_position_ < end; line_position_ = at + 1, line_start_ = at + 1, ++line_) {
    const void* found = std::memchr(text_.data() + line_position_, '\n', end - line_position_);
    if (!found) break;
    at = static_cast<size_t>(static_cast<const char*>(found) - text_.data());
  }
  line_position_ = std::max(line_position_, end);
}

int Lexer::line() {
  skip_blank();
  advance_to(position_);
  return line_;
}

int Lexer::column() {
  skip_blank();
  advance_to(position_);
  return static_cast<int>(position_ - line_start_) + 1;
}

void Lexer::fail(const std::string& what) {
  advance_to(position_);
  throw BadInput(path_ + ":" + std::to_string(line_) + ":" + std::to_string(position_ - line_start_ + 1) +
                 ": " + (what.size() <= longest_message ? what : what.substr(0, longest_message) + "..."));
}

void Lexer::fail_at(size_t position, const std::string& what) {
  position_ = position;
  fail(what);
}

}  // namespace assay::ptx
