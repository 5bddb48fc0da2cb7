#include "reports/mode_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "src/case/case.h"

namespace assay {
namespace {

/// Root mean square errors of two kernels on the same inputs.
struct Errors {
  std::vector<double> first, second;
  double relative_first = 0, relative_second = 0;  ///< the largest, over the outputs' root mean square

  /// Above 1 where the first kernel's errors are smaller.
  PairedRatio ratio() const { return paired_ratio(second, first); }
};
using Pairs = std::map<int64_t, Errors>;  ///< by length

struct Place {
  std::string decay, dtype, output;
  auto operator<=>(const Place&) const = default;
};

struct Comparison {
  std::string first, second;              ///< kernels
  std::string short_first, short_second;  ///< without the operator that they share
  std::map<Place, Pairs> at;
};

using Settings = std::vector<std::string>;

Settings settings_of(const SweepCell& cell) {
  Settings key = {cell.output};
  for (const SweepSetting& s : cell.settings) key.push_back(s.value);
  return key;
}

void add_pairs(const SweepCell& a, const SweepCell& b, Pairs& pairs) {
  Errors& e = pairs[parse_token(a.token).T];
  for (const SweepSample& x : a.samples)
    for (const SweepSample& y : b.samples) {
      if (x.seed != y.seed || !(x.rms_error > 0) || !(y.rms_error > 0)) continue;
      e.first.push_back(x.rms_error);
      e.second.push_back(y.rms_error);
      e.relative_first = std::max(e.relative_first, x.rms_error / x.rms_exact);
      e.relative_second = std::max(e.relative_second, y.rms_error / y.rms_exact);
    }
}

Comparison compare(const Sweep& sweep, const std::string& first, const std::string& second) {
  Comparison c{first, second, first, second, {}};
  const size_t dot = first.find('.');
  if (dot != std::string::npos && second.substr(0, dot + 1) == first.substr(0, dot + 1))
    c.short_first = first.substr(dot + 1), c.short_second = second.substr(dot + 1);
  std::map<Settings, const SweepCell*> others;
  for (const SweepCell& cell : sweep.cells)
    if (cell.kernel == second) others[settings_of(cell)] = &cell;
  for (const SweepCell& cell : sweep.cells) {
    const auto other = others.find(settings_of(cell));
    if (cell.kernel == first && other != others.end())
      add_pairs(cell, *other->second,
                c.at[{option_of(cell, "decay"), option_of(cell, "dtype"), cell.output}]);
  }
  return c;
}

/// Three significant digits, never in powers of ten.
std::string shown(double x) {
  if (!(x >= 1000) || std::isinf(x)) return fmt::format("{:.3g}", x);
  const double unit = std::pow(10, std::floor(std::log10(x)) - 2);
  return fmt::format("{:.0f}", std::round(x / unit) * unit);
}

/// Shortest and longest length that has pairs; nothing where none has.
std::vector<int64_t> ends_of(const Pairs& pairs) {
  std::vector<int64_t> lengths;
  for (const auto& [length, errors] : pairs)
    if (!errors.first.empty()) lengths.push_back(length);
  if (lengths.size() > 2) lengths.erase(lengths.begin() + 1, lengths.end() - 1);
  return lengths;
}

std::string name_of(const Comparison& c, const PairedRatio& r, bool brief) {
  if (!r.differs()) return "no sure difference";
  if (r.mean > 1) return brief ? c.short_first : c.first;
  return brief ? c.short_second : c.second;
}

/// "chunk × 2.5 (1e-07 against 2.5e-07)".
std::string factor_text(const Comparison& c, const Errors& e) {
  const PairedRatio r = e.ratio();
  if (!r.differs()) return "-";
  const bool first = r.mean > 1;
  return fmt::format("{} × {} ({:.2g} against {:.2g})", name_of(c, r, true),
                     shown(first ? r.mean : 1 / r.mean), first ? e.relative_first : e.relative_second,
                     first ? e.relative_second : e.relative_first);
}

/// Who wins at one place: "gla.chunk", "gla.chunk at T = 64 and gla.fused_recurrent at T = 512".
std::string winner(const Comparison& c, const Pairs& p) {
  const std::vector<int64_t> ends = ends_of(p);
  if (ends.empty() || p.at(ends.back()).ratio().pairs <= 1)
    return "too few runs with rounding errors to tell (give more --seeds)";
  const std::string at_longest = name_of(c, p.at(ends.back()).ratio(), false);
  if (ends.size() == 1) return at_longest;
  const std::string at_shortest = name_of(c, p.at(ends.front()).ratio(), false);
  if (at_shortest == at_longest) return at_longest;
  return fmt::format("{} at T = {} and {} at T = {}", at_shortest, ends.front(), at_longest, ends.back());
}

std::string joined(const std::set<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

/// Winners by the outputs that they win.
using Winners = std::map<std::string, std::set<std::string>>;

std::string winners_text(const Winners& winners) {
  if (winners.size() == 1) return winners.begin()->first;
  std::string text;
  for (const auto& [name, outputs] : winners)
    text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", name, joined(outputs));
  return text;
}

/// Of one format: "decay near-one, none: gla.chunk; decay mild, strong: gla.fused_recurrent".
std::string format_text(const std::map<std::string, Winners>& by_decay) {
  std::map<std::string, std::set<std::string>> decays;
  for (const auto& [decay, winners] : by_decay) decays[winners_text(winners)].insert(decay);
  std::vector<std::pair<std::string, std::set<std::string>>> groups(decays.begin(), decays.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [who, where] : groups) {
    const bool named = !where.begin()->empty();
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : "; ", named ? "decay " + joined(where) + ": " : "", who);
  }
  return text;
}

void add_sentences(const Comparison& c, Answer& answer) {
  std::map<std::string, std::map<std::string, Winners>> by_format;
  for (const auto& [place, pairs] : c.at)
    by_format[place.dtype][place.decay][winner(c, pairs)].insert(place.output);
  std::map<std::string, std::set<std::string>> formats;  // by what is said of them
  for (const auto& [dtype, by_decay] : by_format) formats[format_text(by_decay)].insert(dtype);
  std::vector<std::string> sentences;
  for (const auto& [text, dtypes] : formats)
    sentences.push_back(fmt::format("{}, {}.", joined(dtypes), text));
  std::sort(sentences.begin(), sentences.end());
  for (std::string& sentence : sentences) answer.sentences.push_back(std::move(sentence));
}

/// A row for each decay at its shortest and at its longest length.
void add_rows(const Comparison& c, Answer& answer) {
  AnswerTable& table = answer.table;
  std::set<std::pair<std::string, std::string>> columns;
  std::set<std::pair<std::string, int64_t>> rows;
  for (const auto& [place, pairs] : c.at) {
    columns.insert({place.dtype, place.output});
    for (const int64_t length : ends_of(pairs)) rows.insert({place.decay, length});
  }
  if (table.head.empty()) {
    table.head = {"decay", "length"};
    for (const auto& [dtype, output] : columns) table.head.push_back(dtype + " " + output);
  }
  for (const auto& [decay, length] : rows) {
    std::vector<std::string> row = {decay.empty() ? "-" : decay, fmt::format("T = {}", length)};
    for (const auto& [dtype, output] : columns) {
      const auto pairs = c.at.find({decay, dtype, output});
      const bool has = pairs != c.at.end() && pairs->second.contains(length);
      row.push_back(has ? factor_text(c, pairs->second.at(length)) : "");
    }
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

PairedRatio paired_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  PairedRatio r;
  r.pairs = std::min(numerators.size(), denominators.size());
  if (r.pairs == 0) return r;
  const auto n = static_cast<double>(r.pairs);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < r.pairs; ++i) sum += std::log(numerators[i] / denominators[i]);
  const double mean = sum / n;
  for (size_t i = 0; i < r.pairs; ++i)
    squares += std::pow(std::log(numerators[i] / denominators[i]) - mean, 2);
  const double half = r.pairs > 1 ? boost::math::quantile(boost::math::students_t(n - 1), 0.975) *
                                        std::sqrt(squares / (n - 1) / n)
                                  : HUGE_VAL;
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half), r.pairs};
}

Answer which_kernel_is_more_precise(const Sweep& sweep) {
  Answer answer{"Which kernel is more precise?", {}, {}};
  for (size_t i = 1; i < sweep.kernels.size(); ++i) {
    const Comparison c = compare(sweep, sweep.kernels[0], sweep.kernels[i]);
    add_sentences(c, answer);
    add_rows(c, answer);
  }
  answer.table.note =
      "The more precise kernel, by how many times its root mean square error is the smaller, and both "
      "kernels' largest such "
      "errors over the output's root mean square; - where no difference beyond a tenth is sure at 95 % "
      "confidence over the "
      "seeds.";
  return answer;
}

}  // namespace assay
