#include "src/cli/print_defects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/recorded_defects.h"
#include "src/case/case.h"

namespace assay::cli {
namespace {

constexpr int64_t kMostMissed = 2;
constexpr double kLeastCauses = 0.9, kLeastLines = 0.95;

/// Why a trial does not count as found; empty where it does.
std::string why_missed(const DefectTrial& trial) {
  if (trial.found()) return "";
  if (trial.token.empty()) return "no finding";
  if (trial.replay.verdict != Verdict::finding)
    return fmt::format("its token gives {} when replayed", name_of(trial.replay.verdict));
  return fmt::format("the clean kernel gives {} ({}) too", name_of(trial.replay.clean_verdict),
                     trial.replay.clean_cause);
}

/// What a trial found, in a few words: kind and output of its cause.
std::string kind_of(const DefectTrial& trial) {
  const std::string& cause = trial.replay.cause;
  return cause.substr(0, cause.find('/', cause.find('/') + 1));
}

std::string verdict_on(const std::string& what, bool right) {
  return what.empty() ? "-" : fmt::format("{} ({})", what, right ? "right" : "wrong");
}

const Defect* defect_of(const DefectTrial& trial) {
  for (const Defect& defect : defects())
    if (defect.id() == trial.defect) return &defect;
  return nullptr;
}

std::string escaped(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + escaped(cell) + " |";
  return text + '\n';
}

/// "T = 9, K = 1": what the shrunk case needs.
std::string sizes_of_token(const std::string& token) {
  if (token.empty()) return "-";
  const Case c = parse_token(token);
  return fmt::format("B{} T{} H{} K{} V{}", c.B, c.T, c.H, c.K, c.V);
}

std::string trial_row(const DefectTrial& t) {
  const Defect* defect = defect_of(t);
  return row({'`' + t.defect + '`', defect ? defect->what : "",
              t.found() ? fmt::format("{} cases, {:.0f} s", t.cases, t.seconds) : "missed: " + why_missed(t),
              t.token.empty() ? "-" : kind_of(t), verdict_on(t.cause, t.cause_right),
              verdict_on(t.line, t.line_right), sizes_of_token(t.token)});
}

std::string recorded_row(const RecordedDefect& recorded) {
  std::vector<std::string> patches;
  for (const std::string_view patch : recorded.patches) patches.push_back(fmt::format("`{}`", patch));
  return row({std::string(recorded.id), std::string(recorded.title), std::string(name_of(recorded.group)),
              patches.empty() ? std::string(recorded.reason) : fmt::format("{}", fmt::join(patches, ", "))});
}

}  // namespace

DefectTotals::DefectTotals(const std::vector<DefectTrial>& trials) : defects(std::ssize(trials)) {
  for (const DefectTrial& trial : trials) {
    if (!trial.found()) continue;
    ++found;
    cause_right += trial.cause_right;
    nonfinite += trial.nonfinite;
    line_right += trial.nonfinite && trial.line_right;
    finite_line_right += !trial.nonfinite && trial.line_right;
    finite_line_declared += !trial.nonfinite && trial.line_declared;
  }
}

bool DefectTotals::within_limits() const {
  return defects - found <= kMostMissed &&
         static_cast<double>(cause_right) >= kLeastCauses * static_cast<double>(found) &&
         static_cast<double>(line_right) >= kLeastLines * static_cast<double>(nonfinite);
}

std::string DefectTotals::sentence() const {
  return fmt::format(
      "{} of {} defects found; the right cause ranked first for {} of {}; the patched line traced, or "
      "named as what left memory unwritten, for {} of {} that are not finite; the patched statement among "
      "the lines named for {} of {} that are (a declared "
      "line for {})",
      found, defects, cause_right, found, line_right, nonfinite, finite_line_right, found - nonfinite,
      finite_line_declared);
}

void print_trial(const Console& console, const DefectTrial& t) {
  if (!t.found()) {
    console.line(fmt::format("{} {}: {} ({} cases, {:.0f} s)", console.styled(Style::bad, "missed"), t.defect,
                             why_missed(t), t.cases, t.seconds));
    if (!t.token.empty()) console.line("  " + Console::command("assay replay " + t.token));
    return;
  }
  const bool right = t.cause_right && (!t.nonfinite || t.line_right);
  console.line(fmt::format("{} {}: {}, {} cases, {:.0f} s; cause {}; line {}",
                           console.styled(right ? Style::good : Style::doubtful, "found "), t.defect,
                           kind_of(t), t.cases, t.seconds, verdict_on(t.cause, t.cause_right),
                           verdict_on(t.line, t.line_right)));
  console.line("  " + Console::command("assay replay " + t.token));
}

void print_totals(const Console& console, const DefectTotals& totals) {
  console.line("");
  console.line(fmt::format(
      "{}  {}",
      totals.within_limits() ? console.styled(Style::good, "pass") : console.styled(Style::bad, "FINDING"),
      totals.sentence()));
  if (!totals.within_limits())
    console.line(
        fmt::format("limits: at most {} missed, the right cause for {:.0f} %, the patched line for {:.0f} %",
                    kMostMissed, 100 * kLeastCauses, 100 * kLeastLines));
}

std::string defects_page(const std::vector<DefectTrial>& trials, const std::string& command,
                         const std::string& day) {
  std::string page = fmt::format(
      "# Known defects\n\n"
      "Each patch here puts one defect into a kernel: most of them stood in public linear-attention kernels "
      "once "
      "(the second table), some are planted. `KERNEL@ID` is the kernel with that patch. This page is the "
      "output of "
      "`{}` of {}: each was fuzzed without a hint until its first finding was shrunk. It is found if that "
      "finding's token fails again on the defective kernel and passes on the clean one. The cause is the one "
      "ranked first, the line the one that a value which is not finite was traced to, with "
      "two more where nothing had written it, or of finite values the "
      "likeliest of three; those are right where one of the three is in a statement that the patch changes, "
      "or "
      "right beside what it takes away.\n\n"
      "{}.\n\n",
      command, day, DefectTotals(trials).sentence());
  page += row({"defect", "what", "found after", "finding", "cause", "line", "shrunk to"});
  page += row({"---", "---", "---", "---", "---", "---", "---"});
  for (const DefectTrial& trial : trials) page += trial_row(trial);
  page += "\n## Recorded defects\n\n";
  page += row({"defect", "what", "group", "patch, or why there is none"}) + row({"---", "---", "---", "---"});
  for (const RecordedDefect& recorded : recorded_defects()) page += recorded_row(recorded);
  return page;
}

}  // namespace assay::cli
