#include "fuzz/looseness.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reference/operator.h"
#include "src/base/numerics/format.h"

namespace assay {
namespace {

/// A loose row, and what its kernel's operator says of its output.
struct Subject {
  const TightnessRow& row;
  const Operator* op = nullptr;          ///< null for a kernel that is not ours
  const ArgumentSpec* output = nullptr;  ///< likewise
  bool gradient = false;
};

Subject subject_of(const TightnessRow& row) {
  Subject s{row};
  const auto name = std::string_view(row.kernel).substr(0, row.kernel.find('.'));
  const auto known = std::find_if(operators().begin(), operators().end(),
                                  [&](const Operator& op) { return op.name == name; });
  if (known == operators().end()) return s;
  s.op = &*known;
  for (const auto* list : {&known->outputs, &known->inputs})
    for (const ArgumentSpec& spec : *list) {
      const bool gradient = list == &known->inputs;
      if (row.output == (gradient ? "d" : "") + std::string(spec.name))
        s.output = &spec, s.gradient = gradient;
    }
  return s;
}

Dtype dtype_of(const TightnessRow& row) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
    if (row.dtype == format(dtype).name) return dtype;
  return Dtype::fp32;
}

bool rounding_explains(const Subject& s) {
  return s.row.max_relative_bound <= 3 * unit_roundoff(dtype_of(s.row));
}
bool total_explains(const Subject& s) {
  if (!s.output || !s.gradient || s.output->role == Role::state) return false;
  const auto& axes = s.output->axes;
  return std::find(axes.begin(), axes.end(), "T") == axes.end();
}
bool product_explains(const Subject& s) {
  return s.output && s.gradient && s.output->role == Role::log_decay;
}
bool softmax_explains(const Subject& s) {
  return s.op && s.op->bound_shape == BoundShape::softmax;
}
bool norms_explains(const Subject& s) {
  return s.op && s.op->bound_shape == BoundShape::norms;
}
bool quotient_explains(const Subject& s) {
  return s.op && s.op->bound_shape == BoundShape::quotient;
}
bool sums_explains(const Subject& s) {
  return dtype_of(s.row) == Dtype::fp32 && s.row.max_tightness >= 0x1p-12;
}
bool functions_explains(const Subject& s) {
  return s.output && !s.gradient && s.output->role == Role::log_decay;
}

struct Rule {
  bool (*explains)(const Subject&);
  LooseReason reason;
};
constexpr Rule kRules[] = {
#define REASON(stem, name, text) {stem##_explains, {name, text}},
#include "fuzz/loose_reasons.def"
#undef REASON
};

const LooseReason* reason_of(const TightnessRow& row) {
  const Subject subject = subject_of(row);
  for (const Rule& rule : kRules)
    if (rule.explains(subject)) return &rule.reason;
  return nullptr;
}

}  // namespace

double tight_from(const TightnessRow& row) {
  return row.length_class == "T <= 1024" ? 0.01 : 0.002;
}

std::vector<LooseRow> loose_rows(const std::vector<TightnessRow>& rows, int64_t least_cases) {
  std::vector<LooseRow> loose;
  for (const TightnessRow& row : rows)
    if (row.cases >= least_cases && row.max_tightness < tight_from(row))
      loose.push_back({row, reason_of(row)});
  return loose;
}

const std::vector<LooseReason>& loose_reasons() {
  static const std::vector<LooseReason> reasons = [] {
    std::vector<LooseReason> all;
    for (const Rule& rule : kRules) all.push_back(rule.reason);
    return all;
  }();
  return reasons;
}

std::string render_looseness(const nlohmann::json& result, int64_t least_cases) {
  std::vector<TightnessRow> rows;
  int64_t judged = 0;
  for (const nlohmann::json& x : result.at("tightness")) {
    rows.push_back({x.at("kernel"), x.at("output"), x.at("dtype"), x.at("decay"), x.at("length_class"),
                    x.at("cases"), x.at("max_ratio"), x.at("max_tightness"), x.at("max_relative_bound")});
    judged += rows.back().cases >= least_cases;
  }
  const std::vector<LooseRow> loose = loose_rows(rows, least_cases);
  std::string page = fmt::format(
      "# Where bounds are looser than 0.01 (above T = 1024: 0.002)\n\n"
      "Largest error / bound before the output's rounding, by kernel, output, format, decay and class of "
      "length, of the "
      "rows that at\nleast {} cases of one run were judged for: `assay fuzz all`, seed {}, {} cases, {} such "
      "rows, {} of "
      "them below the limit.\nWritten by `tightness` (tools/tightness.cpp) from the run's JSON; a test holds "
      "this "
      "page to it, and every row to a reason.\n",
      least_cases, result.at("seed").dump(), result.at("cases").get<int64_t>(), judged, loose.size());
  const auto section = [&](const LooseReason* reason) {
    std::string table;
    for (const LooseRow& x : loose)
      if (x.reason == reason)
        table += fmt::format("| {} | {} | {} | {} | {} | {} | {:.2g} | {:.2g} |\n", x.row.kernel,
                             x.row.output, x.row.dtype, x.row.decay, x.row.length_class, x.row.cases,
                             x.row.max_tightness, x.row.max_relative_bound);
    if (table.empty()) return;
    page += fmt::format(
        "\n## {}\n\n{}\n\n", reason ? reason->name : "no reason known",
        reason ? reason->text : "Each of these is an error of a bound, of a kernel's declaration, or news.");
    page +=
        "| kernel | output | format | decay | length | cases | error / bound | bound / absolute sum |\n"
        "|---|---|---|---|---|---:|---:|---:|\n" +
        table;
  };
  for (const Rule& rule : kRules) section(&rule.reason);
  section(nullptr);
  return page;
}

}  // namespace assay
