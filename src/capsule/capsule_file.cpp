#include "src/capsule/capsule_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/safetensors.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/base/tensor/zip_writer.h"

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

/// What could not be read again is not begun.
void write(const std::string& path, const ZipParts& parts) {
  uint64_t bytes = 0;
  for (const auto& [name, part] : parts) bytes += part.bytes;
  if (bytes > kLargestCapsule)
    throw BadInput(
        fmt::format("{}: {:.1f} GiB do not go into one capsule, which holds {} at most; keep a folder", path,
                    std::ldexp(static_cast<double>(bytes), -30), kLargestCapsule >> 30));
  write_zip(path, parts);
}

ZipPart part_of(const TensorMap& tensors) {
  return {safetensors_size(tensors),
          [&tensors](const ZipPart::Take& take) { each_safetensors_piece(tensors, take); }};
}

}  // namespace

void write_capsule(const LaunchFile& file, const Capsule& capsule, const std::string& path) {
  ZipParts files;
  nlohmann::json document = file.document();
  document["name"] = capsule.name;
  for (const auto& [name, value] : capsule.sizes) document["sizes"][name] = value;
  document["ptx"] = nlohmann::json::array();
  for (const Module& module : file.modules()) {
    // Two of one name would be one file.
    const std::string name =
        fmt::format("{}_{}", module.name, std::filesystem::path(module.path).filename().string());
    files[name] = zip_part(*module.ptx);
    document["ptx"].push_back(name);
  }
  for (const auto& [name, tensor] : capsule.inputs)
    document["tensors"][name] = with_values(document["tensors"][name], tensor);
  if (!capsule.inputs.empty()) files[kInputs] = part_of(capsule.inputs);
  if (!capsule.recorded.empty())
    files[kRecorded] = part_of(capsule.recorded), document["recorded"] = kRecorded;
  files[kLaunchDocument] = zip_part(document.dump(1) + "\n");
  write(path, files);
}

void pack_capsule(const std::string& folder, const std::string& path) {
  const LaunchFolder from(folder);
  const std::string document = from.document();
  ZipParts files{{kLaunchDocument, zip_part(document)}};
  std::set<std::string> names;
  collect_files(parse_unambiguous(document, from.document_path(), "no launch file, which is JSON"), names);
  for (const std::string& name : names) files[name] = zip_part(from.map(name));
  write(path, files);
}

}  // namespace assay
