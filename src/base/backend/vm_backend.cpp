// The virtual machine as a backend.
#include <memory>

#include "src/base/backend/backend.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/tensor_core.h"

namespace assay {
namespace {

class VmBackend : public Backend {
 public:
  explicit VmBackend(const BackendOptions& options)
      : options_{.arch = options.arch,
                 .threads = options.threads,
                 .instruction_budget = options.instruction_budget,
                 .branches = options.branches} {
    vm::tensor_core_model(options.arch);  // throws for an architecture that the machine does not know
  }
  std::string name() const override { return "vm " + options_.arch; }
  Outcome run(const Program& program, const TensorMap& inputs) override {
    return vm::run(program, inputs, options_);
  }

 private:
  vm::MachineOptions options_;
};

}  // namespace

std::unique_ptr<Backend> make_vm_backend(const BackendOptions& options) {
  return std::make_unique<VmBackend>(options);
}

}  // namespace assay
