#include "src/cli/kernel_list.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "kernels/foreign.h"
#include "kernels/mutant.h"
#include "src/base/document/shell_word.h"
#include "src/base/numerics/bad_input.h"
#include "src/capsule/launch_folder.h"
#include "src/case/names.h"

namespace assay::cli {
namespace {

/// A kernel, all kernels of an operator, or all.
std::vector<const Kernel*> kernels_named(const std::string& what) {
  std::vector<const Kernel*> chosen;
  std::vector<std::string> known = {"all"};
  for (const Kernel& kernel : assay::kernels()) {
    if (what == "all" || what == kernel.operator_name || what == kernel.name) chosen.push_back(&kernel);
    known.push_back(kernel.name);
    if (std::find(known.begin(), known.end(), kernel.operator_name) == known.end())
      known.push_back(kernel.operator_name);
  }
  if (chosen.empty() && what.find_first_of("@%") != std::string::npos) chosen.push_back(&find_kernel(what));
  for (const Operator& op : operators())
    if (chosen.empty() && op.name == what)
      throw BadInput(
          fmt::format("{}: no kernel of this operator is built in; give one by --ptx and --plan", what));
  if (chosen.empty()) throw BadInput(unknown_name("kernel or operator", what, known));
  return chosen;
}

}  // namespace

void KernelList::add_to(CLI::App& app) {
  const std::string own = "Kernels of your own";
  app.add_option(
      "KERNEL|OPERATOR|all", names_,
      "As in gla.chunk, gla.chunk@S1, gla.chunk%ID (a mutant), gla, all; or launch files and capsules "
      "of programs that no operator describes (assay check); several may be named");
  app.add_option("--ptx", ptx_, "In place of KERNEL: its PTX (a folder where the plan names files) ...")
      ->type_name("FILE.ptx|DIR")
      ->allow_extra_args(false)
      ->group(own);
  app.add_option("--plan", plans_,
                 "... and its launch plan; both may be given several times, in the same order")
      ->type_name("FILE.json")
      ->allow_extra_args(false)
      ->group(own);
  app.add_option("--mutant", mutant_, "With one instruction changed, as assay mutate names it")
      ->type_name("ID");
}

void KernelList::add(const Kernel& kernel) {
  for (const Kernel* known : kernels_) {
    if (known == &kernel) return;
    if (known->name == kernel.name)
      throw BadInput(fmt::format("two kernels are called {}: give their plans a \"name\" each", kernel.name));
  }
  kernels_.push_back(&kernel);
}

void KernelList::load_own() {
  if (!ptx_.empty() && plans_.empty())
    throw BadInput("--ptx needs a --plan: give the kernel's launch plan too");
  if (ptx_.size() > 1 && ptx_.size() != plans_.size())
    throw BadInput(fmt::format("{} --ptx and {} --plan: give one for each, in the same order", ptx_.size(),
                               plans_.size()));
  for (size_t i = 0; i < plans_.size(); ++i) {
    const std::string ptx = ptx_.empty() ? "" : ptx_[ptx_.size() == 1 ? 0 : i];
    Kernel kernel = load_foreign_kernel(ptx, plans_[i]);
    if (!mutant_.empty()) kernel = with_mutation(kernel, mutant_);
    suffixes_[kernel.name] = (ptx.empty() ? "" : " --ptx " + shell_word(ptx)) + " --plan " +
                             shell_word(plans_[i]) + (mutant_.empty() ? "" : " --mutant " + mutant_);
    own_.push_back(std::move(kernel));
    add(own_.back());
  }
}

void KernelList::load() {
  std::vector<std::string> kernels;
  std::erase(names_, "");
  for (const std::string& name : names_)
    if (is_launch_file(name))
      files_.push_back({name, ""});
    else
      kernels.push_back(name);
  // Of a launch file alone --ptx is in place of what it names.
  if (files_.size() == 1 && plans_.empty() && kernels.empty() && ptx_.size() == 1) {
    files_.front().ptx = ptx_.front();
    return;
  }
  load_own();
  for (const std::string& name : kernels) {
    const std::vector<const Kernel*> named = kernels_named(name);
    if (!mutant_.empty() && named.size() > 1)
      throw BadInput(fmt::format("--mutant is of one kernel, and {} names {}", name, named.size()));
    for (const Kernel* kernel : named)
      add(mutant_.empty() ? *kernel : find_kernel(kernel->name + "%" + mutant_));
  }
  if (kernels_.empty() && files_.empty())
    throw BadInput("no kernel given: name a kernel, an operator or all, or give --ptx and --plan");
}

}  // namespace assay::cli
