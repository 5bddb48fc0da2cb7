// The rows that are emitted as host code of their own; all others are calls of the interpreter's. A test
// holds each to the bits of its row.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "src/base/vm/compiled/emitter.h"

namespace assay::vm {

struct Emission {
  std::string pattern;  ///< Row::pattern
  Mode mode = Mode::any;
  std::function<void(Emitter&, const Op&)> emit;
};
const std::vector<Emission>& emissions();
/// Null: none.
const Emission* emission_of(const Row&);

}  // namespace assay::vm
