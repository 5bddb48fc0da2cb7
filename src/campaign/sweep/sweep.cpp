#include "src/campaign/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "fuzz/cost.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/journal.h"
#include "src/result/tool.h"
#include "src/verification/compare/error_statistics.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

/// A worst run is repeated beside exact arithmetic up to this estimated size in lane-instructions.
constexpr double kShadowed = 3e8;

/// One kernel at one setting: all its seeds.
struct Point {
  const Kernel* kernel = nullptr;
  std::vector<SweepSetting> settings;
  Case case_;  ///< of the first seed
  double cost = 0;
};

std::vector<Point> points_of(const SweepOptions& options) {
  std::vector<Point> points;
  int64_t number = 0;
  std::vector<size_t> at(options.dimensions.size(), 0);
  for (bool more = true; more;) {
    Point point{nullptr, {}, options.base};
    for (size_t i = 0; i < at.size(); ++i) {
      const Dimension& d = options.dimensions[i];
      apply(point.case_, d.option, d.values[at[i]]);
      point.settings.push_back({d.option, d.values[at[i]]});
    }
    for (const Kernel* kernel : options.kernels) {
      point.kernel = kernel;
      point.case_.kernel = kernel->name;
      point.cost = estimated_cost(point.case_);
      if (options.shard.takes(number++)) points.push_back(point);
    }
    more = false;
    for (size_t i = at.size(); i-- > 0 && !more;) {
      more = ++at[i] < options.dimensions[i].values.size();
      if (!more) at[i] = 0;
    }
  }
  return points;
}

SweepSample sample_of(uint64_t seed, const ErrorStatistics& s) {
  return {seed,      s.max_error, s.p99_error, s.max_bound, s.p99_bound, s.max_ratio, s.p99_ratio,
          s.max_ulp, s.p99_ulp,   s.rms_error, s.rms_exact, s.bias,      s.shrinkage};
}

void add_sample(SweepCell& cell, const SweepSample& sample) {
  cell.samples.push_back(sample);
  SweepSample& all = cell.over_seeds;
  for (const auto field :
       {&SweepSample::max_error, &SweepSample::p99_error, &SweepSample::max_bound, &SweepSample::p99_bound,
        &SweepSample::max_ratio, &SweepSample::p99_ratio, &SweepSample::max_ulp, &SweepSample::p99_ulp,
        &SweepSample::rms_error, &SweepSample::rms_exact})
    all.*field = std::max(all.*field, sample.*field);
  const auto n = static_cast<double>(cell.samples.size());
  all.bias += (sample.bias - all.bias) / n;
  all.shrinkage += (sample.shrinkage - all.shrinkage) / n;
}

/// Range of the log decays among the inputs.
void note_gates(SweepCell& cell, const Operator& op, const TensorMap& inputs) {
  for (const ArgumentSpec& spec : op.inputs) {
    const auto found = inputs.find(std::string(spec.name));
    if (spec.role != Role::log_decay || found == inputs.end()) continue;
    for (int64_t i = 0; i < found->second.size(); ++i) {
      const double g = found->second.value(i);
      cell.gate_min = cell.gated ? std::min(cell.gate_min, g) : g;
      cell.gate_max = cell.gated ? std::max(cell.gate_max, g) : g;
      cell.gated = true;
    }
  }
}

class Sweeper {
 public:
  Sweeper(const SweepOptions& options, Backend& backend)
      : options_(options),
        backend_(backend),
        budget_(0, options.interrupted),
        points_(points_of(options)),
        done_(points_.size()) {
    if (points_.empty())
      throw BadInput(fmt::format("--shard {}: the sweep has fewer points than shards", options.shard.text()));
    result_.backend = backend.name();
    result_.tolerance = options.tolerance;
    for (const Kernel* kernel : options.kernels) result_.kernels.push_back(kernel->name);
    for (const Dimension& d : options.dimensions) result_.dimensions.push_back({d.option, d.values});
    for (int i = 0; i < options.seeds; ++i)
      result_.seeds.push_back(options.base.seed + static_cast<uint64_t>(i));
    result_.base = token_of(options.base);
    for (const Point& point : points_) total_cost_ += point.cost;
    journal_ = Journal(options.journal, "sweep", identity());
    resume();
  }

