// How long kernel and reference took.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/section.h"

namespace assay::sections {
namespace {

void print_timing(const Console& console, const Verification& v) {
  double enclosure = 0;
  for (const OutputComparison& o : v.outputs) enclosure = std::max(enclosure, o.max_enclosure);
  std::string text = fmt::format("kernel {:.3f} s", v.seconds_kernel);
  if (v.lane_instructions)
    text +=
        fmt::format(" ({:.1f} million lane instructions)", static_cast<double>(v.lane_instructions) * 1e-6);
  if (!v.program) text += fmt::format(", reference {:.3f} s", v.seconds_reference);
  if (enclosure > 0)
    text +=
        fmt::format(" (its enclosures are at most 2^{:.0f} of the bound)", std::ceil(std::log2(enclosure)));
  console.line(console.styled(Style::dim, text));
}

}  // namespace

extern const Section timing = {.field = "seconds_kernel", .note = print_timing};

}  // namespace assay::sections
