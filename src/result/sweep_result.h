// The result of a sweep as plain data: cells over kernels, swept values and outputs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/result/verification.h"

namespace assay {

struct SweepDimension {
  std::string option;
  std::vector<std::string> values;
};
template <typename Io>
void fields(Io& io, SweepDimension& x) {
  ASSAY_FIELD(option);
  ASSAY_FIELD(values);
}

struct SweepSetting {
  std::string option, value;
};
template <typename Io>
void fields(Io& io, SweepSetting& x) {
  ASSAY_FIELD(option);
  ASSAY_FIELD(value);
}

/// One run of a cell: one seed. Fields as in ErrorStatistics (src/verification/compare/error_statistics.h).
struct SweepSample {
  uint64_t seed = 0;
  double max_error = 0, p99_error = 0, max_bound = 0, p99_bound = 0, max_ratio = 0, p99_ratio = 0;
  double max_ulp = 0, p99_ulp = 0, rms_error = 0, rms_exact = 0, bias = 0, shrinkage = 0;
};
template <typename Io>
void fields(Io& io, SweepSample& x) {
  io.type("sweep_sample",
          "one seed of a cell; errors are |got - exact| in the unit of the output, over its finite elements");
  ASSAY_FIELD(seed);
  ASSAY_FIELD(max_error);
  ASSAY_FIELD(p99_error);
  ASSAY_FIELD(max_bound);
  ASSAY_FIELD(p99_bound);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(p99_ratio);
  ASSAY_FIELD(max_ulp);
  ASSAY_FIELD(p99_ulp);
  ASSAY_FIELD(rms_error);
  ASSAY_FIELD(rms_exact);
  ASSAY_FIELD(bias);
  ASSAY_FIELD(shrinkage);
}

/// One output of one kernel at one setting of everything swept, over all seeds.
struct SweepCell {
  std::string kernel;
  std::vector<SweepSetting> settings;  ///< in the order of Sweep::dimensions
  std::string output;
  CellVerdict verdict = CellVerdict::pass;  ///< the worst over the seeds
  std::string note;  ///< why, where it is neither pass nor finding; the cause of a finding
  int64_t elements = 0, violation = 0, nonfinite = 0, wrong_class = 0, undecided = 0;  ///< over all seeds
  /// Largest over the seeds; bias and shrinkage: the mean.
  SweepSample over_seeds;
  std::vector<SweepSample> samples;
  double gate_min = 0, gate_max = 0;  ///< of the log decays drawn; 0 where there are none
  bool gated = false;
  double seconds_kernel = 0, seconds_reference = 0;  ///< over all seeds
  std::string token;  ///< of the seed with the worst verdict, of several the one with the largest ratio
};
template <typename Io>
void fields(Io& io, SweepCell& x) {
  io.type("sweep_cell", "one output of one kernel at one setting of everything swept, over all seeds");
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(settings);
  ASSAY_FIELD(output, "empty where the point was refused");
  ASSAY_FIELD(verdict, "the worst of the seeds");
  ASSAY_FIELD(note, "the cause of a finding; why a cell did not pass");
  ASSAY_FIELD(elements);
  ASSAY_FIELD(violation);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(wrong_class);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(over_seeds, "the largest; of bias and shrinkage the mean");
  ASSAY_FIELD(samples);
  ASSAY_FIELD(gated);
  ASSAY_FIELD(gate_min, "of the log decays drawn; 0 where there are none");
  ASSAY_FIELD(gate_max);
  ASSAY_FIELD(seconds_kernel);
  ASSAY_FIELD(seconds_reference);
  ASSAY_FIELD(token, "of the seed with the worst verdict, of several the one with the largest ratio");
}

struct Sweep {
  std::vector<std::string> kernels;
  std::vector<SweepDimension> dimensions;
  std::vector<uint64_t> seeds;
  std::string base;  ///< token of the case that everything not swept is taken from
  std::string backend;
  double tolerance = 0;  ///< of max error / rms of the output, for "up to which length"
  bool complete = false;
  double seconds = 0;
  std::vector<SweepCell> cells;
  /// One run in full for each kernel and format: the cell whose ratio is largest, beside exact arithmetic
  /// where it is small enough.
  std::vector<Verification> worst;
};
template <typename Io>
void fields(Io& io, Sweep& x) {
  io.type("", "assay sweep: errors and bounds over options of a case");
  ASSAY_FIELD(kernels);
  ASSAY_FIELD(dimensions);
  ASSAY_FIELD(seeds);
  ASSAY_FIELD(base, "token of the case that everything not swept is taken from");
  ASSAY_FIELD(backend);
  ASSAY_FIELD(tolerance, "of the largest error / root mean square of the output; 0: by format");
  ASSAY_FIELD(complete);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(cells);
}

nlohmann::json to_json(const SweepCell&);  ///< no document of its own: part of a sweep's journal
SweepCell sweep_cell_from_json(const nlohmann::json&);
nlohmann::json to_json(const Sweep&);  ///< kind "sweep"
Sweep sweep_from_json(const nlohmann::json&);

/// The cell's value of a swept option; empty where it is not swept.
std::string setting(const SweepCell&, std::string_view option);

/// "length=64 decay=none".
std::string settings_text(const SweepCell&);

}  // namespace assay
