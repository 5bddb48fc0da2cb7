// The generated PTX program of one form, and plans that run it.
#pragma once
#include <string>

#include "src/base/program/program.h"
#include "tools/fidelity/form.h"

namespace assay::fidelity {

/// Indices that one thread folds into a digest.
inline constexpr uint32_t fold = 64;
inline constexpr uint32_t block_threads = 128;

/// Thread t takes indices base + t * stride + k for k in [from, to): draws operands, executes the form, folds
/// the results into one word, acc <- acc * odd ^ result, and stores it. One index alone gives the bare
/// result. `reveal` >= 0 stores that operand in place of the results.
std::string program_text(const Form&, int reveal = -1);

/// Word or 64-bit word: what a thread of the program stores.
bool stores_wide(const Form&, int reveal = -1);

/// Indices [base, base + threads * stride), one digest per thread in output "digests".
Program digest_plan(const Form&, uint32_t base, uint32_t threads, uint32_t stride);
/// The same indices one by one: output element [k][thread].
Program bare_plan(const Form&, uint32_t base, uint32_t threads, uint32_t stride, int reveal = -1);

}  // namespace assay::fidelity
