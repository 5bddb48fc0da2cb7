#include "reports/sweep_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "reports/mode_comparison.h"
#include "src/case/case.h"

namespace assay {
namespace {

using Key = std::vector<std::string>;

/// Four significant digits at most.
std::string shown(double x) {
  return fmt::format("{:.4g}", x);
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : separator) + part;
  return out;
}

/// Two significant digits: of errors that depend on the inputs that were drawn.
std::string short_of(double x) {
  return fmt::format("{:.2g}", x);
}

bool is_swept(const Sweep& sweep, std::string_view option) {
  return std::any_of(sweep.dimensions.begin(), sweep.dimensions.end(),
                     [&](const SweepDimension& d) { return d.option == option && d.values.size() > 1; });
}

/// Cells of the sweep that ran, traps included, grouped by some of their values.
template <typename KeyOf>
std::map<Key, std::vector<const SweepCell*>> grouped(const Sweep& sweep, KeyOf key_of) {
  std::map<Key, std::vector<const SweepCell*>> groups;
  for (const SweepCell& cell : sweep.cells)
    if (!cell.samples.empty() || cell.verdict == CellVerdict::finding) groups[key_of(cell)].push_back(&cell);
  return groups;
}

/// Why the gates of a cell that did not pass are not called safe.
std::string trouble_of(const SweepCell& cell) {
  return fmt::format("{} at {} ({}): replay with assay replay {}",
                     cell.verdict == CellVerdict::finding ? "it fails" : "elements are undecided",
                     settings_text(cell), cell.note, cell.token);
}

/// The kernel's cells that ran on inputs within the domain, mildest gates first.
std::vector<const SweepCell*> judged_cells(const Sweep& sweep, const std::string& kernel) {
  std::vector<const SweepCell*> cells;
  for (const SweepCell& cell : sweep.cells)
    if (cell.kernel == kernel && cell.verdict != CellVerdict::refused && cell.verdict != CellVerdict::domain)
      cells.push_back(&cell);
  std::stable_sort(cells.begin(), cells.end(), [](auto* a, auto* b) { return a->gate_min > b->gate_min; });
  return cells;
}

/// The range of gates of cells that all passed.
std::string all_safe(const std::string& kernel, const std::vector<const SweepCell*>& cells, size_t seeds) {
  std::set<std::string> settings, formats;
  double highest = -HUGE_VAL, lowest = HUGE_VAL;
  for (const SweepCell* cell : cells) {
    settings.insert(settings_text(*cell));
    formats.insert(option_of(*cell, "dtype"));
    if (!cell->gated) continue;
    highest = std::max(highest, cell->gate_max);
    lowest = std::min(lowest, cell->gate_min);
  }
  const std::string outcome =
      fmt::format("every output of {} runs in {} is finite and within its proved bound.",
                  settings.size() * seeds, joined({formats.begin(), formats.end()}, ", "));
  if (lowest > highest) return fmt::format("{} takes no gates: {}", kernel, outcome);
  return fmt::format("{}: log decays from {} to {}, as they were drawn, are safe: {}", kernel, shown(lowest),
                     shown(highest), outcome);
}

std::string safe_gates_of(const Sweep& sweep, const std::string& kernel) {
  const auto refused = std::count_if(sweep.cells.begin(), sweep.cells.end(), [&](const SweepCell& cell) {
    return cell.kernel == kernel && cell.verdict == CellVerdict::refused;
  });
  const std::string rest = refused > 0 ? fmt::format(" {} points were refused.", refused) : "";
  const std::vector<const SweepCell*> cells = judged_cells(sweep, kernel);
  if (cells.empty()) return fmt::format("{}: nothing ran.{}", kernel, rest);
  const auto not_passed = [](auto* cell) { return cell->verdict != CellVerdict::pass; };
  const auto bad = std::find_if(cells.begin(), cells.end(), not_passed);
  if (bad == cells.end()) return all_safe(kernel, cells, sweep.seeds.size()) + rest;
  const SweepCell& first = **bad;
  std::string troubles = trouble_of(first);
  const auto finding =
      std::find_if(bad, cells.end(), [](auto* cell) { return cell->verdict == CellVerdict::finding; });
  if (finding != bad && finding != cells.end()) troubles += "; " + trouble_of(**finding);
  // Safe are gates above those of every cell that did not pass.
  const SweepCell* last_good = nullptr;
  for (auto at = cells.begin(); at != bad; ++at)
    if ((*at)->gated && (*at)->gate_min > first.gate_min) last_good = *at;
  if (!last_good) return fmt::format("{}: no range of gates is safe: {}.{}", kernel, troubles, rest);
  return fmt::format("{}: log decays down to {} are safe; with gates down to {} {}.{}", kernel,
                     shown(last_good->gate_min), shown(first.gate_min), troubles, rest);
}

/// The gates that a kernel's cells of one decay were given: "-8 to -1", with what came of it.
std::string gates_text(const std::vector<const SweepCell*>& cells) {
  double lowest = HUGE_VAL, highest = -HUGE_VAL;
  std::map<std::string_view, int> verdicts;
  for (const SweepCell* cell : cells) {
    ++verdicts[name_of(cell->verdict)];
    if (cell->gated) lowest = std::min(lowest, cell->gate_min), highest = std::max(highest, cell->gate_max);
  }
  const std::string range =
      lowest > highest ? "no gates" : fmt::format("{} to {}", shown(lowest), shown(highest));
  if (verdicts.size() == 1 && verdicts.contains(name_of(CellVerdict::pass))) return range + ": safe";
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : verdicts)
    parts.push_back(fmt::format("{} of {} {}", count, cells.size(), verdict));
  return range + ": " + joined(parts, ", ");
}

