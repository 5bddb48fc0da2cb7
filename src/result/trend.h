// How fuzz runs of one database follow each other: error over bound and findings, by commit.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/result/fuzz_run.h"

namespace assay {

struct TrendRatio {
  std::string kernel, dtype;
  double max_ratio = 0;
};
template <typename Io>
void fields(Io& io, TrendRatio& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(max_ratio);
}

struct TrendRun {
  std::string commit, started;
  std::vector<std::string> kernels;
  std::string backend;
  int64_t cases = 0, passed = 0, undecided = 0, findings = 0;
  std::vector<TrendRatio> ratios;
};
template <typename Io>
void fields(Io& io, TrendRun& x) {
  ASSAY_FIELD(commit,
              "of the sources that were tested; where they lie in no checkout, \"assay\" and that of the "
              "program that ran");
  ASSAY_FIELD(started, "UTC");
  ASSAY_FIELD(kernels);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(cases);
  ASSAY_FIELD(passed);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(findings);
  ASSAY_FIELD(ratios, "largest error/bound of each kernel and format, before the output itself is rounded");
}

struct TrendFinding {
  std::string identity, kernel, replay;
  std::vector<int64_t> runs;
};
template <typename Io>
void fields(Io& io, TrendFinding& x) {
  ASSAY_FIELD(identity);
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(replay, "of the latest run that had it");
  ASSAY_FIELD(runs, "places in the list of runs");
}

struct Trend {
  std::vector<TrendRun> runs;
  std::vector<TrendFinding> findings;  ///< that any run had, in the order in which they were first seen
};
template <typename Io>
void fields(Io& io, Trend& x) {
  io.type("", "assay report --trend: the fuzz runs of a database, the oldest first");
  ASSAY_FIELD(runs);
  ASSAY_FIELD(findings);
}

/// A result of kind "trend": per run its counts and, per kernel and format, the largest error over bound; per
/// finding (by identity) the runs it was seen in. `runs` are the oldest first.
nlohmann::json trend_of(const std::vector<StoredRun>& runs);

}  // namespace assay
