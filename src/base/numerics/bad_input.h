// Bad input: one line that says what is wrong, where, and what to do. Caught once, in main; exit status 2.
#pragma once
#include <stdexcept>
#include <string>

namespace assay {

struct BadInput : std::runtime_error {
  explicit BadInput(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace assay
