// NumPy's .npz: a ZIP archive of .npy files, stored or deflated.
#pragma once
#include <string>
#include <string_view>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Tensors by the names of their files, without ".npy". Throws BadInput, one line with the file, where the
/// archive is truncated, contradicts itself, or holds what is no .npy.
TensorMap read_npz(const std::string& path);
/// The same of a whole file's bytes; `where` is for messages.
TensorMap parse_npz(std::string_view file, const std::string& where);

}  // namespace assay
