#include "tests/result/sample_sweep.h"

#include <algorithm>
#include <cmath>

#include "src/case/case.h"
#include "tests/result/sample_result.h"

namespace assay::test {
namespace {

std::string token_of_cell(const SweepCell& cell, uint64_t seed) {
  Case c;
  c.kernel = cell.kernel;
  c.seed = seed;
  for (const SweepSetting& s : cell.settings) {
    if (s.option == "length") c.T = std::stoll(s.value);
    if (s.option == "decay") c.decay = s.value;
    if (s.option == "dtype") c.dtype = format(s.value).dtype;
  }
  return token_of(c);
}

void sum_up(SweepCell& cell) {
  SweepSample& all = cell.over_seeds;
  all = {};
  for (const SweepSample& s : cell.samples) {
    for (const auto field :
         {&SweepSample::max_error, &SweepSample::p99_error, &SweepSample::max_bound, &SweepSample::p99_bound,
          &SweepSample::max_ratio, &SweepSample::p99_ratio, &SweepSample::max_ulp, &SweepSample::p99_ulp,
          &SweepSample::rms_error, &SweepSample::rms_exact})
      all.*field = std::max(all.*field, s.*field);
    all.bias += s.bias / static_cast<double>(cell.samples.size());
    all.shrinkage += s.shrinkage / static_cast<double>(cell.samples.size());
  }
}

SweepCell cell_of(const Sweep& sweep, const std::string& kernel, std::vector<SweepSetting> settings) {
  SweepCell cell{kernel, std::move(settings), "o"};
  cell.verdict = CellVerdict::pass;
  cell.elements = 4096;
  cell.gated = true;
  cell.gate_min = -1;
  for (const uint64_t seed : sweep.seeds) {
    SweepSample s;
    s.seed = seed;
    s.max_error = 0x1p-10, s.p99_error = 0x1p-11, s.max_bound = 0x1p-7, s.p99_bound = 0x1p-8;
    s.max_ratio = 0x1p-3, s.p99_ratio = 0x1p-4, s.max_ulp = 1, s.p99_ulp = 0.5;
    s.rms_error = 0x1p-12, s.rms_exact = 1;
    cell.samples.push_back(s);
  }
  cell.token = token_of_cell(cell, sweep.seeds.front());
  return cell;
}

}  // namespace

void set_all(SweepCell& cell, double SweepSample::*field, double value) {
  for (SweepSample& s : cell.samples) s.*field = value;
}

Sweep sweep_of(std::vector<std::string> kernels, std::vector<SweepDimension> dimensions, int seeds,
               const std::function<void(SweepCell&)>& change) {
  Sweep sweep;
  sweep.kernels = std::move(kernels);
  sweep.dimensions = std::move(dimensions);
  for (int i = 1; i <= seeds; ++i) sweep.seeds.push_back(static_cast<uint64_t>(i));
  sweep.backend = "vm sm_90";
  sweep.complete = true;
  sweep.base = token_of_cell({sweep.kernels.front(), {}, ""}, 1);
  std::vector<std::vector<SweepSetting>> all = {{}};
  for (const SweepDimension& d : sweep.dimensions) {
    std::vector<std::vector<SweepSetting>> longer;
    for (const auto& settings : all)
      for (const std::string& value : d.values) {
        longer.push_back(settings);
        longer.back().push_back({d.option, value});
      }
    all = std::move(longer);
  }
  for (const auto& settings : all)
    for (const std::string& kernel : sweep.kernels) {
      SweepCell cell = cell_of(sweep, kernel, settings);
      change(cell);
      sum_up(cell);
      sweep.cells.push_back(std::move(cell));
    }
  return sweep;
}

Sweep full_sweep() {
  double number = 1;
  Sweep sweep = sweep_of(
      {"gla.chunk", "gla.fused_recurrent"},
      {{"length", {"64", "128", "256"}}, {"decay", {"none", "reset"}}, {"dtype", {"bf16", "fp32"}}}, 2,
      [&](SweepCell& cell) {
        const double length = std::stod(setting(cell, "length"));
        for (SweepSample& s : cell.samples)
          for (const auto field : {&SweepSample::max_error, &SweepSample::p99_error, &SweepSample::max_bound,
                                   &SweepSample::p99_bound, &SweepSample::max_ratio, &SweepSample::p99_ratio,
                                   &SweepSample::max_ulp, &SweepSample::p99_ulp, &SweepSample::rms_error,
                                   &SweepSample::rms_exact, &SweepSample::bias, &SweepSample::shrinkage})
            s.*field = std::sqrt(length) * 1e-4 / 3 * (1 + 0.013 * number++);
        cell.seconds_kernel = 0.001 * number++;
        cell.seconds_reference = 0.002 * number++;
      });
  SweepCell& finding = sweep.cells[5];
  finding.verdict = CellVerdict::finding;
  finding.note = "violation o";
  finding.violation = 3;
  finding.over_seeds.max_ratio = finding.samples[1].max_ratio = 2.75;
  sweep.cells[6].verdict = CellVerdict::undecided;
  sweep.cells[6].note = "undecided o";
  sweep.cells[6].undecided = 7;
  SweepCell& refused = sweep.cells[23];
  refused.verdict = CellVerdict::refused;
  refused.note = "T = 256, decay \"reset\", fp32: not taken";
  refused.output = "";
  refused.samples.clear();
  refused.over_seeds = {};
  sweep.worst = {verification_from_json(passed_verification())};
  return sweep;
}

}  // namespace assay::test
