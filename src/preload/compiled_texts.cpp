#include "src/preload/compiled_texts.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "src/base/document/whole_file.h"
#include "src/base/numerics/fnv.h"
#include "src/preload/watched_process.h"

namespace assay::preload {
namespace {

template <class Function>
Function driver_function(const char* name) {
  return reinterpret_cast<Function>(next_function(name));
}

std::optional<std::string> contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

/// Of the current context's GPU; 0 without one.
int current_capability() {
  const auto current = driver_function<int (*)(int*)>("cuCtxGetDevice");
  const auto attribute = driver_function<int (*)(int*, int, int)>("cuDeviceGetAttribute");
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
  int device = 0, major = 0, minor = 0;
  if (!current || !attribute || current(&device) != 0 || attribute(&major, kMajor, device) != 0 ||
      attribute(&minor, kMinor, device) != 0)
    return 0;
  return 10 * major + minor;
}

std::string compiled_by_driver(const std::string& text) {
  constexpr int kPtx = 1;  // CU_JIT_INPUT_PTX
  const auto create = driver_function<int (*)(unsigned, void*, void*, void**)>("cuLinkCreate_v2");
  const auto add = driver_function<int (*)(void*, int, void*, size_t, const char*, unsigned, void*, void*)>(
      "cuLinkAddData_v2");
  const auto complete = driver_function<int (*)(void*, void**, size_t*)>("cuLinkComplete");
  const auto destroy = driver_function<int (*)(void*)>("cuLinkDestroy");
  void *state = nullptr, *cubin = nullptr;
  size_t bytes = 0;
  if (!create || !add || !complete || !destroy || create(0, nullptr, nullptr, &state) != 0) return {};
  std::string made;
  if (add(state, kPtx, const_cast<char*>(text.c_str()), text.size() + 1, "module", 0, nullptr, nullptr) ==
          0 &&
      complete(state, &cubin, &bytes) == 0)
    made.assign(static_cast<const char*>(cubin), bytes);
  destroy(state);
  return made;
}

/// Another text of the same hash is told by its file.
std::string name_of(const std::string& text, const std::string& ending) {
  return fmt::format("{:016x}.{}", fnv1a(text), ending);
}
std::string code_name(const std::string& text, int capability) {
  return name_of(text, fmt::format("sm_{}.cubin", capability));
}

}  // namespace

std::string CompiledTexts::kept(const std::string& text, int capability) const {
  if (!keeps()) return {};
  if (contents_of(folder_ / name_of(text, "ptx")) != text)
    return write_whole(folder_ / name_of(text, "ptx"), text), "";
  return contents_of(folder_ / code_name(text, capability)).value_or("");
}

std::string CompiledTexts::compiled(const std::string& text) const {
  const int capability = keeps() ? current_capability() : 0;
  std::string made = kept(text, capability);
  if (!made.empty()) return made;
  made = compiled_by_driver(text);
  if (capability > 0 && !made.empty()) write_whole(folder_ / code_name(text, capability), made);
  return made;
}

}  // namespace assay::preload
