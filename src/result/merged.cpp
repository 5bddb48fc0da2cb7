#include "src/result/merged.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/result/document.h"
#include "src/result/fuzz_run.h"
#include "src/result/mutation.h"
#include "src/result/one_per_defect.h"
#include "src/result/sweep_result.h"

namespace assay {
namespace {

using nlohmann::json;

/// What all parts must have in common.
template <typename T>
void require_same(const std::string& source, const char* what, const T& first, const T& other) {
  if (!(first == other))
    throw BadInput(
        fmt::format("{}: another {} than the first result has: parts of one campaign are merged, "
                    "as the shards of one command write them",
                    source, what));
}

/// Rows of a table by their names.
template <typename Row, typename Key, typename Add>
void add_rows(std::vector<Row>& all, const std::vector<Row>& more, Key key, Add add) {
  for (const Row& row : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Row& r) { return key(r) == key(row); });
    if (same == all.end())
      all.push_back(row);
    else
      add(*same, row);
  }
}

void add_tables(FuzzRun& all, const FuzzRun& part) {
  add_rows(
      all.properties, part.properties, [](const PropertyRow& r) { return r.name; },
      [](PropertyRow& r, const PropertyRow& more) { r.checked += more.checked, r.failed += more.failed; });
  add_rows(
      all.coverage, part.coverage, [](const CoverageRow& r) { return std::pair(r.feature, r.value); },
      [](CoverageRow& r, const CoverageRow& more) { r.cases += more.cases; });
  add_rows(
      all.tightness, part.tightness,
      [](const TightnessRow& r) {
        return std::vector{r.kernel, r.output, r.dtype, r.decay, r.length_class};
      },
      [](TightnessRow& r, const TightnessRow& more) {
        r.cases += more.cases, r.undecided += more.undecided;
        r.max_ratio = std::max(r.max_ratio, more.max_ratio);
        r.max_tightness = std::max(r.max_tightness, more.max_tightness);
        r.max_relative_bound = std::max(r.max_relative_bound, more.max_relative_bound);
      });
  add_rows(
      all.kernel_properties, part.kernel_properties,
      [](const KernelPropertyRow& r) { return std::pair(r.kernel, r.name); },
      [](KernelPropertyRow& r, const KernelPropertyRow& more) {
        r.checked += more.checked, r.failed += more.failed;
      });
  add_rows(
      all.reached, part.reached, [](const ReachedRow& r) { return std::pair(r.kernel, r.what); },
      [](ReachedRow& r, const ReachedRow& more) {
        r.reached = std::max(r.reached, more.reached), r.of = std::max(r.of, more.of);
      });
}

/// A kernel has too few cases where all parts have too few of it, and together.
void add_too_few(FuzzRun& all, const FuzzRun& part) {
  std::erase_if(all.too_few, [&](TooFewCases& few) {
    for (const TooFewCases& other : part.too_few)
      if (other.kernel == few.kernel) return (few.cases += other.cases) >= all.min_cases;
    return true;
  });
}

/// What was not found again by any part is gone.
void add_baseline(FuzzRun& all, const FuzzRun& part) {
  if (!all.baseline || !part.baseline) return;
  std::erase_if(all.baseline->gone, [&](GoneFinding& gone) {
    const auto same = [&](const GoneFinding& other) {
      return other.kernel == gone.kernel && other.cause == gone.cause && other.token == gone.token;
    };
    const auto& others = part.baseline->gone;
    const auto found = std::find_if(others.begin(), others.end(), same);
    if (found != others.end() && gone.outcome == "not rerun") gone.outcome = found->outcome;
    return found == others.end();
  });
}

FuzzRun merged_runs(const std::vector<ResultPart>& parts) {
  FuzzRun all;
  for (const ResultPart& part : parts) {
    FuzzRun run = fuzz_run_from_json(*part.document);
    if (&part == &parts.front()) {
      all = std::move(run);
      continue;
    }
    require_same(part.source, "seed", all.seed, run.seed);
    require_same(part.source, "list of kernels", all.kernels, run.kernels);
    require_same(part.source, "backend", all.backend, run.backend);
    all.cases += run.cases, all.passed += run.passed;
    all.undecided += run.undecided, all.domain += run.domain;
    all.seconds = std::max(all.seconds, run.seconds);
    add_rows(
        all.findings, run.findings, [](const Verification& v) { return std::pair(v.kernel, v.cause); },
        [](Verification&, const Verification&) {});
    add_tables(all, run);
    add_too_few(all, run);
    all.not_shrunk += run.not_shrunk;
    add_baseline(all, run);
    all.reruns.insert(all.reruns.end(), run.reruns.begin(), run.reruns.end());
    if (all.ended_early.empty()) all.ended_early = run.ended_early;
    if (all.database_lost.empty()) all.database_lost = run.database_lost;
  }
  all.findings = one_per_defect(std::move(all.findings));
  return all;
}

/// Place of a cell's point among all: kernels within settings, the first dimension slowest.
size_t place_of(const Sweep& sweep, const SweepCell& cell) {
  const auto position = [](const auto& list, const std::string& value) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), value) - list.begin());
  };
  size_t place = 0;
  for (const SweepDimension& d : sweep.dimensions)
    place = place * d.values.size() + position(d.values, setting(cell, d.option));
  return place * sweep.kernels.size() + position(sweep.kernels, cell.kernel);
}

