// A program run as it is and with the watch in it: what the machine's trace sees born, and what is noted.
#pragma once
#include <string>

#include "src/base/program/program.h"
#include "src/base/watch/rewriter.h"
#include "tools/watch/birth_lines.h"

namespace assay::watch {

struct TracedAndNoted {
  BirthLines traced, noted;
  bool same_outputs = true, same_trap = true, trapped = false;
  double added = 0;  ///< lane-instructions, as a share
  WatchCounts counts;
  std::string text;  ///< of the first module, rewritten
};
TracedAndNoted traced_and_noted(const Program&, const TensorMap& inputs, const std::string& arch = "sm_90");

}  // namespace assay::watch
