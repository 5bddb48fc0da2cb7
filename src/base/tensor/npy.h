// NumPy's .npy format: magic, version, a Python dictionary literal (descr, fortran_order, shape), then the
// data.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "src/base/tensor/mapped_file.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// The tensor's name is the file's, without extension; axes are unnamed. bfloat16 is what ml_dtypes writes
/// ("<V2"); arrays in Fortran order come row by row. Throws BadInput, one line with the file, where it is
/// truncated, big-endian or of a type we lack.
Tensor read_npy(const std::string& path);
/// The same of a whole file's bytes, without a name; `where` is for messages. Given the file that they are
/// mapped from, the elements of a tensor of more than kLargestHeld bytes stay there, unless it is in Fortran
/// order.
Tensor parse_npy(std::string_view file, const std::string& where,
                 const std::shared_ptr<const MappedFile>& mapped = {});
void write_npy(const std::string& path, const Tensor&);

}  // namespace assay
