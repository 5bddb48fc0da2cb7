// Where the formula of a kernel goes wrong, without a hypothesis: on which inputs its outputs depend
// otherwise than they should.
#pragma once
#include "src/verification/verify/verify.h"

namespace assay {

/// Of a finding whose values are finite and wrong in exact arithmetic too: what differs, as evidence of the
/// causes that the result has, and as the cause where none of them is named.
void locate_fault(const Kernel&, const Program&, const TensorMap& inputs, const VerifyOptions&,
                  Verification&);

}  // namespace assay
