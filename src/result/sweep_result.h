// The result of a sweep as plain data: cells over kernels, swept values and outputs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/result/verification.h"

namespace assay {

struct SweepDimension {
  std::string option;
  std::vector<std::string> values;
};

struct SweepSetting {
  std::string option, value;
};

/// One run of a cell: one seed. Fields as in ErrorStatistics (src/verification/compare/error_statistics.h).
struct SweepSample {
  uint64_t seed = 0;
  double max_error = 0, p99_error = 0, max_bound = 0, p99_bound = 0, max_ratio = 0, p99_ratio = 0;
  double max_ulp = 0, p99_ulp = 0, rms_error = 0, rms_exact = 0, bias = 0, shrinkage = 0;
};

/// One output of one kernel at one setting of everything swept, over all seeds.
struct SweepCell {
  std::string kernel;
  std::vector<SweepSetting> settings;  ///< in the order of Sweep::dimensions
  std::string output;
  std::string verdict;  ///< the worst over the seeds: "pass", "undecided", "finding", "domain", "refused"
  std::string note;     ///< why, where it is neither pass nor finding; the cause of a finding
  int64_t elements = 0, violation = 0, nonfinite = 0, wrong_class = 0, undecided = 0;  ///< over all seeds
  /// Largest over the seeds; bias and shrinkage: the mean.
  SweepSample over_seeds;
  std::vector<SweepSample> samples;
  double gate_min = 0, gate_max = 0;  ///< of the log decays drawn; 0 where there are none
  bool gated = false;
  double seconds_kernel = 0, seconds_reference = 0;  ///< over all seeds
  std::string token;  ///< of the seed with the worst verdict, of several the one with the largest ratio
};

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

nlohmann::json to_json(const SweepCell&);  ///< no document of its own: part of a sweep's journal
SweepCell sweep_cell_from_json(const nlohmann::json&);
nlohmann::json to_json(const Sweep&);  ///< kind "sweep"
Sweep sweep_from_json(const nlohmann::json&);

/// The cell's value of a swept option; empty where it is not swept.
std::string setting(const SweepCell&, std::string_view option);

/// "length=64 decay=none".
std::string settings_text(const SweepCell&);

}  // namespace assay
