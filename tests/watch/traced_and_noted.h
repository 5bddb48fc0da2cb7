// A program run as it is and with the watch in it: what the machine's trace sees born, and what is noted.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "src/base/program/program.h"
#include "src/base/watch/rewriter.h"

namespace assay::watch {

struct TracedAndNoted {
  /// "a.cu:12 ex2.approx.f32", without a source line that of the PTX: NaN, infinities.
  std::map<std::string, std::pair<bool, bool>> traced, noted;
  bool same_outputs = true, same_trap = true, trapped = false;
  double added = 0;  ///< lane-instructions, as a share
  WatchCounts counts;
  std::string text;  ///< of the first module, rewritten
};
TracedAndNoted traced_and_noted(const Program&, const TensorMap& inputs, const std::string& arch = "sm_90");

}  // namespace assay::watch