/// What each decay drew, and what came of it, where several are swept.
AnswerTable gates_by_decay(const Sweep& sweep) {
  AnswerTable table;
  const auto decays = std::find_if(sweep.dimensions.begin(), sweep.dimensions.end(),
                                   [](const SweepDimension& d) { return d.option == "decay"; });
  if (decays == sweep.dimensions.end() || decays->values.size() < 2) return table;
  table.head = {"decay"};
  for (const std::string& kernel : sweep.kernels) table.head.push_back(kernel);
  for (const std::string& decay : decays->values) {
    std::vector<std::string> row = {decay};
    for (const std::string& kernel : sweep.kernels) {
      std::vector<const SweepCell*> cells;
      for (const SweepCell& cell : sweep.cells)
        if (cell.kernel == kernel && setting(cell, "decay") == decay) cells.push_back(&cell);
      row.push_back(cells.empty() ? "" : gates_text(cells));
    }
    table.rows.push_back(std::move(row));
  }
  table.note =
      "The log decays that were drawn, from the smallest to the largest. Safe: every output is finite and "
      "within "
      "its proved bound.";
  return table;
}

Answer safe_gates(const Sweep& sweep) {
  Answer answer{"Which gates are safe?", {}, gates_by_decay(sweep)};
  for (const std::string& kernel : sweep.kernels) answer.sentences.push_back(safe_gates_of(sweep, kernel));
  return answer;
}

/// The largest error of a cell relative to the output's root mean square of the same run; infinite where it
/// gave no finite value, NaN where the reference leaves it open.
double relative_error(const SweepCell& cell, size_t seeds) {
  if (cell.nonfinite + cell.wrong_class > 0) return HUGE_VAL;
  if (cell.verdict == CellVerdict::finding && cell.samples.size() < seeds) return HUGE_VAL;  // a trap
  if (cell.undecided > 0) return std::numeric_limits<double>::quiet_NaN();
  double largest = 0;
  for (const SweepSample& sample : cell.samples)
    if (sample.max_error > 0) largest = std::max(largest, sample.max_error / sample.rms_exact);
  return largest;
}

std::string error_text(double relative) {
  if (std::isnan(relative)) return "undecided";
  return std::isinf(relative) ? "no finite result" : shown(relative);
}

/// Of one output of one kernel in one format: "0.0027, at most 0.044".
std::string precision_text(const std::vector<const SweepCell*>& cells, size_t seeds) {
  double mean = 0, most = 0;
  for (const SweepCell* cell : cells) {
    const double relative = relative_error(*cell, seeds);
    if (std::isnan(relative) || std::isinf(relative)) return error_text(relative);
    most = std::max(most, relative);
    for (const SweepSample& sample : cell->samples)
      if (sample.rms_error > 0) mean = std::max(mean, sample.rms_error / sample.rms_exact);
  }
  return most == 0 ? "exact" : fmt::format("{}, at most {}", short_of(mean), short_of(most));
}

