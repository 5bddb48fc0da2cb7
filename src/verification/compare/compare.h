// Error fields against the bound: one verdict per element, one summary per output.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/result/comparison.h"

namespace assay {

/// Judges `got` against the reference. Axes must agree. `judged`: the elements to judge, by flat number;
/// null: all. `within`: where only the bound is infinite, values so near to the exact one are taken
/// (`by_formula`). The same for any number of threads.
OutputComparison compare_output(const Tensor& got, const ReferenceOutput& reference,
                                const std::vector<uint8_t>* judged = nullptr, double within = 0,
                                int threads = 1);

/// Number of elements whose bits differ, all NaN taken as equal; the first such element in `first`.
int64_t differing_elements(const Tensor& a, const Tensor& b, int64_t* first = nullptr);

}  // namespace assay
