// Files too large to be held: their bytes are read where they are looked at.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

/// A file mapped into memory. It must not shrink while it is.
class MappedFile {
 public:
  /// Throws BadInput where it cannot be read.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }
  /// What was looked at there takes no memory any more; it can be looked at again.
  void forget(std::string_view part) const;
  /// Bytes at the beginning of `part` that the file has as a hole: zeros that stand nowhere.
  size_t hole_at(std::string_view part) const;

 private:
  int file_ = -1;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// A tensor whose elements stay in the file, row by row from `at` on.
Tensor mapped_tensor(const std::string& name, Dtype, std::vector<Axis> axes,
                     std::shared_ptr<const MappedFile> file, const char* at);
/// All its elements where they lie; empty for a tensor that is not of mapped_tensor.
std::string_view mapped_bytes(const Tensor&);

}  // namespace assay
