// A context on the GPU and what lives in it: loaded modules, device buffers, events.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/backend/gpu_binary.h"
#include "src/base/backend/driver.h"
#include "src/base/plan/outcome.h"
#include "src/base/plan/plan.h"

namespace assay {

/// Buffers of one run by name: inputs and constants uploaded, outputs and workspaces filled with
/// Plan::poison. Freed at the end.
class DeviceBuffers {
 public:
  /// Throws BadInput where the GPU's memory does not suffice, naming buffer and size.
  DeviceBuffers(const Driver&, const Plan&, const TensorMap& inputs);
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  /// Of its first element, where it is a view. Throws BadInput for a name that is not there.
  CUdeviceptr at(const std::string& name) const;
  TensorMap read_outputs(const Plan&) const;
  /// Those of `inputs` that hold other bytes now; views are not compared.
  TensorMap changed(const Plan&, const TensorMap& inputs) const;
  /// Leaves the memory to the driver: freeing waits for kernels that run, so forever behind one that does not
  /// end.
  void abandon() { buffers_.clear(); }

 private:
  CUdeviceptr allocate(const std::string& name, int64_t bytes);

  const Driver& driver_;
  std::map<std::string, CUdeviceptr> buffers_;
  std::map<std::string, CUdeviceptr> first_;  ///< bytes before the first element of views
};

/// A launch with function and arguments found.
struct PreparedLaunch {
  const Launch* launch = nullptr;
  CUfunction function = nullptr;
  std::vector<uint64_t> values;  ///< one word per argument, in its low bytes
};

/// An event that destroys itself.
class Event {
 public:
  explicit Event(const Driver& driver) : driver_(driver) {
    driver.check(driver.cuEventCreate(&event_, 0), "cuEventCreate");
  }
  ~Event() { driver_.cuEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator CUevent() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

class CudaContext {
 public:
  /// `binaries` stand for the modules they name.
  explicit CudaContext(const Driver&, std::vector<GpuBinary> binaries = {});
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  /// Finds functions and arguments; loads modules not yet loaded, their float arithmetic rewritten to `.rn`, or
  /// the binaries in their place.
  /// Throws BadInput with the driver's log for PTX that it refuses, for a missing entry and for a wrong
  /// number of arguments.
  std::vector<PreparedLaunch> prepare(const Plan&, const DeviceBuffers&);
  /// Enqueues one launch.
  std::optional<Trap> enqueue(const PreparedLaunch&);
  /// Records the event and waits for it; a trap where the GPU reports an error or does not answer in time.
  /// After a trap the context is lost: nothing in it may be used, its buffers included.
  std::optional<Trap> finish(const Event&);
  /// Whether the GPU still runs a kernel that does not end. Such a context cannot be destroyed.
  bool hung() const { return hung_; }

 private:
  struct Loaded {
    CUmodule module = nullptr;
    std::map<std::string, size_t> parameters;  ///< entry -> number of parameters
  };
  const Loaded& load(const Module&, const GpuBinary* in_its_place);

  const Driver& driver_;
  std::vector<GpuBinary> binaries_;
  CUcontext context_ = nullptr;
  std::unordered_map<std::string, Loaded> modules_;  ///< by PTX text
  bool hung_ = false;
};

}  // namespace assay
