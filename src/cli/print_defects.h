// Trials of known defects for people: lines, totals, and the page kernels/defects/README.md.
#pragma once
#include <string>
#include <vector>

#include "reports/console.h"
#include "src/campaign/defects/defect_trial.h"

namespace assay::cli {

/// Counts over trials, and whether they are good enough to trust a run that finds nothing.
struct DefectTotals {
  int64_t defects = 0, found = 0;
  int64_t cause_right = 0;                ///< of those found
  int64_t nonfinite = 0, line_right = 0;  ///< of those found
  /// Of those found that are finite: DefectTrial::line_right, and DefectTrial::line_declared.
  int64_t finite_line_right = 0, finite_line_declared = 0;

  explicit DefectTotals(const std::vector<DefectTrial>&);
  /// At most 2 missed, the right cause ranked first for 90 %, the patched line traced or named for 95 % of
  /// the non-finite ones.
  bool within_limits() const;
  std::string sentence() const;
};

void print_trial(const Console&, const DefectTrial&);
void print_totals(const Console&, const DefectTotals&);

/// The page: the trials, then every recorded defect with what became of it. `day`: "2025-11-20".
std::string defects_page(const std::vector<DefectTrial>&, const std::string& command, const std::string& day);

}  // namespace assay::cli
