#include "src/cli/engine_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "src/base/backend/gpu_binary.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"
#include "src/cli/free_cores.h"
#include "src/cli/whole_number.h"

namespace assay::cli {

void EngineOptions::add_to(CLI::App& app) {
  const std::string group = "Where";
  app.add_option("--backend", backend_, "auto (the machine, and the GPU beside it if there is one), vm, cuda")
      ->group(group)
      ->capture_default_str();
  app.add_option("--arch", arch_,
                 "Architecture of the machine: sm_80, sm_89, sm_90 (default: the GPU's, else sm_90)")
      ->group(group);
  app.add_option(
         "--cubin", cubins_,
         "[MODULE=]FILE: the GPU runs this binary in place of what its driver compiles from the module's "
         "PTX, which the machine runs: whose fault is it?")
      ->group(group);
  app.add_option(
         "--engine", engine_,
         "interpreter, or compiled: the machine compiles straight pieces of a program where the "
         "processor has AVX-512, the same bits (default: auto, compiled in launches of 1,024 warps and "
         "more, where compiling pays)")
      ->check(CLI::IsMember({"auto", "interpreter", "compiled"}))
      ->group(group);
  app.add_option("--threads", threads_, "Threads (default: the cores that are free)")
      ->check(whole_number(1, kMostThreads))
      ->group(group);
}

Engines EngineOptions::make() const {
  return make(threads_ > 0 ? threads_ : free_cores());
}

Engines EngineOptions::make(int threads_per_run, bool branches) const {
  const std::vector<std::string> known{"auto", "vm", "cuda"};
  if (std::find(known.begin(), known.end(), backend_) == known.end())
    throw BadInput(unknown_name("backend", backend_, known));
  if (!engine_.empty()) vm::choose_engine(engine_);
  BackendOptions options;
  options.threads = threads_per_run;
  options.branches = branches;
  const std::string gpu = gpu_arch();
  options.arch = !arch_.empty() ? arch_ : !gpu.empty() ? gpu : options.arch;
  std::vector<GpuBinary> binaries;
  for (const std::string& cubin : cubins_) binaries.push_back(read_gpu_binary(cubin));
  if (!binaries.empty() && (backend_ == "vm" || (backend_ == "auto" && !gpu_available())))
    throw BadInput(fmt::format("--cubin: no GPU runs it ({}); leave it out",
                               backend_ == "vm" ? "--backend vm" : describe_gpu()));
  Engines engines;
  engines.machine.arch = options.arch;
  engines.machine.threads = threads_per_run;
  if (backend_ == "cuda") {
    engines.primary = make_cuda_backend(options, binaries);
  } else {
    engines.primary = make_vm_backend(options);
    if (backend_ == "auto" && gpu_available()) engines.peer = make_cuda_backend(options, binaries);
  }
  return engines;
}

}  // namespace assay::cli
