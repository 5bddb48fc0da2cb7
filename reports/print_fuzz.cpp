#include "reports/print_fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fuzz/looseness.h"
#include "reports/console_chain.h"
#include "reports/markup.h"

namespace assay {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr int64_t kTellingCases = 5;  ///< a bound that fewer cases came near to may still be tight

std::string ratio_text(double ratio) {
  return ratio < 1000 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.3g}", ratio);
}

/// "811/840".
std::string reached_text(const FuzzRun& run, const std::string& kernel, const std::string& what) {
  for (const ReachedRow& row : run.reached)
    if (row.kernel == kernel && row.what == what && row.of > 0)
      return fmt::format("{}/{}", row.reached, row.of);
  return "-";
}

/// Of what the kernel has to be reached; absent where nothing is known of it.
std::optional<double> reached_share(const FuzzRun& run, const std::string& kernel, const std::string& what) {
  for (const ReachedRow& row : run.reached)
    if (row.kernel == kernel && row.what == what && row.of > 0)
      return 100 * static_cast<double>(row.reached) / static_cast<double>(row.of);
  return std::nullopt;
}

constexpr const char* kPairs = "pairs of features";

/// "pairs of features: median 99.1 %, least 95.0 % (gsa.chunk)".
std::string pairs_text(const FuzzRun& run) {
  std::vector<std::pair<double, std::string>> shares;
  for (const std::string& kernel : run.kernels)
    if (const auto share = reached_share(run, kernel, kPairs)) shares.push_back({*share, kernel});
  if (shares.size() < 2) return "";
  std::sort(shares.begin(), shares.end());
  return fmt::format("{}: median {:.1f} %, least {:.1f} % ({})", kPairs, shares[shares.size() / 2].first,
                     shares.front().first, shares.front().second);
}

constexpr double kFarBelow = 0.1;  ///< of what a tight bound reaches

/// A line per kernel: the largest error / bound by format, where it was, and how loose the bound was at most.
void print_kernels(const Console& console, const FuzzRun& run) {
  Rows lines{{"kernel", "cases", "bf16", "fp16", "fp32", "tightness", "branches", "inputs", "pairs",
              "worst error / bound at", "undecided"}};
  bool any_undecided = false;
  for (const std::string& kernel : run.kernels) {
    int64_t cases = 0, undecided = 0;
    for (const CoverageRow& row : run.coverage)
      if (row.feature == "kernel" && row.value == kernel) cases += row.cases;
    std::map<std::string, double> worst;  // by format
    bool decays = false;                  // else its operator has none
    const TightnessRow *at = nullptr, *loosest = nullptr;
    for (const TightnessRow& row : run.tightness) {
      if (row.kernel != kernel) continue;
      undecided += row.undecided;
      if (row.cases == 0) continue;
      double& ratio = worst[row.dtype];
      decays = decays || row.decay != "none";
      ratio = std::max(ratio, row.max_ratio);
      if (!at || row.max_ratio > at->max_ratio) at = &row;
      if (row.cases >= kTellingCases && (!loosest || row.max_tightness < loosest->max_tightness))
        loosest = &row;
    }
    lines.push_back({kernel, std::to_string(cases)});
    for (const char* dtype : {"bf16", "fp16", "fp32"})
      lines.back().push_back(worst.contains(dtype) ? ratio_text(worst.at(dtype)) : "-");
    lines.back().push_back(loosest ? fmt::format("{:.4f}", loosest->max_tightness) : "-");
    for (const char* what : {"branch sides", "inputs present"})
      lines.back().push_back(reached_text(run, kernel, what));
    const auto pairs = reached_share(run, kernel, kPairs);
    lines.back().push_back(pairs ? fmt::format("{:.1f} %", *pairs) : "-");
    lines.back().push_back(at ? fmt::format("{} {}{}, {}", at->output, at->dtype,
                                            decays ? ", decay " + at->decay : "", at->length_class)
                              : "-");
    lines.back().push_back(undecided > 0 ? std::to_string(undecided) : "-");
    any_undecided = any_undecided || undecided > 0;
  }
  if (!any_undecided)
    for (std::vector<std::string>& line : lines) line.pop_back();
  console.table(lines, 10);
  for (const char* const text :
       {"bf16, fp16, fp32: the largest error over its proved bound, above 1 is a fault",
        "tightness: the same before the output's own rounding, of the loosest output, decay and length",
        "branches: sides of guards taken; inputs: combinations of optional ones",
        "pairs: of features (formats, sizes, decay, inputs, direction, layout, values) that it takes"})
    console.prose(console.styled(Style::dim, text));
  if (any_undecided)
    console.prose(console.styled(Style::dim,
                                 "undecided: outputs of cases with an element that the bound is "
                                 "too wide to judge; in no other column but cases"));
  if (const std::string pairs = pairs_text(run); !pairs.empty()) console.line(pairs);
  console.line("");
}

