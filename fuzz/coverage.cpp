#include "fuzz/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/generator.h"
#include "src/case/decay_profiles.h"

namespace assay {
namespace {

/// Chunks hold 64 tokens: lengths of sequences, of which a packed case has several.
std::vector<int64_t> sequence_lengths(const Case& c) {
  std::vector<int64_t> lengths;
  for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n)
    lengths.push_back(c.cu_seqlens[n + 1] - c.cu_seqlens[n]);
  if (c.cu_seqlens.empty()) lengths.push_back(c.T);
  return lengths;
}

std::string chunk_shape(int64_t T) {
  if (T == 0) return "empty";
  if (T < 64) return T % 16 == 0 ? "sub-chunks of one chunk" : "part of one chunk";
  const bool whole = T % 64 == 0;
  if (T < 128) return whole ? "one chunk" : "one chunk and a partial one";
  return whole ? "two or more chunks" : "two chunks and a partial one";
}

/// Decays whose sum over the rows of a partial chunk or sub-chunk meets an exponent limit, and such rows.
bool budget_at_partial_chunk(const Case& c) {
  static constexpr std::string_view kBudgets[] = {"edge", "ladder", "spike", "strong", "contrast", "rows"};
  const auto lengths = sequence_lengths(c);
  return std::find(std::begin(kBudgets), std::end(kBudgets), profile_name(c)) != std::end(kBudgets) &&
         std::any_of(lengths.begin(), lengths.end(), [](int64_t T) { return T % 16 != 0; });
}

std::string octave(double x) {
  if (x == 0) return "0";
  if (!std::isfinite(x)) return "inf";
  return fmt::format("2^{}", std::ilogb(x));
}

const char* yes(bool value) {
  return value ? "yes" : "no";
}

}  // namespace

std::string profile_name(const Case& c) {
  return c.decay.substr(0, c.decay.find(':'));
}

std::string length_class(const Case& c) {
  return longest_sequence(c) <= 1024 ? "T <= 1024" : "T > 1024";
}

std::vector<std::pair<std::string, std::string>> coverage_of(const Case& c) {
  std::string shape = "empty";
  int64_t longest = -1;
  for (int64_t T : sequence_lengths(c))
    if (T > longest) longest = T, shape = chunk_shape(T);
  std::vector<std::pair<std::string, std::string>> features = {
      {"kernel", c.kernel},
      {"dtype", std::string(format(c.dtype).name)},
      {"gate dtype", std::string(format(c.gate_dtype).name)},
      {"decay", profile_name(c)},
      {"values", c.values},
      {"longest sequence", shape},
      {"T > 512", yes(c.T > 512)},
      {"indices past 2^31", yes(!c.blocks.empty())},
      {"K and V above one tile, no multiples", yes(c.K > 64 && c.V > 64 && c.K % 16 != 0 && c.V % 16 != 0)},
      {"budget at a partial chunk", yes(budget_at_partial_chunk(c))},
      {"K != V", yes(c.K != c.V)},
      {"K or V no power of two", yes((c.K & (c.K - 1)) != 0 || (c.V & (c.V - 1)) != 0)},
      {"packed", yes(!c.cu_seqlens.empty())},
      {"heads", c.H == 1 ? "1" : "more"},
      {"batch", c.B == 1 ? "1" : "more"},
      {"initial state", yes(c.initial_state && c.without.count("initial_state") == 0)},
      {"scale", c.scale ? "given" : "default"},
      {"direction", std::string(name_of(c.direction))},
      {"layout", c.layout.empty()                      ? "dense"
                 : c.layout.find(':') == c.layout.npos ? "views"
                                                       : "views of any strides"},
  };
  for (const auto& [name, value] : c.parameters) features.push_back({"parameter", name});
  if (runs_backward(c)) features.push_back({"final-state gradient", yes(c.final_state_gradient)});
  if (!c.cu_seqlens.empty()) {
    const auto lengths = sequence_lengths(c);
    features.push_back({"an empty sequence", yes(std::count(lengths.begin(), lengths.end(), 0) > 0)});
    features.push_back({"a sequence of one token", yes(std::count(lengths.begin(), lengths.end(), 1) > 0)});
  }
  for (const std::string& name : c.without)
    if (name != "initial_state") features.push_back({"absent", name});
  return features;
}

void Coverage::add(const Verification& v) {
  for (auto& feature : coverage_of(v.case_)) ++counts_[feature];
  ++counts_[{"verdict", std::string(name_of(v.verdict))}];
  // Of a profile outside the domain only cases without such an element run: no row of their own.
  if (v.verdict == Verdict::domain || !parse_decay(v.case_.decay).profile->in_domain) return;
  for (const OutputComparison& output : v.outputs) {
    if (output.elements == 0 || v.case_.values == "exact") continue;
    if (output.max_relative_bound == 0 && output.max_ratio == 0) continue;  // a copy: no bound to be loose
    const std::vector<std::string> key = {v.kernel, output.name, std::string(format(v.case_.dtype).name),
                                          profile_name(v.case_), length_class(v.case_)};
    TightnessRow& row = tightness_[key];
    row.kernel = key[0], row.output = key[1], row.dtype = key[2], row.decay = key[3],
    row.length_class = key[4];
    // What is undecided has no error to speak of: its ratio is that of an enclosure. A wrong element
    // beside it has one.
    if (output.undecided > 0 && output.violation + output.nonfinite + output.wrong_class == 0) {
      ++row.undecided;
      continue;
    }
    ++row.cases;
    row.max_ratio = std::max(row.max_ratio, output.max_ratio);
    row.max_tightness = std::max(row.max_tightness, output.max_tightness);
    row.max_relative_bound = std::max(row.max_relative_bound, output.max_relative_bound);
  }
}

std::vector<CoverageRow> Coverage::coverage() const {
  std::vector<CoverageRow> rows;
  for (const auto& [feature, cases] : counts_) rows.push_back({feature.first, feature.second, cases});
  return rows;
}

std::vector<TightnessRow> Coverage::tightness() const {
  std::vector<TightnessRow> rows;
  for (const auto& [key, row] : tightness_) rows.push_back(row);
  return rows;
}

std::vector<std::string> features_of(const Verification& v) {
  std::vector<std::string> features;
  const std::string dtype(format(v.case_.dtype).name), profile = profile_name(v.case_);
  for (int64_t T : sequence_lengths(v.case_))
    features.push_back(
        fmt::format("shape {} / {} / {} / {}", chunk_shape(T), profile, dtype, name_of(v.case_.direction)));
  for (const ExponentRange& range : v.exponents)
    if (range.count > 0)
      features.push_back(fmt::format("exponent {}:{} down to -{} up to {}{}", range.where.file,
                                     range.where.ptx_line, octave(range.min), range.max > 0 ? "+" : "-",
                                     octave(range.max)));
  for (const OutputComparison& output : v.outputs)
    features.push_back(
        fmt::format("ratio {} / {} / {} {}", output.name, dtype, profile, octave(output.max_tightness)));
  return features;
}

}  // namespace assay
