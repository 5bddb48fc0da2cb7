// A kernel made of another one's launches and some of its own.
#pragma once
#include <map>
#include <string>

#include "src/base/program/program.h"

namespace assay::gated {

/// Appends the launches of `inner` with its inputs and outputs renamed as `names` say (others keep their
/// name). What it writes that is no output of `plan` becomes a workspace; its own workspaces and constants
/// are kept apart from others' by `prefix`. The inner kernel is looked up while a case is planned:
/// `find_kernel` in a function of kernels.def would need the table that is being made.
void add_inner_plan(Program& plan, const Program& inner, const std::map<std::string, std::string>& names,
                    const std::string& prefix);

}  // namespace assay::gated
