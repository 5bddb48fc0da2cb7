#include "src/cli/whole_number.h"

#include <fmt/format.h>

#include <charconv>

namespace assay::cli {

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  const auto check = [least, most](std::string& text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) return std::string();
    return fmt::format("{} is not a whole number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  const auto check = [](std::string& text) {
    return text.empty() ? std::string("an empty value; give one, or leave the option out") : std::string();
  };
  return CLI::Validator(check, "");
}

}  // namespace assay::cli