/// Errors of every output beside each other, a column for each format.
Answer precision(const Sweep& sweep) {
  Answer answer{"How precise is each format?", {}, {}};
  std::vector<std::string> formats;  // in the order of the cells
  for (const SweepCell& cell : sweep.cells)
    if (const std::string name = option_of(cell, "dtype");
        std::find(formats.begin(), formats.end(), name) == formats.end())
      formats.push_back(name);
  answer.table.head = {"output"};
  answer.table.head.insert(answer.table.head.end(), formats.begin(), formats.end());
  for (const auto& [key, cells] : grouped(sweep, [](const SweepCell& c) {
         return Key{c.kernel, c.output};
       })) {
    std::vector<std::string> row = {joined(key, " ")};
    for (const std::string& name : formats) {
      std::vector<const SweepCell*> own;
      for (const SweepCell* cell : cells)
        if (option_of(*cell, "dtype") == name) own.push_back(cell);
      row.push_back(own.empty() ? "" : precision_text(own, sweep.seeds.size()));
    }
    answer.table.rows.push_back(std::move(row));
  }
  answer.table.note =
      "Root mean square of the error over that of the output, then the largest single error over the same: "
      "the worst of all runs of a format.";
  return answer;
}

/// The largest length up to which every error of these cells stays within the tolerance, and what breaks it.
std::string length_limit(const std::vector<const SweepCell*>& cells, double tolerance, size_t seeds) {
  std::map<int64_t, double> worst;  // by length
  for (const SweepCell* cell : cells) {
    const double relative = relative_error(*cell, seeds);
    const auto [at, fresh] = worst.emplace(std::stoll(option_of(*cell, "length")), relative);
    if (!fresh && !(relative <= at->second)) at->second = relative;
  }
  int64_t up_to = -1;
  for (const auto& [length, error] : worst) {
    if (!(error <= tolerance)) {
      const std::string breaks = fmt::format("{} at T = {}", error_text(error), length);
      return up_to < 0 ? fmt::format("at none of the lengths ({})", breaks)
                       : fmt::format("up to T = {} ({})", up_to, breaks);
    }
    up_to = length;
  }
  return fmt::format("at every length, up to T = {}", up_to);
}

