// Decays that are wrong on one way through a chunked kernel only.
#pragma once
#include <string>
#include <vector>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {

/// Every gate changed so on one way from a write to what reads it: inside a chunk; from the state before a
/// chunk to the chunk's tokens; in the states at chunk starts and the final one. Of the gates themselves
/// nothing is predicted.
std::vector<Variant> gates_changed_on_a_path(const FailingRun&, const std::string& text, const TensorChange&);
/// What comes over a chunk's start is read with the decays up to the token before, the chunk's own tokens as
/// they should be; where a token reads before its decay, with the token's own.
std::vector<Variant> entering_read_otherwise(const FailingRun&);
/// What a token leaves behind its chunk's end has decayed by the token's own gate.
std::vector<Variant> leaving_decayed_by_own_gate(const FailingRun&);
/// The gates of the first, or the last, token of each chunk times a factor, on a way that crosses an edge of
/// a chunk: a sum over a chunk's decays that has one token too few, or one twice.
std::vector<Variant> edge_gates_changed_on_a_path(const FailingRun&, double factor);

}  // namespace assay
