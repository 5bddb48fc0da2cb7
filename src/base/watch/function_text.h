// A function in the text of its module: where its instructions stand, and its scopes.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/watch/insertions.h"

namespace assay::watch {

class FunctionText {
 public:
  struct Extent {
    size_t begin = 0, end = 0;  ///< the ';' included
  };
  /// `lines`: where each line of the text begins; `from`: the function's header stands behind that. The
  /// function has a body, and outlives this.
  FunctionText(std::string_view text, const ptx::Function&, const std::vector<size_t>& lines, size_t from);

  std::string_view whole() const { return text_; }
  Extent at(size_t instruction) const { return extents_[instruction]; }
  int depth(size_t instruction) const { return depth_[instruction]; }  ///< 1: the function's own scope
  size_t opening() const { return opening_; }                          ///< the body's braces
  size_t closing() const { return closing_; }
  /// What stands between its name and its body: parameters and directives.
  std::string_view directives() const { return text_.substr(header_, opening_ - header_); }

  /// Of a part that is written once more: labels, to which no branch leads, and registers of the function's
  /// scope stay where they were. `depth`: of scopes in which it begins, 0 in the function's own.
  void leave_out_names(size_t begin, size_t end, Insertions&, int depth = 0) const;

 private:
  void find_header(const ptx::Function&, size_t from);
  void find_scopes();

  std::string_view text_;
  std::vector<Extent> extents_;
  std::vector<int> depth_;
  size_t header_ = 0, opening_ = 0, closing_ = 0;
};

}  // namespace assay::watch