/// One table per kernel and format: decay profiles down, outputs across, the largest error / bound in the
/// cells.
void print_tightness(const Console& console, const FuzzRun& run, const std::string& kernel) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    std::map<std::pair<std::string, std::string>, double> worst;  // (decay, output) -> ratio
    std::set<std::string> columns, decays;
    for (const TightnessRow& row : run.tightness) {
      if (row.kernel != kernel || row.dtype != dtype || row.cases == 0) continue;
      columns.insert(row.output);
      decays.insert(row.decay);
      double& ratio = worst[{row.decay, row.output}];
      ratio = std::max(ratio, row.max_ratio);
    }
    if (columns.empty()) continue;
    console.line(console.styled(Style::bold, fmt::format("{} {}: worst error / bound", kernel, dtype)));
    Rows rows{{"decay"}};
    rows[0].insert(rows[0].end(), columns.begin(), columns.end());
    for (const std::string& decay : decays) {
      rows.push_back({decay});
      for (const std::string& column : columns) {
        const auto found = worst.find({decay, column});
        rows.back().push_back(found == worst.end() ? "-" : ratio_text(found->second));
      }
    }
    console.table(rows, 1);
    console.line("");
  }
}

/// How tight the bound is, the output's own rounding removed: of output x dtype x decay x class of T every
/// row that is looser than it should be with the reason, and the four loosest in any case.
void print_loosest(const Console& console, const FuzzRun& run, const std::string& kernel) {
  std::vector<TightnessRow> rows;
  for (const TightnessRow& row : run.tightness)
    if (row.kernel == kernel && row.cases > 0) rows.push_back(row);
  if (rows.empty()) return;
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.max_tightness < b.max_tightness; });
  console.line(
      fmt::format("{}: largest error / bound before the output's rounding, {:.4f} to {:.4f} over {} rows; "
                  "the loosest:",
                  kernel, rows.front().max_tightness, rows.back().max_tightness, rows.size()));
  Rows lines{{"output", "dtype", "decay", "length", "cases", "tightness", "bound / companion", "why"}};
  std::set<const LooseReason*> reasons;
  for (const TightnessRow& row : rows) {
    const std::vector<LooseRow> loose = loose_rows({row}, kTellingCases);
    if (lines.size() > 4 && loose.empty()) continue;
    const LooseReason* reason = loose.empty() ? nullptr : loose.front().reason;
    if (reason) reasons.insert(reason);
    lines.push_back({row.output, row.dtype, row.decay, row.length_class, std::to_string(row.cases),
                     fmt::format("{:.4f}", row.max_tightness), fmt::format("{:.2g}", row.max_relative_bound),
                     reason          ? std::string(reason->name)
                     : loose.empty() ? "-"
                                     : "no reason known"});
  }
  console.table(lines, 4);
  for (const LooseReason* reason : reasons) console.line(fmt::format("{}: {}", reason->name, reason->text));
  console.line("");
}

/// One line per feature: "decay: none 18.2 %, mild 7.5 %, ...".
void print_coverage(const Console& console, const FuzzRun& run) {
  console.line(console.styled(Style::bold, "coverage, share of the cases"));
  Rows rows{{"feature", "values"}};
  for (const CoverageRow& row : run.coverage) {
    if (row.feature == "kernel" || row.value == "no") continue;  // in the kernels' lines; what is not "yes"
    const double share =
        100 * static_cast<double>(row.cases) / static_cast<double>(std::max<int64_t>(1, run.cases));
    const std::string value = fmt::format("{} {:.1f} %", row.value, share);
    if (rows.back()[0] == row.feature)
      rows.back()[1] += ", " + value;
    else
      rows.push_back({row.feature, value});
  }
  console.table(rows, 2);
  console.line("");
}

void print_properties(const Console& console, const FuzzRun& run) {
  console.line(console.styled(Style::bold, "properties"));
  Rows rows{{"property", "checked", "failed"}};
  for (const PropertyRow& row : run.properties)
    rows.push_back({row.name, std::to_string(row.checked), std::to_string(row.failed)});
  console.table(rows, 1);
  console.line("");
}

void print_findings(const Console& console, const FuzzRun& run) {
  for (const Verification& v : run.findings) {
    const bool mild = v.verdict == Verdict::undecided || v.known.value_or(false);
    console.line(console.styled(mild ? Style::doubtful : Style::bad, v.cause) +
                 (v.known ? *v.known ? "  known" : "  new" : ""));
    if (v.origin)
      console.prose("  " + v.origin->sentence);
    else if (!v.lines.empty())
      console.line(fmt::format("  {}  {}", short_place(v.lines.front().at.where), v.lines.front().at.text));
    if (!v.diagnosis.empty())
      console.prose(fmt::format("  {}: {}", v.diagnosis.front().cause, v.diagnosis.front().explanation));
    for (const std::string& failure : v.properties_failed) console.prose("  " + failure);
    for (const SameDefect& other : v.also)
      console.line(
          fmt::format("  the same defect: {}\n    {}", other.sentence, Console::command(other.replay)));
    console.line("  " + Console::command(v.replay));
  }
  if (!run.findings.empty()) console.line("");
}

