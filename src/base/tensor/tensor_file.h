// Tensors in files: .safetensors, .npz, and folders of .npy.
#pragma once
#include <string>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Tensors of a .safetensors or .npz file, or of a folder with one NAME.npy each, by name. Axes are unnamed.
/// Throws BadInput where the path is neither.
TensorMap read_tensors(const std::string& path);

/// Whole file as bytes; throws BadInput where it cannot be read.
std::string read_file(const std::string& path);
/// Replaces the file; throws BadInput where it cannot be written.
void write_file(const std::string& path, const std::string& bytes);

}  // namespace assay
