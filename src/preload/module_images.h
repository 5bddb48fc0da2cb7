// Which image a kernel came from: what a program's calls of the driver say of it.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace assay::preload {

/// What a module was loaded from. Text is a copy; a fat binary of a loaded library stays where it is, another
/// one is a copy too.
struct Image {
  enum class Kind { text, fat, machine_code, of_a_library };
  Kind kind = Kind::machine_code;
  std::string copy;
  const void* data = nullptr;
  size_t bytes = 0;
};

struct KnownKernel {
  const Image* image = nullptr;  ///< null: loaded before anybody looked
  std::string name;
  bool of_library = false;  ///< the handle is a CUkernel
};

class ModuleImages {
 public:
  void loaded(const void* handle, const void* image);
  /// The module of a library.
  void same(const void* handle, const void* as);
  void function(const void* handle, const void* of, const char* name, bool of_library);
  /// The function of a kernel.
  void same_function(const void* handle, const void* as);
  /// It has no PTX, as somebody found.
  void leave_out(const void* handle, const char* name);
  KnownKernel kernel(const void* handle) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, Image> images_;  ///< by module or library
  std::map<const void*, const void*> owners_;
  std::map<const void*, KnownKernel> kernels_;
  const Image none_;
};

/// Whether the object that holds that address is NVIDIA's or PyTorch's own.
bool is_of_vendor(const void* address);

}  // namespace assay::preload
