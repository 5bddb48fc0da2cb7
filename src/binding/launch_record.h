// Launches on the process's own memory, written down as they are made: a program that can be run again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "include/assay_engine.h"
#include "src/base/backend/backend.h"

namespace assay::binding {

/// Memory that the launches reach becomes inputs at the places that it has; what the process itself writes
/// between two launches becomes a copy of a constant. The caller frees none of it while the record lasts.
class LaunchRecord {
 public:
  /// `array`, wherever it lies, is the tensor of this name and these axes.
  void name(const assay_array& array, const Tensor& shape);
  void before(const assay_module&, const assay_launch&);
  void after();
  bool empty() const { return steps_.empty(); }

  /// Outputs are the tensors named so that a launch wrote, also where what was given of that name is no more
  /// than a copy of such memory. Where none of them is there, or what was given is not finite and none of
  /// them, what the first launch wrote that gave a value that is not finite is there too.
  std::optional<LaunchedRun> finish(const std::vector<ProgramOutput>& outputs, const TensorMap& given);

 private:
  struct Memory {
    uint64_t address = 0, bytes = 0;
    std::string name;
    Tensor shape;  ///< without data; none: bytes
    std::vector<std::byte> first, now;
    bool written = false;
  };
  struct Step {
    size_t launch = SIZE_MAX;  ///< in launches_; else the copy of a constant
    size_t memory = 0, constant = 0;
    uint64_t offset = 0;
  };
  struct Named {
    uint64_t address = 0;
    Tensor shape;
  };

  size_t memory_of(const assay_array&);
  std::string name_of(size_t memory) const;
  void name_copies(const TensorMap& given);

  std::vector<Memory> memories_;
  std::vector<Named> named_;
  std::vector<Tensor> constants_;
  std::vector<Module> modules_;
  std::map<const void*, size_t> known_modules_;
  std::vector<Launch> launches_;
  std::vector<Step> steps_;
  std::vector<size_t> reached_;                         ///< by the launch that is under way
  std::optional<std::pair<size_t, size_t>> nonfinite_;  ///< the first step that wrote one, and where
};

}  // namespace assay::binding
