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
/// Throws BadInput where the file could not be written, or made in its folder, before there is anything to
/// write.
void require_writable(const std::string& path);
/// The same of files in a folder, which may have to be made.
void require_writable_folder(const std::string& path);
/// Replaces the file; throws BadInput where it cannot be written, and leaves no half of it.
void write_file(const std::string& path, const std::string& bytes);

}  // namespace assay
