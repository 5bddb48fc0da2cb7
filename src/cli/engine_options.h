// Options that say where a kernel runs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/backend/backend.h"
#include "src/base/vm/machine.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct Engines {
  std::unique_ptr<Backend> primary;
  std::unique_ptr<Backend> peer;  ///< the GPU beside the machine; null where there is only one
  vm::MachineOptions machine;     ///< of replays that look for an origin
};

class EngineOptions {
 public:
  void add_to(CLI::App&);
  /// auto: the machine, and beside it the GPU if there is one; the machine then takes the GPU's architecture.
  /// Throws BadInput where cuda is asked for and there is none, saying why.
  Engines make() const;
  /// With so many threads for each run instead of --threads.
  /// `branches`: BackendOptions::branches.
  Engines make(int threads_per_run, bool branches = false) const;
  /// As asked for; 0: nobody did.
  int threads() const { return threads_; }
  /// " --arch sm_80" for a replay line; empty where none was chosen.
  std::string replay_suffix() const { return arch_.empty() ? "" : " --arch " + arch_; }

 private:
  std::string backend_ = "auto", arch_, engine_;
  std::vector<std::string> cubins_;
  int threads_ = 0;
};

}  // namespace assay::cli
