#include "src/capsule/capsule_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/safetensors.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"

namespace assay {
namespace {

constexpr const char* kInputs = "inputs.safetensors";
constexpr const char* kRecorded = "recorded.safetensors";

/// The values of a tensor from the capsule's file; what else the document says of it stays.
nlohmann::json with_values(nlohmann::json tensor, const Tensor& held) {
  tensor["values"] = {{"file", kInputs}, {"name", held.name}};
  tensor["dtype"] = std::string(format(held.dtype).name);
  if (!tensor.contains("shape")) {
    tensor["shape"] = nlohmann::json::array();
    for (const Axis& axis : held.axes) tensor["shape"].push_back(axis.size);
  }
  return tensor;
}

/// Files that a document names, wherever in it.
void collect_files(const nlohmann::json& value, std::set<std::string>& names) {
  if (value.is_object())
    for (const auto& [key, item] : value.items()) {
      if (key == "origin") continue;  // free
      const bool names_one = key == "npy" || key == "file" || key == "ptx" || key == "recorded";
      if (names_one && item.is_string()) names.insert(item.get<std::string>());
      if (key == "ptx" && item.is_array())
        for (const auto& name : item)
          if (name.is_string()) names.insert(name.get<std::string>());
      collect_files(item, names);
    }
  if (value.is_array())
    for (const auto& item : value) collect_files(item, names);
}

}  // namespace

void write_capsule(const LaunchFile& file, const Capsule& capsule, const std::string& path) {
  ZipFiles files;
  nlohmann::json document = file.document();
  document["name"] = capsule.name;
  for (const auto& [name, value] : capsule.sizes) document["sizes"][name] = value;
  document["ptx"] = nlohmann::json::array();
  for (const Module& module : file.modules()) {
    // Two of one name would be one file.
    const std::string name =
        fmt::format("{}_{}", module.name, std::filesystem::path(module.path).filename().string());
    files[name] = *module.ptx;
    document["ptx"].push_back(name);
  }
  for (const auto& [name, tensor] : capsule.inputs)
    document["tensors"][name] = with_values(document["tensors"][name], tensor);
  if (!capsule.inputs.empty()) files[kInputs] = safetensors_bytes(capsule.inputs);
  if (!capsule.recorded.empty())
    files[kRecorded] = safetensors_bytes(capsule.recorded), document["recorded"] = kRecorded;
  files[kLaunchDocument] = document.dump(1) + "\n";
  write_zip(path, files);
}

void pack_capsule(const std::string& folder, const std::string& path) {
  const LaunchFolder from(folder);
  ZipFiles files{{kLaunchDocument, from.document()}};
  std::set<std::string> names;
  collect_files(
      parse_unambiguous(files[kLaunchDocument], from.document_path(), "no launch file, which is JSON"),
      names);
  for (const std::string& name : names) files[name] = from.read(name);
  write_zip(path, files);
}

}  // namespace assay
