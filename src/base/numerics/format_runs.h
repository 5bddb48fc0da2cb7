// Of many numbers what format.h says of one.
#pragma once
#include <cstdint>

#include "src/base/numerics/format.h"

namespace assay {

void ulp_run(Dtype, const double* x, int64_t count, double* y);
void round_run(Dtype, const double* x, int64_t count, double* y);

}  // namespace assay
