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
  /// Columns aligned, two blanks between; the first row is the head; `right`: columns of numbers.
  void table(const std::vector<std::vector<std::string>>& rows, size_t first_right) const;

 private:
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
