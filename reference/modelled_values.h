// What a model of a kernel's arithmetic says of one slice's results.
#pragma once
#include <vector>

namespace assay {

struct ModelledElement {
  double companion = 0;  ///< sum of the absolute values of the terms
  double bound = 0;      ///< of |kernel - exact|, the storing of the result included
  double underflow = 0;  ///< the part of it that is absolute
};

/// One list per argument, in the order of the specifications; `proved` is false where there are companions
/// only.
struct ModelledValues {
  std::vector<std::vector<ModelledElement>> values;
  bool proved = false;
};

}  // namespace assay