/// The same by decay: "at every length, up to T = 16384, but under decay strong at none of the lengths
/// (...)".
std::string length_limits(const std::vector<const SweepCell*>& cells, double tolerance, size_t seeds) {
  std::map<std::string, std::vector<const SweepCell*>> by_decay;
  for (const SweepCell* cell : cells) by_decay[option_of(*cell, "decay")].push_back(cell);
  std::map<std::string, std::vector<std::string>> decays;  // by their limit
  for (const auto& [decay, own] : by_decay) decays[length_limit(own, tolerance, seeds)].push_back(decay);
  const auto most = std::max_element(decays.begin(), decays.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  std::string text = most->first;
  for (const auto& [limit, names] : decays)
    if (limit != most->first) text += fmt::format(", but under decay {} {}", joined(names, ", "), limit);
  return text;
}

Answer lengths(const Sweep& sweep) {
  Answer answer{"Up to which length is the error acceptable?", {}, {}};
  if (!is_swept(sweep, "length")) return answer;
  const auto groups = grouped(sweep, [](const SweepCell& c) {
    return Key{option_of(c, "dtype"), c.kernel, c.output};
  });
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_dtype;  // outputs by their limit
  for (const auto& [key, cells] : groups)
    by_dtype[key[0]][length_limits(cells, tolerance_of(sweep, format(key[0]).dtype), sweep.seeds.size())]
        .push_back(key[1] + " " + key[2]);
  for (const auto& [dtype, limits] : by_dtype) {
    std::vector<std::string> parts;
    for (const auto& [limit, outputs] : limits) parts.push_back(joined(outputs, ", ") + " " + limit);
    const double tolerance = tolerance_of(sweep, format(dtype).dtype);
    const std::string from_format =
        sweep.tolerance > 0
            ? ""
            : fmt::format(" ({:.0f} units roundoff)", tolerance / unit_roundoff(format(dtype).dtype));
    answer.sentences.push_back(
        fmt::format("{}: no error of any run is above {}{} of the output's root mean square for {}.", dtype,
                    shown(tolerance), from_format, joined(parts, "; for ")));
  }
  return answer;
}

/// How error and bound of one output grow with length.
struct Growth {
  const SweepCell* longest = nullptr;  ///< of several at that length the one of the largest ratio
  const SweepCell* nearest = nullptr;  ///< of all the one of the largest ratio
  double error = 0, bound = 0;
};

Growth growth_of(const std::vector<const SweepCell*>& cells) {
  Growth g;
  std::vector<double> lengths, errors, bounds;
  for (const SweepCell* cell : cells) {
    if (cell->samples.empty()) continue;
    const double length = std::stod(option_of(*cell, "length"));
    const auto rank = [](const SweepCell& c) {
      return std::pair(std::stoll(option_of(c, "length")), c.over_seeds.max_ratio);
    };
    if (!g.longest || rank(*cell) > rank(*g.longest)) g.longest = cell;
    if (!g.nearest || cell->over_seeds.max_ratio > g.nearest->over_seeds.max_ratio) g.nearest = cell;
    for (const SweepSample& sample : cell->samples) {
      lengths.push_back(length);
      errors.push_back(sample.max_error);
      bounds.push_back(sample.max_bound);
    }
  }
  g.error = growth(lengths, errors);
  g.bound = growth(lengths, bounds);
  return g;
}

std::string why_apart(const Growth& g) {
  const std::string exponents =
      fmt::format("the largest error grows as T^{:.2f}, the largest bound as T^{:.2f}", g.error, g.bound);
  if (g.bound - g.error > 0.2)
    return exponents + ": roundings of either sign cancel in part, the bound adds their magnitudes";
  if (std::fabs(g.error) < 0.1 && std::fabs(g.bound) < 0.1)
    return exponents +
           ": neither grows, the decays forget; the distance is there at the shortest length already";
  if (g.error - g.bound > 0.2) return exponents + ": the error comes nearer to the bound with the length";
  return exponents + ": both grow alike, so the distance does not come from the length";
}

Answer bound_and_error(const Sweep& sweep) {
  Answer answer{"Where do error and bound part?", {}, {}};
  if (!is_swept(sweep, "length")) return answer;
  const auto groups = grouped(sweep, [](const SweepCell& c) {
    return Key{c.kernel, c.output, option_of(c, "dtype"), option_of(c, "decay")};
  });
  std::map<std::string, std::pair<const Key*, Growth>> loosest, tightest;
  for (const auto& [key, cells] : groups) {
    const Growth g = growth_of(cells);
    if (std::isnan(g.error) || std::isnan(g.bound)) continue;
    const double ratio = g.longest->over_seeds.max_ratio;
    auto& [low_key, low] = loosest[key[0]];
    if (!low_key || ratio < low.longest->over_seeds.max_ratio) low_key = &key, low = g;
    auto& [high_key, high] = tightest[key[0]];
    if (!high_key || g.nearest->over_seeds.max_ratio > high.nearest->over_seeds.max_ratio)
      high_key = &key, high = g;
  }
  const auto place = [](const Key& key, const SweepCell& cell) {
    return fmt::format("{} in {}{} at T = {}, where the largest error is {} of its bound", key[1], key[2],
                       key[3].empty() ? "" : ", decay " + key[3], option_of(cell, "length"),
                       shown(cell.over_seeds.max_ratio));
  };
  for (const auto& [kernel, low] : loosest) {
    const auto& high = tightest.at(kernel);
    answer.sentences.push_back(
        fmt::format("{}: nearest to its bound is {}.", kernel, place(*high.first, *high.second.nearest)));
    answer.sentences.push_back(fmt::format("{}: farthest from it at the longest length is {}. There {}.",
                                           kernel, place(*low.first, *low.second.longest),
                                           why_apart(low.second)));
  }
  return answer;
}

}  // namespace

std::string option_of(const SweepCell& cell, std::string_view option) {
  const std::string swept = setting(cell, option);
  if (!swept.empty()) return swept;
  const Case c = parse_token(cell.token);
  if (option == "dtype") return std::string(format(c.dtype).name);
  if (option == "decay") return c.decay;
  return option == "length" ? std::to_string(c.T) : "";
}

double tolerance_of(const Sweep& sweep, Dtype dtype) {
  if (sweep.tolerance > 0) return sweep.tolerance;
  return (dtype == Dtype::fp32 ? 64 : 8) * unit_roundoff(dtype);
}

double growth(const std::vector<double>& x, const std::vector<double>& y) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0) || std::isinf(y[i])) continue;
    const double a = std::log2(x[i]), b = std::log2(y[i]);
    n += 1, sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  const double spread = n * sxx - sx * sx;
  return spread > 1e-9 ? (n * sxy - sx * sy) / spread : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Answer> answers(const Sweep& sweep) {
  std::vector<Answer> all = {precision(sweep), safe_gates(sweep), lengths(sweep),
                             which_kernel_is_more_precise(sweep), bound_and_error(sweep)};
  std::erase_if(all,
                [](const Answer& answer) { return answer.sentences.empty() && answer.table.rows.empty(); });
  return all;
}

}  // namespace assay