/// One for each kernel and format: the largest ratio of its cells.
void keep_worst(Sweep& all) {
  std::map<std::string, double> ratio;
  for (const SweepCell& cell : all.cells) {
    double& largest = ratio.emplace(cell.token, 0).first->second;
    largest = std::max(largest, cell.over_seeds.max_ratio);
  }
  std::vector<Verification> kept;
  for (Verification& v : all.worst) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Verification& other) {
      return other.kernel == v.kernel && other.case_.dtype == v.case_.dtype;
    });
    if (same == kept.end())
      kept.push_back(std::move(v));
    else if (ratio[v.token] > ratio[same->token])
      *same = std::move(v);
  }
  all.worst = std::move(kept);
}

Sweep merged_sweeps(const std::vector<ResultPart>& parts) {
  Sweep all;
  std::map<size_t, std::string> from;  // by place
  for (const ResultPart& part : parts) {
    Sweep sweep = sweep_from_json(*part.document);
    if (&part == &parts.front()) {
      all = sweep;
      all.cells.clear(), all.worst.clear();
    }
    require_same(part.source, "case", all.base, sweep.base);
    require_same(part.source, "list of seeds", all.seeds, sweep.seeds);
    require_same(part.source, "list of kernels", all.kernels, sweep.kernels);
    require_same(part.source, "backend", all.backend, sweep.backend);
    require_same(part.source, "tolerance", all.tolerance, sweep.tolerance);
    require_same(part.source, "range of options", parts.front().document->at("dimensions"),
                 part.document->at("dimensions"));
    for (const SweepCell& cell : sweep.cells) {
      const std::string& first = from.emplace(place_of(all, cell), part.source).first->second;
      if (first != part.source)
        throw BadInput(fmt::format("{}: {} at {} is in {} too: merge each shard once", part.source,
                                   cell.kernel, settings_text(cell), first));
    }
    all.cells.insert(all.cells.end(), sweep.cells.begin(), sweep.cells.end());
    all.worst.insert(all.worst.end(), sweep.worst.begin(), sweep.worst.end());
    all.seconds = std::max(all.seconds, sweep.seconds);
  }
  std::stable_sort(all.cells.begin(), all.cells.end(), [&](const SweepCell& a, const SweepCell& b) {
    return place_of(all, a) < place_of(all, b);
  });
  size_t points = all.kernels.size();
  for (const SweepDimension& d : all.dimensions) points *= d.values.size();
  all.complete = from.size() == points;
  keep_worst(all);
  return all;
}

MutationRun merged_mutations(const std::vector<ResultPart>& parts) {
  MutationRun all;
  std::map<std::string, std::string> from;  // by mutant
  for (const ResultPart& part : parts) {
    const MutationRun run = read_document<MutationRun>("mutation", *part.document);
    for (const Mutant& mutant : run.mutants) {
      const auto [known, fresh] = from.emplace(mutant.id, part.source);
      if (!fresh)
        throw BadInput(fmt::format("{}: mutant {} is in {} too: merge each shard once", part.source,
                                   mutant.id, known->second));
    }
    if (&part == &parts.front()) {
      all = run;
      continue;
    }
    require_same(part.source, "kernel", all.kernel, run.kernel);
    require_same(part.source, "seed", all.seed, run.seed);
    require_same(part.source, "backend", all.backend, run.backend);
    require_same(part.source, "number of possible mutants", all.possible, run.possible);
    all.asked += run.asked;
    all.seconds = std::max(all.seconds, run.seconds);
    all.mutants.insert(all.mutants.end(), run.mutants.begin(), run.mutants.end());
  }
  return all;
}

/// What 'assay defects --json' writes.
json merged_defects(const std::vector<ResultPart>& parts) {
  json all = *parts.front().document;
  all["trials"] = json::array();
  std::map<std::string, std::string> from;  // by defect
  for (const ResultPart& part : parts) {
    const json& document = *part.document;
    require_same(part.source, "seed", all.at("seed"), document.at("seed"));
    require_same(part.source, "time", all.at("time_s"), document.at("time_s"));
    for (const json& trial : document.at("trials")) {
      const auto [known, fresh] = from.emplace(trial.at("defect").get<std::string>(), part.source);
      if (!fresh)
        throw BadInput(fmt::format("{}: {} is in {} too: merge each shard once", part.source, known->first,
                                   known->second));
      all["trials"].push_back(trial);
    }
  }
  return all;
}

}  // namespace

json merged(const std::vector<ResultPart>& parts) {
  const auto kind_of = [](const ResultPart& part) { return part.document->value("kind", std::string()); };
  const std::string kind = kind_of(parts.front());
  for (const ResultPart& part : parts)
    if (kind_of(part) != kind)
      throw BadInput(fmt::format("{}: of kind '{}', and {} is of kind '{}': merge results of one campaign",
                                 part.source, kind_of(part), parts.front().source, kind));
  if (kind == "fuzz") return to_json(merged_runs(parts));
  if (kind == "sweep") return to_json(merged_sweeps(parts));
  if (kind == "mutation") return to_json(merged_mutations(parts));
  if (kind == "defects") return merged_defects(parts);
  throw BadInput(fmt::format("{}: of kind '{}': results of fuzz, sweep, mutate and defects are merged",
                             parts.front().source, kind));
}

}  // namespace assay
