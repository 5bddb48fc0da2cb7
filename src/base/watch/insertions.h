// A text with pieces put in and others left out.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace assay::watch {

/// Pieces that have one place stand in the order in which they were given.
class Insertions {
 public:
  void add(size_t at, std::string text) {
    if (!text.empty()) pieces_[at] += std::move(text);
  }
  void leave_out(size_t from, size_t to) { left_out_[from] = to, pieces_[from], pieces_[to]; }

  /// Of text[from, to), where all pieces are.
  std::string into(std::string_view text, size_t from, size_t to) const {
    std::string made;
    for (const auto& [at, piece] : pieces_) {
      if (at > from) made += text.substr(from, at - from);
      made += piece;
      const auto gone = left_out_.find(at);
      from = gone == left_out_.end() ? at : gone->second;
    }
    return made += text.substr(from, to - from);
  }

 private:
  std::map<size_t, std::string> pieces_;
  std::map<size_t, size_t> left_out_;
};

}  // namespace assay::watch
