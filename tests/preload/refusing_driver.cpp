// In the driver's place: takes every text, but none that says "never", and none that says "refused" and has
// the watch in it. As the driver does, a load that fails leaves the bytes of its log where their most stood.
#include <cstdint>
#include <cstring>

namespace {

constexpr int kInvalidValue = 1, kInvalidPtx = 218;

int load(const void* image) {
  const char* const text = static_cast<const char*>(image);
  const bool is_watched = std::strstr(text, "assay_watch_buffer");
  return std::strstr(text, "never") || (is_watched && std::strstr(text, "refused")) ? kInvalidPtx : 0;
}
int load_with_log(const void* image, void** values) {
  if (values[0] != reinterpret_cast<void*>(uintptr_t{64})) return kInvalidValue;
  const int status = load(image);
  if (status != 0) values[0] = reinterpret_cast<void*>(uintptr_t{7});
  return status;
}

}  // namespace

extern "C" {
int cuModuleLoadData(void*, const void* image) {
  return load(image);
}
int cuModuleLoadDataEx(void*, const void* image, unsigned, void*, void** values) {
  return load_with_log(image, values);
}
int cuModuleLoadFatBinary(void*, const void* image) {
  return load(image);
}
int cuLibraryLoadData(void*, const void* image, void*, void** values, unsigned, void*, void*, unsigned) {
  return load_with_log(image, values);
}
}
