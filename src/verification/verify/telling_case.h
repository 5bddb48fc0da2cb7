// A case that tells where a formula is wrong: so small that every input element can be moved in turn, with
// random values, several heads and channels, so that no two of them are alike.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/claim.h"
#include "src/base/vm/moved_run.h"
#include "src/verification/diagnosis/line_repair.h"
#include "src/verification/diagnosis/suspect_lines.h"

namespace assay {

/// Outputs of the program in exact arithmetic are not the reference's in it.
struct TellingCase {
  ResolvedCase resolved;
  TensorMap inputs;
  Program program;
  Problem problem;  ///< without inputs
  vm::RealOutputs exact, expected;
  std::vector<Tensor> wrong;  ///< names and axes of outputs with wrong elements
  double sharpness = 1;       ///< so many times smaller differences than usual are wrong

  /// Element by element of an output: is it wrong?
  std::vector<bool> wrong_elements(const std::string& output) const;
  size_t judged_elements() const;  ///< of all outputs
  /// Wrong elements, and right ones of all outputs: some of each, evenly chosen.
  std::vector<JudgedElement> sample() const;
  /// Of outputs of a changed program, rounded like `rounded`, those of the program as it is: errors that its
  /// roundings explain are none.
  RepairVerdict judge(const vm::RealOutputs& changed, const vm::RealOutputs& rounded) const;
  /// Elements as wrong as a quarter of the most wrong one, and what a changed run leaves of the errors of
  /// some.
  std::vector<vm::OutputElement> most_wrong() const;
  double left_of(const vm::RealOutputs& changed, const std::vector<vm::OutputElement>& of) const;
  /// The same case of another program for the same kernel; none where it is not the same elements that are
  /// wrong, or they are not as wrong.
  std::optional<TellingCase> with(Program, const vm::MachineOptions&) const;
  /// What the reference gives, `moves` added to the inputs; none where the problem has no answer.
  std::optional<vm::RealOutputs> reference(const vm::InputMoves& moves) const;
};

/// The first of a few cases of the kernel, small ones first, the given one last, that is wrong in several
/// elements, else the one that is in most; none where no formula is. `given`: inputs that take the place of
/// drawn ones; then no other case is tried.
std::optional<TellingCase> find_telling_case(const Case&, const Kernel&, const TensorMap* given,
                                             const vm::MachineOptions&, double seconds);

/// The same with as few tokens as `shrunk` has, where that is wrong in enough elements: the fewer tokens the
/// fewer values stand behind each of them. None elsewhere.
std::optional<TellingCase> with_fewer_tokens(const TellingCase&, const Case& shrunk, const Kernel&,
                                             const vm::MachineOptions&);

/// The same case with gates so near 0 that exponentials of them are as good as linear: where its values are
/// wrong for its gates alone, so that with gates of 0 they are right. None elsewhere.
std::optional<TellingCase> with_tiny_gates(const TellingCase&, const Kernel&, const vm::MachineOptions&);

}  // namespace assay
