#include "src/result/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "src/base/numerics/fnv.h"

namespace assay {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_in_word(char c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}

/// A word that names a type, a function or a member, judged by what stands around it.
bool keeps_its_name(std::string_view before, std::string_view after) {
  after.remove_prefix(std::min(after.find_first_not_of(" \t"), after.size()));
  return before.ends_with('.') || before.ends_with("->") || before.ends_with("::") || before.ends_with('#') ||
         after.starts_with('(') || after.starts_with("::") || (!after.empty() && is_letter(after.front()));
}

/// "nonfinite/o/exp-overflow/chunk.cu:184" with the shape of the line for its number.
std::string with_shape_for_line(const Verification& v) {
  std::string shape = v.source_shape;
  if (shape.empty() && v.origin) shape = shape_of(v.origin->source_text);  // of an older document
  const size_t colon = v.cause.rfind(':');
  if (shape.empty() || colon == v.cause.npos) return v.cause;
  const std::string_view line = std::string_view(v.cause).substr(colon + 1);
  if (line.empty() || line.find_first_not_of("0123456789") != line.npos) return v.cause;
  return fmt::format("{} `{}`", v.cause.substr(0, colon), shape);
}

}  // namespace

bool names_its_cause(const Verification& v) {
  constexpr std::string_view kNoName[] = {"formula-differs", "rounding-beyond-declared", "unexplained"};
  return !v.diagnosis.empty() &&
         std::find(std::begin(kNoName), std::end(kNoName), v.diagnosis.front().cause) == std::end(kNoName);
}

std::string identity_of(const Verification& v) {
  if (v.cause.empty()) return {};
  std::string identity = undiagnosed_identity_of(v);
  if (names_its_cause(v)) identity += "/" + v.diagnosis.front().cause;
  return identity;
}

std::string name_in(const std::string& identity, const std::string& kernel, const std::string& cause) {
  // Behind the whole cause, or behind the shape of its line.
  const std::string whole = kernel + "/" + cause + "/";
  if (identity.starts_with(whole)) return identity.substr(whole.size());
  const size_t shape = identity.rfind("`/");
  return shape == identity.npos ? "" : identity.substr(shape + 2);
}

std::string undiagnosed_identity_of(const Verification& v) {
  return v.cause.empty() ? "" : v.kernel + "/" + with_shape_for_line(v);
}

std::string shape_of(std::string_view line) {
  line = line.substr(0, line.find("//"));
  std::string out;
  std::vector<std::string_view> names;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (!is_in_word(c)) {
      const bool blank = c == ' ' || c == '\t';
      if (!blank || (!out.empty() && out.back() != ' ')) out += blank ? ' ' : c;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && is_in_word(line[end])) ++end;
    const std::string_view word = line.substr(at, end - at);
    at = end;
    if (!is_letter(word.front()) || keeps_its_name(out, line.substr(end))) {
      out += word;
      continue;
    }
    const auto known = std::find(names.begin(), names.end(), word);
    out += fmt::format("${}", known - names.begin() + 1);
    if (known == names.end()) names.push_back(word);
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string fingerprint(std::string_view text) {
  return fmt::format("{:016x}", fnv1a(text));
}

}  // namespace assay
