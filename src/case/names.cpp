#include "src/case/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay {
namespace {

/// As names are compared: letters of either case are the same.
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

const std::string* nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  // Two edits make any word of three letters of most others.
  size_t best = std::max<size_t>(name.size() < 4 ? 1 : 2, name.size() / 3) + 1;
  for (const auto& candidate : known) {
    const size_t distance = edit_distance(lower(name), lower(candidate));
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest;
}

std::string unknown_name(std::string_view what, std::string_view name,
                         const std::vector<std::string>& known) {
  if (const std::string* const nearest = nearest_name(name, known))
    return fmt::format("unknown {} '{}': did you mean '{}'?", what, name, *nearest);
  return fmt::format("unknown {} '{}': there {} {}", what, name, known.size() == 1 ? "is" : "are",
                     known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

}  // namespace assay
