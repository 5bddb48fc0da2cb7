// What is said of wrong values that nothing explains: where they are.
#pragma once
#include <string>
#include <vector>

#include "src/result/comparison.h"
#include "src/result/diagnosis.h"
#include "src/verification/diagnosis/meaning.h"

namespace assay {

/// One line per output with wrong elements: which indices along each axis, and t folded at chunk and block
/// sizes ("o: 96 of 1024 elements beyond the bound; t 17-63 of 64, t mod 16 all, h 0 of 0-1, v all").
std::vector<std::string> wrong_places(const std::vector<OutputComparison>&);

/// Adds to the causes found what nothing explains: where no cause scores a half, the places, under the best
/// general cause or as `unexplained`; and how many meanings were tried.
void add_unexplained(const std::vector<OutputComparison>&, const Weighed&, std::vector<Diagnosis>&);

}  // namespace assay
