// How a sweep's cells are laid out in pictures: which option runs along x, what makes a series, which panels.
#pragma once
#include <string>
#include <vector>

#include "src/result/sweep_result.h"

namespace assay {

struct SweepAxes {
  std::string x;             ///< option along x: length, else the one of whole numbers with the most values
  bool logarithmic = false;  ///< x values are positive numbers
  std::vector<std::string> options;  ///< that make a series: all others but dtype
  std::vector<std::string> series;   ///< in the order of the sweep

  /// "mild", or "mild, 4" of several options; empty where nothing else is swept.
  std::string series_of(const SweepCell&) const;
  /// "decay", "decay, heads"; "the kernel" where no option makes a series.
  std::string series_name() const;
  /// The cell's value along x; its place in the list where those are no numbers.
  double x_of(const SweepCell&) const;
  std::vector<std::string> x_values;
};

SweepAxes axes_of(const Sweep&);

/// One picture: an output in a format, of one kernel or (empty) of all.
struct SweepPanel {
  std::string kernel, output, dtype;
};
std::vector<SweepPanel> panels_of(const Sweep&, bool by_kernel);

/// "bf16", swept or not.
std::string dtype_of(const SweepCell&);

}  // namespace assay
