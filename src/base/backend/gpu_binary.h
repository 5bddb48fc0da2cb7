// A binary that a GPU runs in place of what its driver compiles from a module's PTX: to judge a compiler.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/backend/backend.h"

namespace assay {

struct GpuBinary {
  std::string
      module;        ///< name of the program's module that it stands for; empty: of a program with one module
  std::string path;  ///< where it was read from, for messages
  std::string bytes;  ///< a cubin or a fatbin
};

/// "FILE" or "MODULE=FILE". Throws BadInput where the file cannot be read or is no ELF file or fatbin.
GpuBinary read_gpu_binary(const std::string& argument);

/// As make_cuda_backend; runs of plans that lack a named module, or have several where none is named, throw
/// BadInput naming the modules there are.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&, std::vector<GpuBinary>);

/// The binary that stands for the module, or null. Throws as above.
const GpuBinary* binary_for(const std::vector<GpuBinary>&, const Program&, const std::string& module);

}  // namespace assay
