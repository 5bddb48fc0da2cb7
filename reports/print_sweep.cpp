#include "reports/print_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/sweep_answers.h"

namespace assay {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string cell_text(const SweepCell& cell) {
  if (cell.verdict == CellVerdict::finding)
    return cell.nonfinite + cell.wrong_class > 0 ? "NaN/Inf" : "beyond";
  if (cell.samples.empty()) return std::string(name_of(cell.verdict));
  double relative = 0;
  for (const SweepSample& s : cell.samples)
    relative = std::max(relative, s.rms_exact > 0 ? s.max_error / s.rms_exact : 0);
  return fmt::format("{:.2g}", relative);
}

/// The longest dimension goes across.
void print_table(const Console& console, const Sweep& sweep) {
  const auto across = std::max_element(sweep.dimensions.begin(), sweep.dimensions.end(),
                                       [](auto& a, auto& b) { return a.values.size() < b.values.size(); });
  std::vector<std::string> head = {"kernel", "output"};
  for (const SweepDimension& d : sweep.dimensions)
    if (&d != &*across) head.push_back(d.option);
  const size_t left = head.size();
  for (const std::string& value : across->values) head.push_back(value);
  std::map<std::vector<std::string>, size_t> row_of;
  Rows rows{head};
  for (const SweepCell& cell : sweep.cells) {
    std::vector<std::string> key = {cell.kernel, cell.output};
    for (const SweepDimension& d : sweep.dimensions)
      if (&d != &*across) key.push_back(setting(cell, d.option));
    const auto [at, fresh] = row_of.emplace(key, rows.size());
    if (fresh) {
      rows.push_back(key);
      rows.back().resize(head.size(), "-");
    }
    const auto column =
        std::find(across->values.begin(), across->values.end(), setting(cell, across->option));
    rows[at->second][left + static_cast<size_t>(column - across->values.begin())] = cell_text(cell);
  }
  console.line(console.styled(
      Style::bold, fmt::format("largest error / root mean square of the output, over {} seed{}; across: {}",
                               sweep.seeds.size(), sweep.seeds.size() == 1 ? "" : "s", across->option)));
  console.table(rows, left);
  console.line("");
}

}  // namespace

Verdict verdict_of(const Sweep& sweep) {
  bool undecided = false, ran = false;
  for (const SweepCell& cell : sweep.cells) {
    if (cell.verdict == CellVerdict::finding) return Verdict::finding;
    undecided |= cell.verdict == CellVerdict::undecided;
    ran |= cell.verdict == CellVerdict::pass;
  }
  return undecided ? Verdict::undecided : ran ? Verdict::pass : Verdict::domain;
}

void print_sweep(const Console& console, const Sweep& sweep) {
  if (sweep.cells.empty()) return;
  print_table(console, sweep);
  if (!sweep.complete) return;
  for (const Answer& answer : answers(sweep)) {
    console.line(console.styled(Style::bold, answer.question));
    if (!answer.table.rows.empty()) {
      std::vector<std::vector<std::string>> rows = {answer.table.head};
      rows.insert(rows.end(), answer.table.rows.begin(), answer.table.rows.end());
      console.table(rows, answer.table.head.size());
      console.prose(answer.table.note);
    }
    for (const std::string& sentence : answer.sentences) console.line("  " + sentence);
    console.line("");
  }
  const Verdict verdict = verdict_of(sweep);
  console.line(fmt::format("{}  {} cells on {} in {:.1f} s",
                           console.styled(style_of(verdict), name_of(verdict)), sweep.cells.size(),
                           sweep.backend, sweep.seconds));
}

}  // namespace assay
