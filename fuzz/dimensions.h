// The dimensions of a case, each drawn by itself: lengths, heads, widths, formats, decays, values, scale,
// parameters, direction, optional inputs, layouts. What earlier cases covered steers.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fuzz/generator.h"
#include "src/case/decay_profiles.h"

namespace assay {

/// What a case is drawn for.
struct Target {
  const Kernel& kernel;
  const Operator& op;
  const Feedback& feedback;
};

/// All dimensions drawn, in a fixed order; they need not agree yet. In a RapidCheck generator only, as all
/// below.
Case fresh(const Target&);
/// A corpus case, the newer half preferred, with a new seed and one or two dimensions drawn again.
Case redrawn(const Target&);
/// Of a kernel that is compiled on demand each pair of formats costs seconds: its first cases have two of
/// them.
bool begins_with_few_formats(const Target&);
void draw_decay(Case&, const Target&);
void draw_scale(Case&, const Target&);
void draw_parameters(Case&, const Target&);
void draw_seed(Case&, const Target&);
/// "ladder" or, three times in five, "ladder:8".
std::string with_variant(const DecayProfile&);
/// Kinds of values that the operator's cases are drawn with, by weight.
std::vector<std::pair<size_t, std::string>> drawn_values(const Operator&);
/// A layout that gives some of the inputs strides of their own, one at least.
std::string drawn_strides(const Case&, const Operator&);

}  // namespace assay
