#include "kernels/inner_plan.h"

#include "kernels/launch_tables.h"

namespace assay::gated {
namespace {

int64_t bytes_of(const ProgramOutput& output) {
  int64_t bytes = format(output.dtype).bytes;
  for (const Axis& axis : output.axes) bytes *= axis.size;
  return bytes;
}

}  // namespace

void add_inner_plan(Program& plan, const Program& inner, const std::map<std::string, std::string>& names,
                    const std::string& prefix) {
  std::map<std::string, std::string> all = names;
  for (const Workspace& workspace : inner.workspaces)
    all[workspace.name] = workspace_of(plan, prefix + workspace.name, workspace.bytes).buffer;
  for (Tensor constant : inner.constants) {
    constant.name = all[constant.name] = prefix + constant.name;
    plan.constants.push_back(std::move(constant));
  }
  for (const ProgramOutput& output : inner.outputs) {
    const std::string& name = all.emplace(output.name, output.name).first->second;
    if (!has(plan.outputs, name)) workspace_of(plan, name, bytes_of(output));
  }
  for (const Module& module : inner.modules)
    if (!has(plan.modules, module.name)) plan.modules.push_back(module);
  for (Launch launch : inner.launches) {
    for (Argument& argument : launch.arguments) redirect(argument, all);
    plan.launches.push_back(std::move(launch));
  }
}

}  // namespace assay::gated
