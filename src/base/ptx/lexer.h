// Characters of a PTX text: white space and comments skipped, names, opcodes, literals, and positions for
// messages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::ptx {

struct Literal {
  uint64_t bits = 0;  ///< integers sign-extended; floats by their bits
  bool is_float = false;
  uint8_t float_bytes = 0;  ///< 4 or 8
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string path);

  /// True at the end of the text (after white space and comments).
  bool at_end() {
    skip_blank();
    return position_ >= text_.size();
  }
  /// Next character after white space, '\0' at the end.
  char peek() { return at_end() ? '\0' : text_[position_]; }
  /// Consumes `c` if it is next.
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c);
  /// A name: letters, digits, _ and $, optionally starting with %. Empty if none is next.
  std::string_view name();
  /// A directive's word after '.', consumed with the dot; empty if none is next.
  std::string_view directive();
  /// The whole dotted opcode: "ld.global.L1::no_allocate.b32".
  std::string_view opcode();
  /// True if a number is next (with its sign).
  bool number_next();
  Literal literal();
  int64_t integer();
  /// An integer of [least, most]; `what` names it in the message.
  int64_t integer(std::string_view what, int64_t least, int64_t most);
  std::string quoted();
  /// Skips to just after the matching '}' of a '{' that was consumed.
  void skip_braces();
  /// Skips to just after the next ';'.
  void skip_statement();

  /// What follows on this line, comment included; nothing is consumed.
  std::string_view rest_of_line() const {
    return text_.substr(position_, text_.find('\n', position_) - position_);
  }

  /// Whether what was read last stands between LLVM's comments "begin inline asm" and "end inline asm".
  bool in_inline_assembly() const { return assembly_begin_ < position_ && position_ <= assembly_end_; }

  /// All that the lexer knows of where it stands.
  struct Place {
    size_t position = 0, line_start = 0;
    size_t assembly_begin = 0, assembly_end = 0;
    int line = 1;
  };
  Place place() {
    advance_to(position_);
    return {position_, line_start_, assembly_begin_, assembly_end_, line_};
  }
  /// Of a lexer of the same text.
  void go_to(const Place& place) {
    position_ = line_position_ = place.position, line_start_ = place.line_start, line_ = place.line;
    assembly_begin_ = place.assembly_begin, assembly_end_ = place.assembly_end;
  }
  size_t position() const { return position_; }
  /// Position of the next token.
  size_t next_position();
  void rewind(size_t position);
  int line();  ///< 1-based, of the next token
  int column();
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_at(size_t position, const std::string& what);

 private:
  static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\0';
  }
  void skip_blank() {
    while (position_ < text_.size() && is_blank(text_[position_])) ++position_;
    if (position_ < text_.size() && text_[position_] == '/') skip_comments();
  }
  void skip_comments();
  void advance_to(size_t position);

  std::string_view text_;
  std::string path_;
  size_t position_ = 0;
  size_t line_position_ = 0;  ///< position up to which lines are counted
  int line_ = 1;
  size_t line_start_ = 0;
  size_t assembly_begin_ = 0, assembly_end_ = 0;  ///< the inline assembly whose first comment was read last
};

}  // namespace assay::ptx
