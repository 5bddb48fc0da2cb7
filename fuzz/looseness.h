// Bounds that no case came near to: rows of the tightness table below what a tight bound reaches, each with
// what the analysis of the bound says of it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "src/result/fuzz_run.h"

namespace assay {

struct LooseReason {
  std::string_view name, text;
};

struct LooseRow {
  TightnessRow row;
  const LooseReason* reason = nullptr;  ///< null: the analysis has none, the bound or the kernel is odd
};

/// What the largest error / bound before the output's rounding reaches where a bound is tight: 0.01 up to
/// T = 1024, 0.002 above.
double tight_from(const TightnessRow&);
/// Those below it that at least `least_cases` cases were judged for, in their order.
std::vector<LooseRow> loose_rows(const std::vector<TightnessRow>&, int64_t least_cases);
/// Every reason that there is.
const std::vector<LooseReason>& loose_reasons();

/// The rows as a page in Markdown, with the reasons, of a result that `fuzz --json` wrote.
std::string render_looseness(const nlohmann::json& fuzz_result, int64_t least_cases);

}  // namespace assay
