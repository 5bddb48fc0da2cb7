// Of an output too large to be held, of a run of some blocks: which elements it may have written.
#pragma once
#include <utility>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

class ReachedElements : public TensorSource {
 public:
  /// [first, second) each, ascending.
  virtual std::vector<std::pair<int64_t, int64_t>> reached() const = 0;
};

/// All of a tensor that is held, or of which nothing is said.
inline std::vector<std::pair<int64_t, int64_t>> reached_elements(const Tensor& tensor) {
  if (const auto* const known = dynamic_cast<const ReachedElements*>(tensor.source.get()))
    return known->reached();
  return {{0, tensor.size()}};
}

}  // namespace assay
