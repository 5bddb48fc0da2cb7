// `assay trace FILE`: a launch file in a kernel's place.
#pragma once
#include <cstddef>
#include <string>

#include "src/base/vm/line_view.h"

namespace assay::cli {

class CheckOptions;
class EngineOptions;
class FindingOptions;
class OutputOptions;
class ProgramOptions;

struct TraceAsked {
  std::string element;  ///< empty: one that is not finite, or the one furthest from exact arithmetic
  bool first = false;
  size_t depth = 0;
  const CheckOptions& checks;
};

/// The exit status.
int trace_launch_file(ProgramOptions&, const TraceAsked&, const EngineOptions&, const OutputOptions&,
                      const FindingOptions&);
/// What a warp holds at a source line.
int view_line_of(ProgramOptions&, const vm::LineQuestion&, const EngineOptions&, const OutputOptions&);

}  // namespace assay::cli
