// Decays that are wrong on one way through a chunked kernel only.
#pragma once
#include <string>
#include <vector>

#include "src/diagnosis/meanings/propose.h"

namespace assay {

/// Every gate changed so on one way from a write to what reads it: inside a chunk; from the state before a chunk to the
/// chunk's tokens; in the states at chunk starts and the final one. Of the gates themselves nothing is predicted.
std::vector<Variant> gates_changed_on_a_path(const FailingRun&, const std::string& text, const TensorChange&);

}  // namespace assay
