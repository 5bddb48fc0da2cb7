#include "src/result/identity.h"

#include <fmt/format.h>

namespace assay {
namespace {

/// Blanks at the ends and runs of blanks do not count: reformatting a line leaves it the same.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// "nonfinite/o/exp-overflow/chunk.cu:184" with the line's text for its number.
std::string with_text_for_line(const std::string& cause, const Origin& origin) {
  const std::string text = squeezed(origin.source_text), line = fmt::format(":{}", origin.where.line);
  if (text.empty() || origin.where.line <= 0 || !cause.ends_with(origin.where.file + line)) return cause;
  return fmt::format("{} `{}`", cause.substr(0, cause.size() - line.size()), text);
}

}  // namespace

std::string identity_of(const Verification& v) {
  if (v.cause.empty()) return {};
  std::string identity = v.kernel + "/" + (v.origin ? with_text_for_line(v.cause, *v.origin) : v.cause);
  if (!v.diagnosis.empty()) identity += "/" + v.diagnosis.front().cause;
  return identity;
}

std::string fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace assay
