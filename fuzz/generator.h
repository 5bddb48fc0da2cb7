// Draws cases for a kernel: sizes around chunk edges, unequal widths, packed sequences, absent inputs,
// formats, scales, decay profiles, and kinds of values. RapidCheck's generators draw each dimension; what
// earlier cases covered steers.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

/// What earlier cases of one kernel covered. Deterministic: a function of those cases alone.
struct Feedback {
  /// "decay ladder", or presence_of() -> cases so far, for even shares
  std::map<std::string, int64_t> drawn;
  std::vector<Case> corpus;  ///< cases that reached something new, oldest first
};

/// Counts the case in `drawn`.
void count_case(Feedback&, const Case&, const Operator&);

/// Direction and optional inputs that are there: "backward: g dfinal_state".
std::string presence_of(const Case&, const Operator&);
/// Gives the case each choice of optional inputs, whether its kernel takes it or not, until visit() is false.
void each_choice_of_inputs(Case&, const Operator&, const std::function<bool()>& visit);
/// The cases of these choices.
std::vector<Case> choices_of_inputs(const Case&, const Operator&);
/// Those that the kernel takes.
std::vector<Case> presence_lattice(const Case&, const Kernel&, const Operator&);

/// Case number `index` of the run `seed`: three in four drawn afresh, the others a corpus case with one or
/// two dimensions drawn again. Within the kernel's limits, valid for the operator, and cheap (see cost.h): on
/// average about 6 million lane instructions.
Case draw_case(const Kernel&, const Operator&, const Feedback&, uint64_t seed, uint64_t index);

/// Has some input this axis, by itself or as a factor of one ("H*V")? D is V.
bool uses_axis(const Operator&, std::string_view axis);
/// A case of which only a few blocks run, the last ones among them, with tensors so large that the index of
/// an element, or its byte, passes 2^31 or 2^32: many batch entries or many heads of few tokens.
Case draw_far_case(const Kernel&, const Operator&, uint64_t seed, uint64_t index);

/// "two chunks and a partial one", ...: class of the longest sequence, the coverage table's and the
/// feedback's.
int64_t longest_sequence(const Case&);

}  // namespace assay
