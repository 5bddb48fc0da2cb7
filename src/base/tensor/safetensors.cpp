#include "src/base/tensor/safetensors.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"

namespace assay {
namespace {

constexpr uint64_t kLongestHeader = 100'000'000;  // of the format's own readers
constexpr size_t kMadePiece = 1 << 20;

struct TypeName {
  const char* name;
  Dtype dtype;
};
constexpr TypeName kTypes[] = {{"F64", Dtype::fp64},  {"F32", Dtype::fp32}, {"F16", Dtype::fp16},
                               {"BF16", Dtype::bf16}, {"I32", Dtype::i32},  {"I64", Dtype::i64},
                               {"U8", Dtype::u8}};

Dtype dtype_of(const std::string& name, const std::string& where) {
  for (const TypeName& type : kTypes) {
    if (name == type.name) return type.dtype;
  }
  throw BadInput(fmt::format("{}: element type {} is not supported; use F64, F32, F16, BF16, I64, I32 or U8",
                             where, name));
}

/// A list of whole numbers. Others, which a conversion would round, have no place here.
std::vector<uint64_t> numbers_of(const nlohmann::json& list, const char* key, const std::string& where) {
  std::vector<uint64_t> numbers;
  for (const nlohmann::json& item : list) {
    if (item.is_number_integer() && !item.is_number_unsigned())
      throw BadInput(fmt::format("{}: negative size {} in its {}", where, item.get<int64_t>(), key));
    if (!list.is_array() || !item.is_number_unsigned())
      throw BadInput(fmt::format("{}: not a safetensors file: bad header: its {} is no list of whole numbers",
                                 where, key));
    numbers.push_back(item.get<uint64_t>());
  }
  return numbers;
}

/// Axes of this shape, and the bytes of their tensor, which a file could hold.
std::pair<std::vector<Axis>, uint64_t> axes_of(const std::vector<uint64_t>& shape, Dtype dtype,
                                               const std::string& where) {
  constexpr uint64_t most = std::numeric_limits<int64_t>::max();
  auto bytes = static_cast<uint64_t>(format(dtype).bytes);
  uint64_t spanned = bytes;  // without the empty axes: strides too must be numbers
  std::vector<Axis> axes;
  for (const uint64_t size : shape) {
    if (size > most || (size > 0 && spanned > most / size))
      throw BadInput(fmt::format("{}: impossible shape", where));
    bytes *= size, spanned *= size > 0 ? size : 1;
    axes.push_back({"", static_cast<int64_t>(size)});
  }
  return {std::move(axes), bytes};
}

Tensor read_entry(const std::string& name, const nlohmann::json& entry, std::string_view data,
                  const std::string& path, const std::shared_ptr<const MappedFile>& mapped) {
  const std::string where = fmt::format("{}: tensor {}", path, name);
  const Dtype dtype = dtype_of(entry.at("dtype").get<std::string>(), where);
  auto [axes, bytes] = axes_of(numbers_of(entry.at("shape"), "shape", where), dtype, where);
  const std::vector<uint64_t> offsets = numbers_of(entry.at("data_offsets"), "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes) {
    throw BadInput(
        fmt::format("{}: its byte range does not fit its shape and type ({} bytes)", where, bytes));
  }
  if (offsets[1] > data.size()) {
    throw BadInput(fmt::format("{}: truncated file: data ends at byte {}, the tensor at {}", where,
                               data.size(), offsets[1]));
  }
  if (mapped && bytes > static_cast<uint64_t>(kLargestHeld))
    return mapped_tensor(name, dtype, std::move(axes), mapped, data.data() + offsets[0]);
  Tensor tensor(name, dtype, std::move(axes));
  if (bytes > 0) std::memcpy(tensor.data.data(), data.data() + offsets[0], bytes);
  return tensor;
}

/// No byte belongs to two tensors.
void require_own_bytes(std::map<uint64_t, std::pair<uint64_t, std::string>>& ranges,
                       const std::vector<uint64_t>& range, const std::string& name, const std::string& path) {
  if (range[0] == range[1]) return;
  const auto after = ranges.lower_bound(range[0]);
  const std::string* other = nullptr;
  if (after != ranges.end() && after->first < range[1]) other = &after->second.second;
  if (after != ranges.begin() && std::prev(after)->second.first > range[0])
    other = &std::prev(after)->second.second;
  if (other)
    throw BadInput(fmt::format("{}: tensor {}: its bytes overlap those of tensor {}", path, name, *other));
  ranges[range[0]] = {range[1], name};
}

std::string type_name(Dtype dtype, const std::string& name) {
  for (const TypeName& type : kTypes) {
    if (dtype == type.dtype) return type.name;
  }
  throw BadInput(fmt::format("tensor {}: {} has no safetensors type", name, format(dtype).name));
}

/// What stands before the data.
std::string header_of(const TensorMap& tensors) {
  nlohmann::json header = nlohmann::json::object();
  int64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::vector<int64_t> shape;
    for (const Axis& axis : tensor.axes) shape.push_back(axis.size);
    header[name] = {{"dtype", type_name(tensor.dtype, name)},
                    {"shape", shape},
                    {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // readers map the data: keep it aligned
  const uint64_t header_size = text.size();
  return std::string(reinterpret_cast<const char*>(&header_size), 8) + text;
}

void each_made_piece(const Tensor& tensor, const std::function<void(std::string_view)>& take) {
  const auto width = static_cast<size_t>(format(tensor.dtype).bytes);
  std::string piece;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const uint64_t bits = tensor.source->bits(i);
    piece.append(reinterpret_cast<const char*>(&bits), width);
    if (piece.size() < kMadePiece && i + 1 < tensor.size()) continue;
    take(piece);
    piece.clear();
  }
}

}  // namespace

TensorMap parse_safetensors(std::string_view file, const std::string& path,
                            const std::shared_ptr<const MappedFile>& mapped) {
  uint64_t header_size = 0;
  if (file.size() < 8)
    throw BadInput(fmt::format("{}: not a safetensors file: only {} bytes", path, file.size()));
  std::memcpy(&header_size, file.data(), 8);
  if (header_size > file.size() - 8) {
    throw BadInput(
        fmt::format("{}: truncated or not a safetensors file: a header of {} bytes in a file of {}", path,
                    header_size, file.size()));
  }
  if (header_size > kLongestHeader)
    throw BadInput(fmt::format("{}: not a safetensors file: a header of {} bytes, of which {} is the most",
                               path, header_size, kLongestHeader));
  const std::string_view data = file.substr(8 + header_size);
  TensorMap tensors;
  std::map<uint64_t, std::pair<uint64_t, std::string>> ranges;  // begin -> end, tensor
  const auto header =
      parse_unambiguous(file.substr(8, header_size), path, "not a safetensors file: bad header");
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      tensors.emplace(name, read_entry(name, entry, data, path, mapped));
      require_own_bytes(ranges, entry.at("data_offsets").get<std::vector<uint64_t>>(), name, path);
    }
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(fmt::format("{}: not a safetensors file: bad header: {}", path, json_fault(error)));
  }
  return tensors;
}

TensorMap read_safetensors(const std::string& path) {
  return parse_safetensors(read_file(path), path);
}

std::string safetensors_bytes(const TensorMap& tensors) {
  std::string file;
  each_safetensors_piece(tensors, [&](std::string_view piece) { file += piece; });
  return file;
}

void each_safetensors_piece(const TensorMap& tensors, const std::function<void(std::string_view)>& take) {
  take(header_of(tensors));
  for (const auto& [name, tensor] : tensors) {
    if (tensor.is_held())
      take({reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    else if (const std::string_view stored = mapped_bytes(tensor); !stored.empty())
      take(stored);
    else
      each_made_piece(tensor, take);
  }
}

uint64_t safetensors_size(const TensorMap& tensors) {
  uint64_t bytes = header_of(tensors).size();
  for (const auto& [name, tensor] : tensors) bytes += static_cast<uint64_t>(tensor.bytes());
  return bytes;
}

void write_safetensors(const std::string& path, const TensorMap& tensors) {
  write_file(path, safetensors_bytes(tensors));
}

}  // namespace assay
