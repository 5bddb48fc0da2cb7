// The result of a fuzz run as plain data: its findings and its tables.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/result/checkout.h"
#include "src/result/verification.h"

namespace assay {

struct CoverageRow {
  std::string feature, value;
  int64_t cases = 0;
};
template <typename Io>
void fields(Io& io, CoverageRow& x) {
  ASSAY_FIELD(feature);
  ASSAY_FIELD(value);
  ASSAY_FIELD(cases);
}
struct TightnessRow {
  std::string kernel, output, dtype, decay, length_class;
  int64_t cases = 0;  ///< the undecided apart
  double max_ratio = 0, max_tightness = 0, max_relative_bound = 0;
  int64_t undecided = 0;
};
template <typename Io>
void fields(Io& io, TightnessRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(output);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(length_class);
  ASSAY_FIELD(cases);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(max_tightness);
  ASSAY_FIELD(max_relative_bound);
  ASSAY_LATER(undecided, "further cases, with an element that nothing could be said of: in no maximum");
}
struct PropertyRow {
  std::string name;
  int64_t checked = 0, failed = 0;
};
template <typename Io>
void fields(Io& io, PropertyRow& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(checked);
  ASSAY_FIELD(failed);
}

/// The same of one kernel.
struct KernelPropertyRow {
  std::string kernel, name;
  int64_t checked = 0, failed = 0;
};
template <typename Io>
void fields(Io& io, KernelPropertyRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(name);
  ASSAY_FIELD(checked);
  ASSAY_FIELD(failed);
}
/// A kernel of which fewer cases were judged than were asked for.
struct TooFewCases {
  std::string kernel;
  int64_t cases = 0;
};
template <typename Io>
void fields(Io& io, TooFewCases& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(cases);
}

/// A finding of an earlier run whose case was run again, before anything was drawn.
struct RerunRow {
  std::string kernel, token;
  std::string outcome;  ///< its cause now, "pass", "domain", or why the case is not accepted any more
};
template <typename Io>
void fields(Io& io, RerunRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(token);
  ASSAY_FIELD(outcome);
}
/// What an earlier run found and this one did not.
struct GoneFinding {
  std::string kernel, cause, token;
  std::string outcome;  ///< of running its case again (RerunRow), or "not rerun"
  std::string replay;   ///< the command that repeats it
};
template <typename Io>
void fields(Io& io, GoneFinding& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(cause);
  ASSAY_FIELD(token);
  ASSAY_FIELD(outcome);
  ASSAY_FIELD(replay);
}
struct BaselineReport {
  std::string source;
  std::vector<GoneFinding> gone;
};
template <typename Io>
void fields(Io& io, BaselineReport& x) {
  ASSAY_FIELD(source);
  ASSAY_FIELD(gone);
}

/// How much of what one kernel has to be reached was reached.
struct ReachedRow {
  std::string kernel;
  /// "branch sides": of its guards; "inputs present": combinations of optional inputs; "pairs of features":
  /// classes of two features of a case that was judged (format pair, sizes, decay, ...), of those that the
  /// kernel takes.
  std::string what;
  int64_t reached = 0, of = 0;
};
template <typename Io>
void fields(Io& io, ReachedRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(what);
  ASSAY_FIELD(reached);
  ASSAY_FIELD(of);
}

struct FuzzRun {
  std::vector<std::string> kernels;
  std::string backend;
  uint64_t seed = 0;
  int64_t cases = 0, passed = 0, undecided = 0, domain = 0;
  double seconds = 0;
  std::vector<Verification> findings;  ///< shrunk
  std::vector<PropertyRow> properties;
  std::vector<CoverageRow> coverage;
  std::vector<TightnessRow> tightness;
  std::vector<ReachedRow> reached;
  std::vector<RerunRow> reruns;
  std::optional<BaselineReport> baseline;  ///< where one was given
  /// Why the run ended before its budget was spent, where something failed that is no finding: a full disk.
  std::string ended_early;
  int64_t min_cases = 0;             ///< that should have been judged of each kernel
  std::vector<TooFewCases> too_few;  ///< kernels below that: the run is inconclusive
  std::vector<KernelPropertyRow> kernel_properties;
  std::optional<Checkout> checkout;  ///< the sources that were tested, where they lie in a checkout
  int64_t not_shrunk = 0;            ///< findings kept as they were found: the time was over
  std::string database_lost;         ///< why nothing more could be stored while it went on; else empty
};
template <typename Io>
void fields(Io& io, FuzzRun& x) {
  ASSAY_FIELD(kernels);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(cases);
  ASSAY_FIELD(passed);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(domain);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(findings);
  ASSAY_FIELD(properties);
  ASSAY_FIELD(coverage);
  ASSAY_FIELD(tightness);
  ASSAY_FIELD(reached);
  ASSAY_LATER(reruns, "findings of earlier runs whose cases were run again");
  ASSAY_LATER(baseline);
  ASSAY_LATER(ended_early, "why the run ended before its budget was spent; empty: it did not");
  ASSAY_LATER(min_cases, "that should have been judged of each kernel");
  ASSAY_LATER(too_few, "kernels of which fewer were judged: the run is inconclusive");
  ASSAY_LATER(kernel_properties, "properties by kernel");
  ASSAY_LATER(checkout, "the sources that were tested");
  ASSAY_LATER(not_shrunk, "findings kept as they were found, as the time was over");
  ASSAY_LATER(database_lost, "why nothing more could be stored while the run went on; else empty");
}

/// A run as it was stored: by which commit of this program, and when it began (UTC, "2025-01-31 12:00:00").
struct StoredRun {
  std::string commit, started;
  FuzzRun run;
};

/// A run of other kernels, after `to`: both as one.
void add_run(FuzzRun&& more, FuzzRun& to);

nlohmann::json to_json(const FuzzRun&);
FuzzRun fuzz_run_from_json(const nlohmann::json&);

}  // namespace assay
