// A context on the GPU and what lives in it: loaded modules, device buffers, events.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/backend/driver.h"
#include "src/base/backend/gpu_binary.h"
#include "src/base/program/buffers.h"
#include "src/base/program/outcome.h"
#include "src/base/ptx/program.h"

namespace assay {

/// Buffers of one run: inputs and constants uploaded, outputs and workspaces filled with
/// Program::poison. Freed at the end.
class DeviceBuffers {
 public:
  /// Throws BadInput where the GPU's memory does not suffice, naming buffer and size.
  DeviceBuffers(const Driver&, const Program&, const TensorMap& inputs);
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  /// Of its first element, where it is a view. Throws BadInput for a name that is not there.
  CUdeviceptr at(const std::string& name) const;
  TensorMap read_outputs() const;
  /// Those inputs that hold other bytes now, though the program does not say that it writes them; views and
  /// what shares its bytes are not compared.
  TensorMap changed() const;
  /// Leaves the memory to the driver: freeing waits for kernels that run, so forever behind one that does not
  /// end.
  void abandon() { allocations_.clear(); }

 private:
  void place(const Buffer&, uint8_t poison);
  void upload(const Buffer&, CUdeviceptr to) const;
  Tensor read(const Buffer&) const;

  const Driver& driver_;
  std::vector<Buffer> buffers_;
  std::vector<CUdeviceptr> allocations_;
  std::map<std::string, CUdeviceptr> addresses_;  ///< of views that of the first element
};

/// A launch with function and arguments found.
struct PreparedLaunch {
  const Launch* launch = nullptr;
  CUfunction function = nullptr;
  std::vector<std::vector<std::byte>> arguments;
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

  /// Finds functions and arguments; loads modules not yet loaded, their float arithmetic rewritten to `.rn`,
  /// or the binaries in their place.
  /// Throws BadInput with the driver's log for PTX that it refuses, for a missing entry, for arguments that
  /// it does not take (parameters.h) and for a tensor map that the driver does not encode.
  std::vector<PreparedLaunch> prepare(const Program&, const DeviceBuffers&);
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
    std::map<std::string, ptx::Function> entries;  ///< by name, without their bodies
  };
  const Loaded& load(const Module&, const GpuBinary* in_its_place);

  const Driver& driver_;
  std::vector<GpuBinary> binaries_;
  CUcontext context_ = nullptr;
  std::unordered_map<std::string, Loaded> modules_;  ///< by PTX text
  bool hung_ = false;
};

}  // namespace assay
