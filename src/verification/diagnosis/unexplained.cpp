#include "src/verification/diagnosis/unexplained.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

/// Indices whose largest error/bound exceeds 1, as runs: "0-3, 16, 18-31"; "all".
std::string runs_text(const std::vector<double>& ratios) {
  constexpr int kRunsNamed = 4;
  std::string text;
  int runs = 0;
  size_t wrong = 0;
  for (size_t i = 0; i < ratios.size(); ++i) wrong += !(ratios[i] <= 1);
  if (wrong == ratios.size()) return "all";
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i] <= 1) continue;
    size_t end = i;
    while (end + 1 < ratios.size() && !(ratios[end + 1] <= 1)) ++end;
    if (runs++ == kRunsNamed) return text + ", ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        i == end ? fmt::format("{}", i) : fmt::format("{}-{}", i, end));
    i = end;
  }
  return fmt::format("{} of 0-{}", text, ratios.size() - 1);
}

}  // namespace

std::vector<std::string> wrong_places(const std::vector<OutputComparison>& outputs) {
  std::vector<std::string> lines;
  for (const OutputComparison& o : outputs) {
    const int64_t wrong = o.violation + o.wrong_class + o.nonfinite;
    if (wrong == 0) continue;
    std::string axes;
    for (const FoldedField& field : o.fields)
      if (field.max_ratio.size() > 1) axes += fmt::format("; {}: {}", field.axis, runs_text(field.max_ratio));
    lines.push_back(fmt::format("{}: {} of {} elements wrong, largest error/bound {:.3g}{}", o.name, wrong,
                                o.elements, o.max_ratio, axes));
  }
  return lines;
}

void add_unexplained(const std::vector<OutputComparison>& outputs, const Weighed& weighed,
                     std::vector<Diagnosis>& found) {
  const bool explained = std::any_of(found.begin(), found.end(),
                                     [](const Diagnosis& d) { return d.score >= thresholds::kExplained; });
  const bool violated = std::any_of(outputs.begin(), outputs.end(), [](const OutputComparison& o) {
    return o.violation + o.wrong_class > 0;
  });
  if (explained || !violated) return;
  if (found.empty()) {
    Diagnosis d;
    d.cause = kUnexplained;
    d.score = thresholds::kUnexplainedScore;
    d.explanation = "no meaning that was tried gives these values; where they are:";
    found.push_back(std::move(d));
  }
  std::vector<std::string>& evidence = found.front().evidence;
  for (std::string& line : wrong_places(outputs)) evidence.push_back(std::move(line));
  // All of every output, of which one has rows that such an order would exchange.
  const bool throughout = std::all_of(outputs.begin(), outputs.end(), [](const OutputComparison& o) {
    return 2 * (o.violation + o.wrong_class + o.nonfinite) > o.elements;
  });
  const bool exchanged = std::any_of(outputs.begin(), outputs.end(), [](const OutputComparison& o) {
    return o.axes.size() > 2 && o.axes[1].size > 1 && o.axes[2].size > 1;
  });
  if (throughout && exchanged && weighed.tried > 0 && weighed.fitting.empty())
    evidence.push_back(
        "so looks a kernel whose tensors lie with their axes in another order, as [B,H,T,K]: its plan "
        "would say that (\"layouts\")");
  if (weighed.tried + weighed.left > 0)
    evidence.push_back(
        fmt::format("{} mutated meanings of the operator were tried{}; {}", weighed.tried,
                    weighed.left ? fmt::format(", {} left out for want of time", weighed.left) : "",
                    weighed.fitting.empty() ? "none fits" : "none fits well"));
}

}  // namespace assay
