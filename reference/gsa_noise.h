// Samples of what the declared roundings do to gated slot attention (rounding_noise.h), with decays given.
//
// Either pass is a recurrence over the slots: s writes k into Hk and v into Hv. What q reads of Hk, y, and
// what do reads of Hv, dp, are made as gradients of queries are in gla: copies of the state and scores are
// rounded, s is scaled to its place. Sources beside those of rounding_noise.h:
//   a weight p, stored         token x slot; enters o of its token, and dv, ds, dg of all earlier ones
//   a gradient dy, stored      token x slot; enters dq of its token, and dk, ds, dg of all earlier ones
//   a score q_i . k_j          pair of tokens of one chunk; enters the logits of all slots
//   a score do_i . v_j         likewise dp
// `logits` counts roundings of scores and copies in y, `inner` those in dp and of a dy, `divide` those of a
// p, `readout` those of scores and copies, one each, and all others of p (dy) when it becomes an operand.
//
// What is left of the declared numbers, eta = r (|y| + |terms of y|) + per nat of a logit, is carried through
// softmax and its gradient (sampled_softmax.h) and on as the terms p do and dy q are: as the root of the sum
// of squares, for what the order of tokens has to do with their values' signs is nothing.
#pragma once
#include "reference/operator.h"
#include "reference/rounding_noise.h"

namespace assay {

/// Of one slice; nothing of a problem without gates, or whose heads of queries share heads of keys.
void gsa_forward_noise(const Problem&, const Slice&, const NoiseVisit&);
void gsa_adjoint_noise(const Problem&, const Slice&, const NoiseVisit&);

}  // namespace assay
