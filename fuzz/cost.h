// What a case costs on the virtual machine, so that a fuzz run can spend its time on many small cases.
#pragma once
#include "src/case/case.h"

namespace assay {

/// Estimated lane instructions of one run of a kernel of the gated family: linear in tokens x heads; the
/// constants are those of the chunk kernels (per token: exponentials, loads and stores for each key channel;
/// matrix products over padded tiles of 16). Within a factor of about four.
double estimated_cost(const Case&);

}  // namespace assay
