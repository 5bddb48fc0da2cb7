#include "src/preload/module_images.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "src/standin/cuda_abi.h"

namespace assay::preload {
namespace {

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

size_t fat_bytes(const void* given) {
  if (read<uint32_t>(given) != standin::kFatBinaryMagic) return 0;
  const auto header = read<standin::FatBinaryHeader>(given);
  return header.header_bytes + header.body_bytes;
}

bool holds_ptx(const char* fat, size_t bytes) {
  for (size_t at = read<uint16_t>(fat + 6); at + 16 <= bytes;) {
    if (read<uint16_t>(fat + at) == 1) return true;
    at += read<uint32_t>(fat + at + 4) + read<uint64_t>(fat + at + 8);
  }
  return false;
}

bool is_mapped(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0;
}

Image image_of(const void* given) {
  Image image;
  if (read<int32_t>(given) == standin::kWrapperMagic)
    given = static_cast<const standin::FatBinaryWrapper*>(given)->data;
  if (is_of_vendor(given)) {
    image.kind = Image::Kind::of_a_library;
  } else if (const size_t bytes = fat_bytes(given)) {
    if (!holds_ptx(static_cast<const char*>(given), bytes)) return image;
    image.kind = Image::Kind::fat, image.data = given, image.bytes = bytes;
    if (is_mapped(given)) return image;
    image.copy.assign(static_cast<const char*>(given), bytes);
  } else if (read<uint32_t>(given) != standin::kElfMagic) {
    image.kind = Image::Kind::text, image.copy = static_cast<const char*>(given);
  }
  return image;
}

}  // namespace

bool is_of_vendor(const void* address) {
  Dl_info info{};
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  for (const char* name : {"/libtorch", "/libc10", "/libcublas", "/libcudnn", "/libcusparse", "/libcusolver",
                           "/libcufft", "/libcurand", "/libnccl", "/libnvrtc"})
    if (std::strstr(info.dli_fname, name)) return true;
  return false;
}

void ModuleImages::loaded(const void* handle, const void* given) {
  Image image = image_of(given);
  const std::lock_guard lock(mutex_);
  owners_.erase(handle);
  Image& kept = images_[handle] = std::move(image);
  if (!kept.copy.empty()) kept.data = kept.copy.data(), kept.bytes = kept.copy.size();
}

void ModuleImages::same(const void* handle, const void* as) {
  const std::lock_guard lock(mutex_);
  owners_[handle] = as;
}

void ModuleImages::function(const void* handle, const void* of, const char* name, bool of_library) {
  const std::lock_guard lock(mutex_);
  if (const auto owner = owners_.find(of); owner != owners_.end()) of = owner->second;
  const auto image = images_.find(of);
  kernels_[handle] = {image == images_.end() ? nullptr : &image->second, name ? name : "", of_library};
}

void ModuleImages::same_function(const void* handle, const void* as) {
  const std::lock_guard lock(mutex_);
  if (const auto kernel = kernels_.find(as); kernel != kernels_.end()) {
    KnownKernel made = kernel->second;
    made.of_library = false;
    kernels_[handle] = std::move(made);
  }
}

void ModuleImages::leave_out(const void* handle, const char* name) {
  const std::lock_guard lock(mutex_);
  kernels_[handle] = {&none_, name, false};
}

KnownKernel ModuleImages::kernel(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto kernel = kernels_.find(handle);
  return kernel == kernels_.end() ? KnownKernel{} : kernel->second;
}

}  // namespace assay::preload
