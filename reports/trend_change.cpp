#include "reports/trend_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reports/markup.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr size_t kNamed = 4;    ///< of findings, and of ratios; further ones are counted
constexpr double kMoved = 1.1;  ///< a ratio's change below it comes with other cases

/// The first few, and how many more there are.
std::string some_of(const std::vector<std::string>& texts, const char* separator) {
  std::string out;
  for (size_t i = 0; i < std::min(texts.size(), kNamed); ++i) out += (i > 0 ? separator : "") + texts[i];
  return texts.size() > kNamed ? fmt::format("{}{}{} more", out, separator, texts.size() - kNamed) : out;
}

std::map<std::string, double> ratios_of(const json& run) {
  std::map<std::string, double> ratios;  // by kernel and format
  for (const json& ratio : field_of(run, "ratios"))
    if (const json& number = field_of(ratio, "max_ratio"); number.is_number())
      ratios[text_of(ratio, "kernel") + " " + text_of(ratio, "dtype")] = number.get<double>();
  return ratios;
}

/// Largest change first.
std::vector<std::string> moved(const json& before, const json& now) {
  const std::map<std::string, double> old = ratios_of(before);
  std::vector<std::pair<double, std::string>> changes;
  for (const auto& [name, ratio] : ratios_of(now)) {
    const auto found = old.find(name);
    if (found == old.end() || !(ratio > 0) || !(found->second > 0)) continue;
    const double factor = std::max(ratio / found->second, found->second / ratio);
    if (factor > kMoved)
      changes.emplace_back(-factor, fmt::format("{} {:.3g} to {:.3g}", name, found->second, ratio));
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::string> texts;
  for (auto& [factor, text] : changes) texts.push_back(std::move(text));
  return texts;
}

}  // namespace

std::string trend_run_text(const json& runs, size_t run) {
  return fmt::format("run {}, {}", run + 1, text_of(runs.at(run), "commit"));
}

std::string trend_change(const json& trend) {
  const json& runs = field_of(trend, "runs");
  if (runs.size() < 2) return "";
  const size_t last = runs.size() - 1;
  std::vector<std::string> fresh;
  size_t gone = 0;
  for (const json& finding : field_of(trend, "findings")) {
    const json& seen = field_of(finding, "runs");
    if (seen.front().get<size_t>() == last) fresh.push_back(text_of(finding, "identity"));
    gone += seen.back().get<size_t>() == last - 1 ? 1 : 0;
  }
  const std::string names = some_of(fresh, ", ");
  const std::vector<std::string> ratios = moved(runs[last - 1], runs[last]);
  return fmt::format("{} against {} of {}: {}{}, {} gone; {}", trend_run_text(runs, last),
                     trend_run_text(runs, last - 1), text_of(runs[last - 1], "started").substr(0, 10),
                     counted(static_cast<int64_t>(fresh.size()), "new finding", "new findings"),
                     names.empty() ? "" : " (" + names + ")", gone,
                     ratios.empty() ? "no error over bound moved by more than a tenth"
                                    : "error over bound: " + some_of(ratios, "; "));
}

}  // namespace assay
