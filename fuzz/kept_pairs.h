// Which pairs of features a kernel takes, kept from one run to the next: looking for them takes a second of
// each start over all kernels, and finds the same as long as the program is the same.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

/// Of a kernel of the table, what this very program (by its linker's digest) kept; false where there is none.
/// `possible`: of as many places as are wanted.
bool read_kept_pairs(const Kernel&, std::vector<uint8_t>& possible);
/// Beside compiled kernels (compile_ptx.h). What cannot be written is looked for again.
void keep_pairs(const Kernel&, const std::vector<uint8_t>& possible);

}  // namespace assay
