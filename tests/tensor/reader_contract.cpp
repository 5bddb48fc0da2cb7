#include "tests/tensor/reader_contract.h"

#include <stdexcept>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/npz.h"
#include "src/base/tensor/safetensors.h"

namespace assay {
namespace {

constexpr const char* kFile = "FILE";

void require_whole(const Tensor& tensor) {
  for (const Axis& axis : tensor.axes)
    if (axis.size < 0) throw std::logic_error("an axis of negative size");
  if (static_cast<int64_t>(tensor.data.size()) != tensor.bytes())
    throw std::logic_error("data of another size than the shape's");
  if (tensor.size() > 0) (void)tensor.value(0), (void)tensor.value(tensor.size() - 1);
}

void require_whole(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) require_whole(tensor);
}

constexpr Reader kReaders[] = {
    {"safetensors", [](std::string_view file) { require_whole(parse_safetensors(file, kFile)); }},
    {"npy", [](std::string_view file) { require_whole(parse_npy(file, kFile)); }},
    {"npz", [](std::string_view file) { require_whole(parse_npz(file, kFile)); }}};

}  // namespace

std::span<const Reader> readers() {
  return kReaders;
}

std::string read_any(const Reader& reader, std::string_view file) {
  try {
    reader.read(file);
    return "";
  } catch (const BadInput& error) {
    const std::string said = error.what();
    if (!said.starts_with(kFile))
      throw std::logic_error("a message that does not begin with the file's name");
    return said;
  }
}

}  // namespace assay
