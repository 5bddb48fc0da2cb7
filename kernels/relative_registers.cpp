#include "kernels/relative_registers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>

namespace assay {
namespace {

constexpr char kUp = 1, kDown = 2;
constexpr size_t kLongestNumber = 9;

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

template <class Is>
size_t end_of(std::string_view text, size_t at, Is is) {
  while (at < text.size() && is(text[at])) ++at;
  return at;
}

/// Digits that print again as they are.
std::optional<int64_t> number(std::string_view digits) {
  if (digits.empty() || digits.size() > kLongestNumber || (digits.size() > 1 && digits[0] == '0')) return {};
  int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// What registers are counted from, as a text is read.
class Counted {
 public:
  void line(std::string_view rest) {
    const size_t first = rest.find_first_not_of(" \t");
    open_ = first == std::string_view::npos || rest[first] != '@';
  }
  int64_t from(std::string_view kind) { return last_.try_emplace(std::string(kind), 0).first->second; }
  void named(std::string_view kind, int64_t value) {
    if (open_) last_.insert_or_assign(std::string(kind), value);
    open_ = false;
  }

 private:
  std::map<std::string, int64_t, std::less<>> last_;
  bool open_ = true;
};

/// Calls `register_at(kind, end of kind)`, which appends what stands for a register and gives the place
/// behind it, or the end of the kind where it is none; copies the rest.
template <class RegisterAt>
std::optional<std::string> rewritten(std::string_view text, Counted& counted, RegisterAt register_at) {
  std::string result;
  result.reserve(text.size() + text.size() / 16);
  counted.line(text);
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find_first_of("%\n", at), text.size());
    result.append(text, at, next - at);
    if (next == text.size()) break;
    result += text[next];
    at = next + 1;
    if (text[next] == '\n') {
      counted.line(text.substr(at));
      continue;
    }
    const size_t end = end_of(text, at, is_letter);
    const std::string_view kind = text.substr(at, end - at);
    result += kind;
    const std::optional<size_t> behind = kind.empty() ? end : register_at(kind, end, result);
    if (!behind) return {};
    at = *behind;
  }
  return result;
}

}  // namespace

std::optional<std::string> with_relative_registers(std::string_view text) {
  if (text.find_first_of(std::string{kUp, kDown}) != std::string_view::npos) return {};
  Counted counted;
  return rewritten(text, counted,
                   [&](std::string_view kind, size_t at, std::string& to) -> std::optional<size_t> {
                     const size_t end = end_of(text, at, is_digit);
                     const std::optional<int64_t> value = number(text.substr(at, end - at));
                     if (!value) return at;
                     const int64_t distance = *value - counted.from(kind);
                     counted.named(kind, *value);
                     to += distance < 0 ? kDown : kUp;
                     to += std::to_string(distance < 0 ? -distance : distance);
                     return end;
                   });
}

std::optional<std::string> with_absolute_registers(std::string_view text) {
  Counted counted;
  return rewritten(text, counted,
                   [&](std::string_view kind, size_t at, std::string& to) -> std::optional<size_t> {
                     if (at == text.size() || (text[at] != kUp && text[at] != kDown)) return at;
                     const size_t end = end_of(text, at + 1, is_digit);
                     const std::optional<int64_t> distance = number(text.substr(at + 1, end - at - 1));
                     if (!distance) return {};
                     const int64_t value = counted.from(kind) + (text[at] == kDown ? -*distance : *distance);
                     counted.named(kind, value);
                     to += std::to_string(value);
                     return end;
                   });
}

}  // namespace assay
