#include "reports/print_mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "src/base/program/source_place.h"

namespace assay {
namespace {

/// In the order of the source.
std::vector<const Mutant*> with_outcome(const MutationRun& run, MutantOutcome outcome) {
  std::vector<const Mutant*> chosen;
  for (const Mutant& m : run.mutants)
    if (m.outcome == outcome) chosen.push_back(&m);
  std::stable_sort(chosen.begin(), chosen.end(), [](const Mutant* a, const Mutant* b) {
    return std::tie(a->where.file, a->where.line, a->id) < std::tie(b->where.file, b->where.line, b->id);
  });
  return chosen;
}

void print_counts(const Console& console, const MutationRun& run) {
  std::vector<std::vector<std::string>> rows{{"change", "killed", "within bound", "equivalent", "survived"}};
  const auto row = [&](const std::string& name, int64_t k, int64_t w, int64_t e, int64_t s) {
    rows.push_back({name, std::to_string(k), std::to_string(w), std::to_string(e), std::to_string(s)});
  };
  for (const MutationCount& c : counts_by_change(run))
    row(c.change, c.killed, c.within_bound, c.equivalent, c.survived);
  row("all", count_of(run, MutantOutcome::killed), count_of(run, MutantOutcome::within_bound),
      count_of(run, MutantOutcome::equivalent), count_of(run, MutantOutcome::survived));
  console.table(rows, 1);
}

/// Each source line once, with what survived there.
void print_by_line(const Console& console, const MutationRun& run, MutantOutcome outcome) {
  std::string last;
  for (const Mutant* m : with_outcome(run, outcome)) {
    if (const std::string here = place_key(m->where); here != last) {
      console.line(fmt::format("{}  {}", here, console.styled(Style::dim, m->source_text)));
      last = here;
    }
    console.line(fmt::format("  {}: {}  ->  {}", m->change, m->original,
                             m->replacement.empty() ? "(nothing)" : m->replacement));
    if (!m->reason.empty()) console.line(fmt::format("    {}", m->reason));
    console.line(
        fmt::format("    {}", m->token.empty() ? "--mutant " + m->id : m->token + " --mutant " + m->id));
  }
}

}  // namespace

bool has_score(const MutationRun& run) {
  return count_of(run, MutantOutcome::killed) + count_of(run, MutantOutcome::survived) > 0;
}

void print_mutation_run(const Console& console, const MutationRun& run, bool details) {
  console.line(
      fmt::format("{} on {}, seed {}: {} mutants of {} possible ones at {} pairs of source line and change",
                  run.kernel, run.backend, run.seed, run.mutants.size(), run.possible, run.places));
  console.line(fmt::format("{} cases; they execute {} of {} instructions", run.cases,
                           run.instructions_reached, run.instructions));
  for (const std::string& fault : run.set_aside)
    console.line(fmt::format("{} the kernel does not pass it itself: {}",
                             console.styled(Style::bad, "set aside"), fault));
  console.line("");
  print_counts(console, run);
  const struct {
    MutantOutcome outcome;
    const char* title;
  } parts[] = {{MutantOutcome::survived, "survived: the same bits on every case"},
               {MutantOutcome::equivalent, "equivalent: the same bits on every case, and an argument why"},
               {MutantOutcome::within_bound, "within bound: other bits, and nothing wrong"},
               {MutantOutcome::killed, "killed"}};
  for (const auto& part : parts) {
    if (count_of(run, part.outcome) == 0 || (!details && part.outcome != MutantOutcome::survived)) continue;
    console.line(fmt::format("\n{}", console.styled(Style::bold, part.title)));
    print_by_line(console, run, part.outcome);
  }
  const auto untried = run.asked - static_cast<int64_t>(run.mutants.size());
  console.line(
      fmt::format("\n{}  of {} mutants {} killed, {} survived, {} equivalent, {} within bound{} in "
                  "{:.1f} s; seed {}",
                  has_score(run) ? fmt::format("{:.1f} %", score_of(run)) : "no score", run.mutants.size(),
                  count_of(run, MutantOutcome::killed), count_of(run, MutantOutcome::survived),
                  count_of(run, MutantOutcome::equivalent), count_of(run, MutantOutcome::within_bound),
                  untried > 0 ? fmt::format(", {} untried", untried) : "", run.seconds, run.seed));
}

}  // namespace assay
