// A module of which one entry is wanted.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/ptx/lexer.h"
#include "src/base/ptx/program.h"

namespace assay::ptx {

/// What is known of a text whose entries are parsed one by one, by whatever threads: where the bodies end
/// that were passed over, so that the next time they need not be read.
class PassedBodies {
 public:
  /// Behind the brace that closes the body which begins there.
  std::optional<Lexer::Place> behind(size_t begin) const {
    const std::lock_guard lock(mutex_);
    const auto found = behind_.find(begin);
    return found == behind_.end() ? std::nullopt : std::optional(found->second);
  }
  void note(size_t begin, const Lexer::Place& behind) {
    const std::lock_guard lock(mutex_);
    behind_.emplace(begin, behind);
  }
  /// Is there a function beside the entries?
  bool declares_functions(std::string_view text);

 private:
  mutable std::mutex mutex_;
  std::map<size_t, Lexer::Place> behind_;
  std::optional<bool> declares_functions_;
};

/// As parse_functions, but the bodies of other entries are not read where no function but entries stands in
/// the text: they are declared, and have no instructions. Variables and functions have the same numbers;
/// Module::lines has those of the entry alone. `passed`: of this text.
Module parse_entry(std::string_view text, std::string path, std::string_view entry,
                   PassedBodies* passed = nullptr);

}  // namespace assay::ptx
