// A GPU that there is not: memory of the process that programs of the CUDA runtime take for a device's, their
// kernels from the PTX they carry, each launch run on the machine at once and judged.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "src/base/program/byte_set.h"
#include "src/binding/gpus.h"
#include "src/binding/launch.h"
#include "src/standin/cuda_abi.h"

namespace assay::standin {

enum class Place : uint8_t { device, pinned, managed };

struct LoadedCode {
  std::vector<std::unique_ptr<assay_module>> modules;  ///< one for each text of the fat binary that fits
  std::string refused;                                 ///< why there is none
};

struct KernelHandle {
  LoadedCode* code = nullptr;
  std::string entry;
};

struct LaunchRequest {
  Dim3 grid{}, block{}, cluster{};
  size_t shared_bytes = 0;
  bool cooperative = false;
  const void* packed = nullptr;  ///< arguments as the entry's parameters lie, in place of one by one
  size_t packed_bytes = 0;
};

class Device {
 public:
  /// Options from the environment: ASSAY_RUN, a JSON object {"arch", "checks", "repeats", "origins", "limit",
  /// "copies", "result", "digests"} (src/cli/run.cpp).
  static Device& get();
  ~Device();

  const binding::Gpu& gpu() const { return gpu_; }

  // Status codes as of cudaError_t.
  Status allocate(size_t bytes, Place, void** to);
  Status free(void* address);
  /// Memory of the program's own that its kernels may reach too.
  Status register_memory(void* address, size_t bytes);
  Status unregister_memory(void* address);
  /// Null where the byte is in no allocation.
  struct Allocation {
    size_t bytes = 0;
    Place place = Place::device;
    int number = 0;  ///< from 1 on, in the order of the program; 0: a variable of device code
    std::string name;
    ByteSet unwritten{};  ///< holds nothing yet, where that is followed
  };
  const Allocation* find(const void* address, uint64_t* base = nullptr);
  /// Is [address, address + bytes) inside an allocation, or memory that no allocation touches?
  Status check_range(const void* address, size_t bytes);
  Status copy(void* to, const void* from, size_t bytes);
  /// `word`, again and again; the last one perhaps in part.
  Status fill(void* to, uint32_t word, size_t bytes);

  void reset_heap();
  LoadedCode* load(const FatBinaryWrapper&);
  /// PTX text or a fat binary, wrapped or not, as the driver tells them apart by their first bytes.
  LoadedCode* load_image(const void* image);
  /// A variable of device code by what the host calls it.
  void name_variable(const void* host, const LoadedCode&, const std::string& name);
  /// Its address; null where the code has no such variable.
  void* name_managed_variable(const LoadedCode&, const std::string& name);
  Status find_variable(const void* host, void** at, const Allocation** of);
  const Allocation* find_variable(const LoadedCode&, const std::string& name, void** at);
  void name_kernel(const void* host_function, LoadedCode*, const char* entry);
  const KernelHandle* kernel(const void* host_function);
  Status launch(const KernelHandle&, const LaunchRequest&, void** arguments);
  /// Of that entry as `describe` says it (src/binding/launch.h); null where it is not known.
  nlohmann::json entry_of(const KernelHandle&);

  /// The last error; `clear` forgets it, unless it is one that a GPU never recovers from.
  Status last(bool clear);
  Status fail(Status);
  /// Said once per text on standard error.
  void say(const std::string& line);

 private:
  Device();
  void write_result();
  void note(const std::string& line);  ///< say, by one who holds the mutex
  void note_digest(uint64_t address, const Allocation&);
  void* allocate(size_t bytes, Allocation);  ///< null: there is no more
  Allocation* holder(const void* address, uint64_t* offset);
  void note_copy(const void* to, const void* from, size_t bytes);
  void tell_unwritten(const Allocation&, const ByteSet&);
  LoadedCode* keep(std::unique_ptr<LoadedCode>);
  void place_variables(assay_module&);
  Allocation* variable(const LoadedCode&, const std::string& name, void** at);

  std::mutex mutex_;
  nlohmann::json options_;
  bool follows_unwritten_ = false;
  const binding::Gpu& gpu_;
  std::map<uint64_t, Allocation> allocations_;  ///< by address
  std::map<uint64_t, size_t> registered_;       ///< bytes by address: the program's own memory
  int allocated_ = 0;
  std::vector<std::unique_ptr<LoadedCode>> codes_;
  std::map<const void*, KernelHandle> kernels_;
  std::map<const void*, void*> variables_;  ///< address of each, by what the host calls it
  std::vector<std::string> said_;
  std::vector<std::string> notes_;          ///< what is no finding
  std::set<std::string> copied_unwritten_;  ///< names of allocations of which that is told
  Status last_ = kSuccess, lost_ = kSuccess;
  std::string result_;                  ///< file for the program that started this one
  std::map<int, std::string> digests_;  ///< by allocation, of what it held at its end
  nlohmann::json findings_ = nlohmann::json::array();
  std::map<std::string, int64_t> launches_;     ///< by entry
  std::shared_ptr<const vm::DeviceHeap> heap_;  ///< what kernels have allocated, until the device is reset
  uint64_t lane_instructions_ = 0;
  double seconds_ = 0;
};

}  // namespace assay::standin
