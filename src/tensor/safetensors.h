// The safetensors format: 8 bytes of header length (little-endian), a JSON header with dtype, shape and byte
// range of each tensor, then the data, row-major.
#pragma once
#include <string>

#include "src/tensor/tensor.h"

namespace assay {

/// Throws BadInput, one line with file and tensor, where the file is truncated, contradicts itself or holds
/// an element type we lack. Axes of the result are unnamed.
TensorMap read_safetensors(const std::string& path);
void write_safetensors(const std::string& path, const TensorMap&);

}  // namespace assay
