// Where the formula of a kernel goes wrong, without a hypothesis: on which inputs its outputs depend
// otherwise than they should.
#pragma once
#include "src/verification/verify/companion.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// Of a finding whose values are finite and wrong in exact arithmetic too: what differs, as evidence of the
/// causes that the result has, and as the cause where none of them is named. Of a run that is right, in which
/// only the checks have found something: the lines that they name. `about`: the input that the cause is
/// about.
void locate_fault(const Kernel&, const Program&, const TensorMap& inputs, const std::string& about,
                  const VerifyOptions&, Verification&);

/// The same where a property failed and the values of the case itself are right: on further cases of the
/// kernel, or on the runs that the property derived.
void locate_failed_property(const Kernel&, const VerifyOptions&, const std::vector<DerivedRun>&,
                            Verification&);

}  // namespace assay