  Sweep run() {
    order_.resize(points_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    // Dear points first, so that none of them is left for the end alone.
    std::stable_sort(order_.begin(), order_.end(),
                     [this](size_t a, size_t b) { return points_[a].cost > points_[b].cost; });
    Engine engine;
    engine.run(options_.jobs, [this] { return next(); });
    result_.complete = true;
    for (const auto& cells : done_) {
      result_.complete &= cells.has_value();
      if (cells) result_.cells.insert(result_.cells.end(), cells->begin(), cells->end());
    }
    refuse_empty();
    if (result_.complete) describe_worst();
    result_.seconds = budget_.seconds();
    return std::move(result_);
  }

 private:
  std::string identity() const {
    nlohmann::json text = {{"commit", tool_commit()},    {"base", result_.base},
                           {"kernels", result_.kernels}, {"seeds", result_.seeds},
                           {"backend", result_.backend}, {"own", options_.replay_suffix}};
    if (!options_.shard.whole()) text["shard"] = options_.shard.text();
    for (const SweepDimension& d : result_.dimensions) text["over"].push_back({d.option, d.values});
    return text.dump();
  }

  /// Its name in the journal: the case of its first seed says kernel and settings.
  static std::string job_of(const Point& point) { return token_of(point.case_); }

  void resume() {
    for (size_t i = 0; i < points_.size(); ++i)
      if (const nlohmann::json* record = journal_.find(job_of(points_[i]))) keep(i, *record);
  }

  Task next() {
    while (next_ < order_.size() && done_[order_[next_]]) ++next_;
    if (next_ == order_.size() || budget_.over()) return nullptr;
    const size_t index = order_[next_++];
    return journaled(
        journal_, job_of(points_[index]), [this, index] { return record_of(run_point(points_[index])); },
        [this, index](const nlohmann::json& record) {
          keep(index, record);
          if (options_.progress)
            options_.progress(finished_cost_ / total_cost_, finished_, static_cast<int64_t>(points_.size()),
                              budget_.seconds());
        });
  }

  /// Null where the point was interrupted.
  static nlohmann::json record_of(const std::vector<SweepCell>& cells) {
    nlohmann::json record;
    for (const SweepCell& cell : cells) record.push_back(to_json(cell));
    return record;
  }

  void keep(size_t index, const nlohmann::json& record) {
    std::vector<SweepCell> cells;
    for (const nlohmann::json& cell : record) cells.push_back(sweep_cell_from_json(cell));
    done_[index] = std::move(cells);
    finished_cost_ += points_[index].cost;
    ++finished_;
  }

  /// One cell per output; empty where the run was interrupted.
  std::vector<SweepCell> run_point(const Point& point) {
    const Operator& op = find_operator(point.kernel->operator_name);
    std::vector<SweepCell> cells;
    try {
      validate(point.case_, op);
      for (const ArgumentSpec& spec : outputs_of(point.case_, op)) {
        cells.push_back({point.kernel->name, point.settings, std::string(spec.name)});
        cells.back().token = token_of(point.case_);
      }
      for (const uint64_t seed : result_.seeds) {
        if (budget_.interrupted()) return {};
        Case c = point.case_;
        c.seed = seed;
        run_seed(c, *point.kernel, op, cells);
      }
    } catch (const BadInput& refusal) {
      return {refused(point, refusal.what())};
    }
    return cells;
  }

  static SweepCell refused(const Point& point, const std::string& why) {
    SweepCell cell{point.kernel->name, point.settings, ""};
    cell.verdict = CellVerdict::refused;
    cell.note = why;
    cell.token = token_of(point.case_);
    return cell;
  }

  void run_seed(const Case& c, const Kernel& kernel, const Operator& op, std::vector<SweepCell>& cells) {
    const TensorMap inputs = draw_inputs(c, op);
    VerifyOptions options;
    options.threads = 1;
    options.twice = false;
    options.diagnose = false;
    options.statistics = true;
    options.formula_instructions = 0;  // a sweep measures errors
    options.inputs = &inputs;
    const Verification v = verify(c, kernel, backend_, options);
    for (SweepCell& cell : cells) {
      note_gates(cell, op, inputs);
      cell.seconds_kernel += v.seconds_kernel;
      cell.seconds_reference += v.seconds_reference;
      const double largest = cell.over_seeds.max_ratio;
      const CellVerdict verdict = note_output(cell, v);
      const bool worse = c.seed == result_.seeds.front() || verdict > cell.verdict;
      if (worse || (verdict == cell.verdict && cell.over_seeds.max_ratio > largest)) cell.token = v.token;
      if (!worse) continue;
      cell.verdict = verdict;
      if (verdict != CellVerdict::pass) cell.note = verdict == CellVerdict::domain ? v.domain.at(0) : v.cause;
    }
  }

  /// Counts and statistics of the cell's output; its own verdict.
  static CellVerdict note_output(SweepCell& cell, const Verification& v) {
    if (v.verdict == Verdict::domain) return CellVerdict::domain;
    if (v.trap) return CellVerdict::finding;
    for (size_t i = 0; i < v.outputs.size(); ++i) {
      const OutputComparison& output = v.outputs[i];
      if (output.name != cell.output) continue;
      cell.elements += output.elements;
      cell.violation += output.violation;
      cell.nonfinite += output.nonfinite;
      cell.wrong_class += output.wrong_class;
      cell.undecided += output.undecided;
      add_sample(cell, sample_of(v.case_.seed, v.statistics[i]));
      if (output.violation + output.nonfinite + output.wrong_class > 0) return CellVerdict::finding;
      return output.undecided > 0 ? CellVerdict::undecided : CellVerdict::pass;
    }
    return v.verdict == Verdict::finding     ? CellVerdict::finding
           : v.verdict == Verdict::undecided ? CellVerdict::undecided
                                             : CellVerdict::pass;
  }

  /// A sweep none of whose points can run is a mistake of the command line.
  void refuse_empty() const {
    if (result_.cells.empty() || !options_.shard.whole()) return;
    for (const SweepCell& cell : result_.cells)
      if (cell.verdict != CellVerdict::refused) return;
    throw BadInput(fmt::format("no point of the sweep can run; the first: {}", result_.cells.front().note));
  }

  void describe_worst() {
    std::vector<const SweepCell*> chosen;
    for (const SweepCell& cell : result_.cells) {
      if (cell.samples.empty()) continue;
      const auto same = [&](const SweepCell* other) {
        return other->kernel == cell.kernel && setting(*other, "dtype") == setting(cell, "dtype");
      };
      const auto found = std::find_if(chosen.begin(), chosen.end(), same);
      if (found == chosen.end())
        chosen.push_back(&cell);
      else if (cell.over_seeds.max_ratio > (*found)->over_seeds.max_ratio)
        *found = &cell;
    }
    for (const SweepCell* cell : chosen) {
      const auto kernel = std::find_if(options_.kernels.begin(), options_.kernels.end(),
                                       [&](const Kernel* k) { return k->name == cell->kernel; });
      const Case c = parse_token(cell->token);
      VerifyOptions options;
      options.threads = options_.jobs;
      options.origin.machine = options_.machine;
      options.shadow_instructions = static_cast<uint64_t>(kShadowed);
      Verification v = verify(c, **kernel, backend_, options);
      v.replay += options_.replay_suffix;
      result_.worst.push_back(std::move(v));
    }
  }

  const SweepOptions& options_;
  Backend& backend_;
  const Budget budget_;
  std::vector<Point> points_;
  std::vector<size_t> order_;
  std::vector<std::optional<std::vector<SweepCell>>> done_;  ///< by point
  Journal journal_;
  Sweep result_;

  size_t next_ = 0;
  int64_t finished_ = 0;
  double finished_cost_ = 0, total_cost_ = 0;
};

}  // namespace

Sweep sweep(const SweepOptions& options, Backend& backend) {
  if (options.kernels.empty()) throw BadInput("sweep: no kernel given; see 'assay list kernels'");
  if (options.seeds < 1) throw BadInput("--seeds: at least 1");
  for (const Kernel* kernel : options.kernels)
    if (kernel->operator_name != options.kernels.front()->operator_name)
      throw BadInput(fmt::format("{} computes {} and {} computes {}: compare kernels of one operator",
                                 kernel->name, kernel->operator_name, options.kernels.front()->name,
                                 options.kernels.front()->operator_name));
  for (size_t i = 0; i < options.dimensions.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (options.dimensions[i].option == options.dimensions[j].option)
        throw BadInput(fmt::format("--over {} is given twice: give all its values at once",
                                   options.dimensions[i].option));
  return Sweeper(options, backend).run();
}

}  // namespace assay
