// The safetensors format: 8 bytes of header length (little-endian), a JSON header with dtype, shape and byte
// range of each tensor, then the data, row-major.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/tensor/mapped_file.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// Throws BadInput, one line with file and tensor, where the file is truncated, contradicts itself or holds
/// an element type we lack. Axes of the result are unnamed.
TensorMap read_safetensors(const std::string& path);
/// The same of a whole file's bytes; `where` is for messages. Tensors of more than kLargestHeld bytes stay in
/// `mapped`, where that is the file that the bytes lie in.
TensorMap parse_safetensors(std::string_view file, const std::string& where,
                            const std::shared_ptr<const MappedFile>& mapped = nullptr);
/// A whole file's bytes; of tensors that are held.
std::string safetensors_bytes(const TensorMap&);
/// The same in pieces that follow each other, of tensors that need not be held, and how many bytes they have.
void each_safetensors_piece(const TensorMap&, const std::function<void(std::string_view)>& take);
uint64_t safetensors_size(const TensorMap&);
void write_safetensors(const std::string& path, const TensorMap&);

}  // namespace assay
