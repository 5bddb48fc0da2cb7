// Sweeps made by hand, for the tests of what is said about them and of their renderers.
#pragma once
#include <functional>

#include "src/result/sweep_result.h"

namespace assay::test {

/// Of every kernel at every combination of the values one cell, its output "o": passed, with gates from -1 to
/// 0 and one run per seed, each with largest error 2^-10, bound 2^-7, ratio 2^-3 and root mean squares 2^-12
/// and 1. `change` then makes of each what the test needs; what holds over the seeds follows from its
/// samples.
Sweep sweep_of(std::vector<std::string> kernels, std::vector<SweepDimension>, int seeds,
               const std::function<void(SweepCell&)>& change);

/// Two kernels, three lengths, two decays, two formats, two seeds; every number is another one. A finding, an
/// undecided cell and a refused one among them, and a worst run.
Sweep full_sweep();

/// Sets a field of all samples.
void set_all(SweepCell&, double SweepSample::*field, double value);

}  // namespace assay::test
