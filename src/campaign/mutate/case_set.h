// The cases that mutants are tried on: few and small, made from the kernel's limits alone, so that every part
// of its code runs (full, partial and several chunks; widths in and out of step with vectors; packed and
// empty sequences; states and their gradients; extreme decays; values whose results are exact).
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

struct MutationCase {
  Case case_;
  size_t row = 0;  ///< the same for cases that differ only in their formats
};

/// Formats of inputs and gates that together show every one of both; each has modules of its own.
std::vector<std::pair<Dtype, Dtype>> format_pairs(const Kernel&);

/// Optional inputs, apart from states, that a case may lack: every set of some.
std::vector<std::set<std::string>> absent_inputs(const Operator&);

/// `directions`: some of forward, backward. The rows of mutation_cases.def in every pair of formats, and one
/// for each optional input that is absent: all of them where the kernel launches other modules then. Only
/// cases that the kernel accepts, inside its domain.
std::vector<MutationCase> mutation_cases(const Kernel&, const std::vector<Direction>& directions);

/// Candidates beside them, of number `first_row` and on: the rows that reach most, for each optional input
/// that is absent, as kernels have modules of their own then.
std::vector<MutationCase> absence_cases(const Kernel&, const std::vector<Direction>& directions,
                                        size_t first_row);

/// The rows that cost much and tell of few kernels, likewise candidates.
std::vector<MutationCase> costly_cases(const Kernel&, const std::vector<Direction>& directions,
                                       size_t first_row);

/// More candidates, of number `first_row` and on: the fuzzer's cases, and sizes drawn so that tiles,
/// vectors and counts end in every way. Decided by `seed`.
std::vector<MutationCase> drawn_cases(const Kernel&, const std::vector<Direction>& directions, int count,
                                      uint64_t seed, size_t first_row);

/// The case with other values; every second time larger too: a last bit that one sum hides, one of a hundred
/// thousand shows.
Case with_other_values(const Case&, const Kernel&, uint64_t round);

/// Another case whose plan is `wanted`, of number `index` in an endless series that `seed` decides: sizes at
/// multiples of 8, around them or anywhere, now and then more heads than a GPU has multiprocessors. What else
/// decides modules is as in `like`. Nothing where that one is too dear, not taken or not wanted.
std::optional<MutationCase> with_searched_sizes(const MutationCase& like, const Kernel&, uint64_t seed,
                                                uint64_t index,
                                                const std::function<bool(const Program&)>& wanted);

/// The same case in the kernel's other pairs of formats, where it takes them.
std::vector<MutationCase> in_other_formats(const MutationCase&, const Kernel&);

}  // namespace assay
