// Pictures that need no script, for Markdown: lines on logarithmic axes, and a map of numbers.
#pragma once
#include <string>
#include <vector>

namespace assay {

struct SvgSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< positive; others are left out
  bool dashed = false;
  int colour = 0;  ///< of a palette of twelve
  int mark = 0;    ///< 0 a circle, 1 a square: tells series of one colour apart
};

/// Both axes logarithmic (x to base 2, y to base 10), with a legend. Every point carries its exact numbers as
/// a title. Stands alone: colours suit light and dark pages. With `places`, x counts them from 1, evenly, and
/// they are named.
std::string svg_lines(const std::string& title, const std::string& x, const std::string& y,
                      const std::vector<SvgSeries>&, const std::vector<std::string>& places = {});

struct SvgCell {
  size_t column = 0, row = 0;
  double value = 0;  ///< shaded by its logarithm up to 1; above 1 marked as bad
  bool bad = false;  ///< marked so whatever its value
};
/// Columns and rows named; the numbers stand in the cells.
std::string svg_map(const std::string& title, const std::vector<std::string>& columns,
                    const std::vector<std::string>& rows, const std::vector<SvgCell>&);

}  // namespace assay
