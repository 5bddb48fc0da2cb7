// All origins of a run: which births stand behind its non-finite output elements.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/result/origin.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

struct AllOrigins {
  /// By kind and source line of the origin, most elements first; the example is the first such element.
  std::vector<OriginGroup> groups;
  /// The element whose origin was executed first, blocks counted one after another: (output, flat).
  std::optional<std::pair<std::string, int64_t>> first;
};

/// Runs the plan in the recording machine and finds the origin of every non-finite output element. Nearest
/// finite inputs are not looked for. `groups_too` false: only `first`.
AllOrigins find_all_origins(const Program&, const TensorMap& inputs, const OriginOptions&,
                            bool groups_too = true);

}  // namespace assay
