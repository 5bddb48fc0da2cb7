#include "src/base/tensor/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

class MappedElements : public TensorSource {
 public:
  MappedElements(std::shared_ptr<const MappedFile> file, std::string_view stored, size_t width)
      : file_(std::move(file)), stored_(stored), width_(width) {}
  uint64_t bits(int64_t flat) const override {
    uint64_t bits = 0;
    std::memcpy(&bits, stored_.data() + static_cast<size_t>(flat) * width_, width_);
    return bits;
  }
  std::string_view stored() const { return stored_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string_view stored_;
  size_t width_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0) {
    const int why = errno;
    if (file >= 0) close(file);
    throw BadInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(why)));
  }
  if (S_ISDIR(about.st_mode)) {
    close(file);
    throw BadInput(fmt::format("{}: is a folder, not a file", path));
  }
  size_ = static_cast<size_t>(about.st_size);
  void* const mapped = size_ ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  if (mapped == MAP_FAILED) {
    const int why = errno;
    close(file);
    throw BadInput(fmt::format("{}: cannot be read: {}", path, std::strerror(why)));
  }
  data_ = static_cast<const char*>(mapped);
  file_ = file;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
  close(file_);
}

void MappedFile::forget(std::string_view part) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t from = (static_cast<size_t>(part.data() - data_) + page - 1) / page * page,
               to = static_cast<size_t>(part.data() + part.size() - data_) / page * page;
  if (from < to) madvise(const_cast<char*>(data_) + from, to - from, MADV_DONTNEED);
}

size_t MappedFile::hole_at(std::string_view part) const {
  const auto at = static_cast<off_t>(part.data() - data_);
  const off_t data = lseek(file_, at, SEEK_DATA);
  if (data >= 0) return std::min(static_cast<size_t>(data - at), part.size());
  return errno == ENXIO ? part.size() : 0;  // none behind it; or the file system does not say
}

Tensor mapped_tensor(const std::string& name, Dtype dtype, std::vector<Axis> axes,
                     std::shared_ptr<const MappedFile> file, const char* at) {
  Tensor tensor;
  tensor.name = name, tensor.dtype = dtype, tensor.axes = std::move(axes);
  const std::string_view stored(at, static_cast<size_t>(tensor.bytes()));
  tensor.source =
      std::make_shared<MappedElements>(std::move(file), stored, static_cast<size_t>(format(dtype).bytes));
  return tensor;
}

std::string_view mapped_bytes(const Tensor& tensor) {
  const auto* const mapped = dynamic_cast<const MappedElements*>(tensor.source.get());
  return mapped ? mapped->stored() : std::string_view{};
}

}  // namespace assay