/// What the baseline has and this run has not, with what its case gives now.
void print_gone(const Console& console, const FuzzRun& run) {
  if (!run.baseline) return;
  for (const GoneFinding& gone : run.baseline->gone)
    console.line(fmt::format("gone since {}: {} {}\n  now: {}\n  {}", run.baseline->source, gone.kernel,
                             gone.cause, gone.outcome, Console::command(gone.replay)));
  if (!run.baseline->gone.empty()) console.line("");
}

/// "3 findings", with a baseline "3 findings (1 new, 2 known, 1 gone)".
std::string findings_text(const FuzzRun& run) {
  const auto count = static_cast<int64_t>(run.findings.size());
  std::string text = counted(count, "finding", "findings");
  if (!run.baseline) return text;
  const auto known = std::count_if(run.findings.begin(), run.findings.end(),
                                   [](const Verification& v) { return v.known.value_or(false); });
  return text + fmt::format(" ({} new, {} known, {} gone)", count - known, known, run.baseline->gone.size());
}

/// Kernels whose every error was far inside its bound, so that their declared arithmetic may be too generous.
void print_generous(const Console& console, const FuzzRun& run) {
  for (const std::string& kernel : run.kernels) {
    double nearest = 0;
    int64_t cases = 0;
    bool far = true;
    for (const TightnessRow& row : run.tightness) {
      if (row.kernel != kernel) continue;
      nearest = std::max(nearest, row.max_tightness);
      cases += row.cases;
      far = far && row.max_tightness < kFarBelow * tight_from(row);
    }
    if (!far || cases < kTellingCases || nearest == 0) continue;
    console.line(
        fmt::format("{}: no error came nearer to its bound than 1/{:.3g} of it: the arithmetic may be "
                    "declared too generously, "
                    "and a smaller fault would pass (assay list arithmetic; --details)",
                    kernel, 1 / nearest));
  }
}

}  // namespace

std::string_view verdict_of(const FuzzRun& run) {
  const auto has = [&](Verdict verdict) {
    return std::any_of(run.findings.begin(), run.findings.end(),
                       [&](const auto& v) { return v.verdict == verdict; });
  };
  if (has(Verdict::finding)) return name_of(Verdict::finding);
  if (!run.ended_early.empty()) return "incomplete";
  if (!run.too_few.empty()) return "inconclusive";
  if (run.undecided > 0) return name_of(Verdict::undecided);
  return name_of(run.cases > 0 && run.domain == run.cases ? Verdict::domain : Verdict::pass);
}

void print_fuzz_run(const Console& console, const FuzzRun& run, bool details) {
  for (const std::string& kernel : run.kernels) {
    if (!details) break;
    print_tightness(console, run, kernel);
    print_loosest(console, run, kernel);
  }
  const bool judged = !run.tightness.empty() || !run.reached.empty();  // against an operator
  if (judged) print_kernels(console, run);
  if (judged) print_coverage(console, run);
  print_properties(console, run);
  print_findings(console, run);
  print_gone(console, run);
  print_generous(console, run);
  const bool all_known =
      !run.findings.empty() && std::all_of(run.findings.begin(), run.findings.end(),
                                           [](const Verification& v) { return v.known.value_or(false); });
  const std::string_view verdict = verdict_of(run);
  const Style style = style_of(value_named<Verdict>(verdict).value_or(Verdict::undecided));
  console.line(fmt::format(
      "{}  {} on {} in {:.1f} s ({:.1f} a second): {} passed, {} out of domain, {} undecided; {}; seed {}",
      all_known ? console.styled(Style::doubtful, "known") : console.styled(style, verdict),
      counted(run.cases, "case", "cases"), run.backend, run.seconds,
      static_cast<double>(run.cases) / std::max(run.seconds, 1e-3), run.passed, run.domain, run.undecided,
      findings_text(run), run.seed));
  for (const TooFewCases& few : run.too_few)
    console.line(
        fmt::format("inconclusive: {} of {} judged, at least {} asked for (--min-cases); give more --time",
                    counted(few.cases, "case", "cases"), few.kernel, run.min_cases));
  if (run.not_shrunk > 0)
    console.line(fmt::format("{} kept as found, as the time was over: replay explains {}",
                             counted(run.not_shrunk, "finding is", "findings are"),
                             run.not_shrunk == 1 ? "it" : "them"));
}

}  // namespace assay
