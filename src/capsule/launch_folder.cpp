#include "src/capsule/launch_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "src/base/tensor/npz.h"
#include "src/base/tensor/safetensors.h"
#include "src/base/tensor/tensor_file.h"

namespace assay {
namespace {

bool stays_inside(const std::string& name) {
  const std::filesystem::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const auto& part : path)
    if (part == "..") return false;
  return true;
}

}  // namespace

bool is_launch_file(const std::string& name) {
  const std::filesystem::path path(name);
  return name.ends_with(".json") || name.ends_with(".capsule") || std::filesystem::is_regular_file(path) ||
         std::filesystem::is_regular_file(path / kLaunchDocument);
}

LaunchFolder::LaunchFolder(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path)) {
    folder_ = path, closed_ = true;
    document_path_ = (std::filesystem::path(path) / kLaunchDocument).string();
    return;
  }
  mapped_ = std::make_shared<const MappedFile>(path);
  if (mapped_->bytes().starts_with("PK")) {
    files_ = parse_zip(*mapped_, path, "capsule", kLargestCapsule, large_);
    closed_ = true, document_path_ = path + "/" + kLaunchDocument;
    return;
  }
  mapped_ = nullptr;
  folder_ = std::filesystem::path(path).parent_path().string(), document_path_ = path;
}

std::string LaunchFolder::document() const {
  return files_ || closed_ ? read(kLaunchDocument) : read_file(document_path_);
}

std::string LaunchFolder::path_of(const std::string& name) const {
  return files_ ? path_ + "/" + name : (std::filesystem::path(folder_) / name).string();
}

std::string LaunchFolder::read(const std::string& name) const {
  require_inside(name);
  if (!files_) return read_file(path_of(name));
  if (const auto large = large_.find(name); large != large_.end()) return std::string(large->second);
  const auto found = files_->find(name);
  if (found == files_->end()) throw BadInput(fmt::format("{}: the capsule has no {}", path_, name));
  return found->second;
}

std::shared_ptr<const MappedFile> LaunchFolder::map(const std::string& name) const {
  require_inside(name);
  return std::make_shared<const MappedFile>(path_of(name));
}

void LaunchFolder::require_inside(const std::string& name) const {
  if (closed_ && !stays_inside(name))
    throw BadInput(fmt::format("{}: names {}, which is outside of it", document_path_, name));
}

Tensor LaunchFolder::read_npy(const std::string& name, bool large_stay) const {
  require_inside(name);
  if (files_) {
    const auto large = large_.find(name);
    return large != large_.end() ? parse_npy(large->second, path_of(name), large_stay ? mapped_ : nullptr)
                                 : parse_npy(read(name), path_of(name));
  }
  const std::shared_ptr<const MappedFile> file = map(name);
  return parse_npy(file->bytes(), path_of(name), large_stay ? file : nullptr);
}

TensorMap LaunchFolder::read_tensors(const std::string& name, bool large_stay) const {
  require_inside(name);
  if (large_stay && name.ends_with(".safetensors")) {
    if (const auto large = large_.find(name); large != large_.end())
      return parse_safetensors(large->second, path_of(name), mapped_);
    if (!files_) {
      const std::shared_ptr<const MappedFile> file = map(name);
      return parse_safetensors(file->bytes(), path_of(name), file);
    }
  }
  if (!closed_) return assay::read_tensors(path_of(name));
  const std::string bytes = read(name);
  return name.ends_with(".npz") ? parse_npz(bytes, path_of(name)) : parse_safetensors(bytes, path_of(name));
}

}  // namespace assay
