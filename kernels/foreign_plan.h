// A stranger's plan applied to one case: sizes in, launches out.
#pragma once
#include <map>
#include <string>

#include "kernels/plan_document.h"
#include "src/base/document/expression.h"
#include "src/base/program/program.h"
#include "src/case/resolved_case.h"

namespace assay {

/// The checked documents behind a foreign Kernel; its closures share one.
struct ForeignKernel {
  PlanDocument plan;
  std::map<std::string, Module> modules;  ///< by LaunchEntry::ptx, formats filled in
  const Operator* op = nullptr;
  std::map<std::string, std::vector<size_t>> orders;  ///< Kernel::orders
};

/// What the plan's expressions may name for this case (examples/strangers_gla/README.md lists it).
ExpressionScope scope_of(const ResolvedCase&, const ForeignKernel&);
/// The operator's inputs and outputs; with launches of gradients also what gradients take and give.
std::vector<ArgumentSpec> tensors_read(const PlanDocument&, const Operator&);
std::vector<ArgumentSpec> tensors_written(const PlanDocument&, const Operator&);
/// Whether some launch of these is given this tensor or workspace.
bool passes(const std::vector<LaunchEntry>&, std::string_view name);
/// The launches of the case's direction, in order. Gradients come after the forward launches where they read
/// what those leave: an output, a workspace.
std::vector<LaunchEntry> launches_for(const ForeignKernel&, Direction);
/// Whether the case has no tensor of that name: an absent input, the gradient of one, no packed sequences.
bool stands_absent(const ForeignKernel&, const std::string& name, const ResolvedCase&);
/// A name for the zeros passed in place of the absent input.
std::string zeros_name(const std::string& input);
/// The argument of that name, or null.
const ArgumentSpec* find_argument(const std::vector<ArgumentSpec>&, const std::string& name);
/// A function's or file's name with {dtype} and {gate_dtype} filled in.
std::string with_formats(std::string name, Dtype dtype, Dtype gate);
/// Kernel::refuses.
std::string refusal(const ForeignKernel&, const ResolvedCase&);
/// Kernel::plan. Throws BadInput naming file and place where the case is refused or an expression has no
/// legal value.
Program plan_for_case(const ForeignKernel&, const ResolvedCase&, const TensorMap& inputs);

}  // namespace assay
