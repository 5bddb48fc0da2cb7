#include "src/base/tensor/tensor_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/npz.h"
#include "src/base/tensor/safetensors.h"

namespace assay {

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw BadInput(fmt::format("{}: is a folder, not a file", path));
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw BadInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  const std::streamoff size = file.tellg();
  std::string bytes(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  file.seekg(0);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw BadInput(fmt::format("{}: cannot be read", path));
  }
  return bytes;
}

namespace {

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& why) {
  throw BadInput(fmt::format("{}: cannot be written: {}", path, why));
}

}  // namespace

void require_writable(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path file(path), folder = file.has_parent_path() ? file.parent_path() : ".";
  if (std::filesystem::is_directory(file, failed)) refuse_to_write(path, std::strerror(EISDIR));
  if (std::filesystem::exists(file, failed)) {
    if (access(path.c_str(), W_OK) != 0) refuse_to_write(path, std::strerror(errno));
    return;
  }
  if (!std::filesystem::is_directory(folder, failed))
    refuse_to_write(path, fmt::format("{}: there is no folder {}", std::strerror(ENOENT), folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse_to_write(path, std::strerror(errno));
}

void require_writable_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::path at = std::filesystem::absolute(path, failed);
  while (at.has_parent_path() && at != at.parent_path() && !std::filesystem::exists(at, failed))
    at = at.parent_path();
  const int why = !std::filesystem::is_directory(at, failed) ? ENOTDIR
                  : access(at.c_str(), W_OK | X_OK) != 0     ? errno
                                                             : 0;
  if (why != 0)
    throw BadInput(fmt::format("{}: cannot make this folder ({}); name another with --out or --report", path,
                               std::strerror(why)));
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return;
  const int why = errno;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  refuse_to_write(path, std::strerror(why));
}

TensorMap read_tensors(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension();
  if (ending == ".pt" || ending == ".pth" || ending == ".ckpt")
    throw BadInput(
        fmt::format("{}: PyTorch's own format, which only PyTorch reads; convert it: python3 -c 'import "
                    "torch, safetensors.torch "
                    "as s; s.save_file(torch.load(\"{}\"), \"tensors.safetensors\")'",
                    path, path));
  if (ending == ".npy" && std::filesystem::is_regular_file(path))
    throw BadInput(fmt::format("{}: one tensor; give the folder that holds one NAME.npy per input", path));
  if (!std::filesystem::is_directory(path))
    return std::filesystem::path(path).extension() == ".npz" ? read_npz(path) : read_safetensors(path);
  TensorMap tensors;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() != ".npy") continue;
    Tensor tensor = read_npy(entry.path().string());
    const std::string name = tensor.name;
    tensors.emplace(name, std::move(tensor));
  }
  if (tensors.empty())
    throw BadInput(fmt::format("{}: a folder without .npy files; give one NAME.npy per input", path));
  return tensors;
}

}  // namespace assay
