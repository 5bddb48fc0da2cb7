// Bad input: one line that says what is wrong, where, and what to do. Caught once, in main; exit status 2.
#pragma once
#include <stdexcept>
#include <string>

namespace assay {

struct BadInput : std::runtime_error {
  explicit BadInput(const std::string& message) : std::runtime_error(message) {}
};

/// What runs a case does not take it, and says why: fuzzing draws another.
struct Refused : BadInput {
  using BadInput::BadInput;
};

}  // namespace assay
