// Text for people: colours where they are wanted, a passing line of progress, aligned columns.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "src/result/verdict.h"

namespace assay {

enum class Style { plain, bold, dim, good, bad, doubtful };
Style style_of(Verdict);

/// A stream for people. Colours only on a terminal and without NO_COLOR.
class Console {
 public:
  explicit Console(std::FILE* stream);
  std::string styled(Style, std::string_view text) const;
  void line(const std::string& text) const;
  /// What was printed reaches whoever reads the stream, before the program goes on.
  void flush() const;
  /// As it is, its line ends included.
  void text(const std::string& lines) const;
  /// Prose: on a terminal broken between words, further lines indented as the first and two more.
  void prose(const std::string& text) const;
  /// Names of options and what they are: long lines are broken, and go on below what they are.
  void help(const std::string& text) const;
  /// A command of this program's, as results have it ("assay replay ..."), so that it works when pasted here.
  static std::string command(const std::string& text);
  /// Tables are not folded.
  static void set_wide();
  static bool is_set_wide();
  /// Columns aligned, two blanks between; the first row is the head; `first_right`: columns of numbers from
  /// there on. What is wider than the terminal, or than 100 columns where this is none, is folded: texts are
  /// broken between words, and where that is not enough columns continue below.
  void table(const std::vector<std::vector<std::string>>& rows, size_t first_right) const;

 private:
  size_t width() const;

  std::FILE* stream_;
  bool colour_;
};

/// One line on standard error that disappears again; nothing where standard error is not a terminal.
class PassingLine {
 public:
  explicit PassingLine(const std::string& text);
  ~PassingLine();
  PassingLine(const PassingLine&) = delete;
  PassingLine& operator=(const PassingLine&) = delete;

 private:
  bool shown_;
};

}  // namespace assay
