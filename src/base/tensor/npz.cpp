#include "src/base/tensor/npz.h"

#include <fmt/format.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/zip.h"

namespace assay {

TensorMap parse_npz(std::string_view file, const std::string& path) {
  TensorMap tensors;
  for (const auto& [entry, bytes] : parse_zip(file, path, ".npz file")) {
    const std::string where = fmt::format("{}: {}", path, entry);
    if (!entry.ends_with(".npy")) throw BadInput(where + ": not a .npy file");
    const std::string name = entry.substr(0, entry.size() - 4);
    Tensor tensor = parse_npy(bytes, where);
    tensor.name = name;
    tensors.emplace(name, std::move(tensor));
  }
  if (tensors.empty()) throw BadInput(path + ": a .npz file without tensors");
  return tensors;
}

TensorMap read_npz(const std::string& path) {
  return parse_npz(read_file(path), path);
}

}  // namespace assay
