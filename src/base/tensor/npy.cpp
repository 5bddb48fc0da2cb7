#include "src/base/tensor/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/tensor_layout.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  std::string_view descr;
  Dtype dtype;
};
// The first row of a type is the one written.
constexpr TypeName kTypes[] = {{"<f8", Dtype::fp64}, {"<f4", Dtype::fp32}, {"<f2", Dtype::fp16},
                               {"<V2", Dtype::bf16}, {"|V2", Dtype::bf16}, {"<i4", Dtype::i32},
                               {"<i8", Dtype::i64},  {"|u1", Dtype::u8}};

/// Text after `'key':` in the header's dictionary, blanks skipped.
std::string_view after_key(std::string_view header, std::string_view key, const std::string& path) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos)
    throw BadInput(fmt::format("{}: not a .npy file: its header has no '{}'", path, key));
  header = header.substr(at + quoted.size());
  if (header.find(quoted) != std::string_view::npos)
    throw BadInput(fmt::format("{}: not a .npy file: its header has '{}' twice", path, key));
  return header.substr(std::min(header.find_first_not_of(' '), header.size()));
}

Dtype dtype_of(std::string_view header, const std::string& path) {
  const std::string_view rest = after_key(header, "descr", path);
  for (const TypeName& type : kTypes) {
    if (rest.starts_with(fmt::format("'{}'", type.descr))) return type.dtype;
  }
  throw BadInput(fmt::format(
      "{}: element type {} is not supported; use little-endian f8, f4, f2, V2 (bfloat16), i8, i4 or u1", path,
      rest.substr(0, rest.find(','))));
}

std::vector<Axis> shape_of(std::string_view header, const std::string& path) {
  std::string_view rest = after_key(header, "shape", path);
  const size_t close = rest.find(')');
  if (!rest.starts_with("(") || close == std::string_view::npos)
    throw BadInput(fmt::format("{}: not a .npy file: bad shape", path));
  rest = rest.substr(1, close - 1);
  std::vector<Axis> axes;
  double elements = 1;  // of the axes that are not empty: their product must be a number
  while (true) {
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.empty()) return axes;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    rest = rest.substr(static_cast<size_t>(end - rest.data()));
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    const bool single = rest.empty() && axes.empty();  // "(3)" is a number, "(3,)" a shape
    if (error != std::errc() || size < 0 || single || !(rest.empty() || rest.starts_with(",")))
      throw BadInput(fmt::format("{}: not a .npy file: bad shape", path));
    elements *= std::max<double>(1, static_cast<double>(size));
    if (elements > 0x1p60) throw BadInput(fmt::format("{}: impossible shape", path));
    axes.push_back({"", size});
    rest = rest.substr(std::min<size_t>(1, rest.size()));
  }
}

/// Header text and where the data starts.
std::pair<std::string_view, size_t> header_of(std::string_view file, const std::string& path) {
  if (!file.starts_with(kMagic) || file.size() < 10) throw BadInput(fmt::format("{}: not a .npy file", path));
  const int version = static_cast<unsigned char>(file[6]);
  if (version < 1 || version > 3)
    throw BadInput(fmt::format("{}: .npy of version {}; save it as version 1, 2 or 3", path, version));
  const size_t width = version == 1 ? 2 : 4;
  uint32_t length = 0;
  if (file.size() >= 8 + width) std::memcpy(&length, file.data() + 8, width);
  const size_t start = 8 + width + length;
  if (length == 0 || start > file.size())
    throw BadInput(fmt::format("{}: truncated .npy file: its header ends beyond the file", path));
  return {file.substr(8 + width, length), start};
}

double bytes_of(const std::vector<Axis>& axes, Dtype dtype) {
  double bytes = format(dtype).bytes;
  for (const Axis& axis : axes) bytes *= static_cast<double>(axis.size);
  return bytes;
}

bool is_fortran(std::string_view header, const std::string& path) {
  const std::string_view order = after_key(header, "fortran_order", path);
  if (!order.starts_with("True") && !order.starts_with("False"))
    throw BadInput(fmt::format("{}: not a .npy file: fortran_order is neither True nor False", path));
  return order.starts_with("True");
}

/// From Fortran order, in which the first axis varies fastest, as numpy saves a transposed array.
void take_columns(Tensor& tensor, const char* data) {
  TensorLayout layout{{}, {}, 0, 1};
  for (const Axis& axis : tensor.axes) {
    layout.sizes.push_back(axis.size);
    layout.strides.push_back(layout.elements);
    layout.elements *= axis.size;
  }
  const auto width = static_cast<size_t>(format(tensor.dtype).bytes);
  for (int64_t flat = 0; flat < layout.elements; ++flat)
    std::memcpy(tensor.data.data() + static_cast<size_t>(flat) * width,
                data + static_cast<size_t>(layout.position(flat)) * width, width);
}

}  // namespace

Tensor parse_npy(std::string_view file, const std::string& path,
                 const std::shared_ptr<const MappedFile>& mapped) {
  const auto [header, start] = header_of(file, path);
  const Dtype dtype = dtype_of(header, path);
  const bool fortran = is_fortran(header, path);
  std::vector<Axis> axes = shape_of(header, path);
  const double bytes = bytes_of(axes, dtype);
  if (static_cast<double>(file.size() - start) != bytes) {
    throw BadInput(
        fmt::format("{}: truncated or corrupt: its shape needs {:.0f} bytes of data, the file has {}", path,
                    bytes, file.size() - start));
  }
  if (mapped && !fortran && bytes > static_cast<double>(kLargestHeld))
    return mapped_tensor("", dtype, std::move(axes), mapped, file.data() + start);
  Tensor tensor("", dtype, std::move(axes));
  if (tensor.data.empty()) return tensor;
  if (fortran)
    take_columns(tensor, file.data() + start);
  else
    std::memcpy(tensor.data.data(), file.data() + start, tensor.data.size());
  return tensor;
}

Tensor read_npy(const std::string& path) {
  Tensor tensor = parse_npy(MappedFile(path).bytes(), path);
  tensor.name = std::filesystem::path(path).stem().string();
  return tensor;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string_view descr;
  for (const TypeName& type : kTypes) {
    if (descr.empty() && type.dtype == tensor.dtype) descr = type.descr;
  }
  if (descr.empty()) throw BadInput(fmt::format("{}: {} has no NumPy type", path, format(tensor.dtype).name));
  std::string shape;
  for (const Axis& axis : tensor.axes) shape += fmt::format("{}, ", axis.size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');  // data aligned to 64 bytes
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string file(kMagic);
  file += std::string("\x01\x00", 2);
  file.append(reinterpret_cast<const char*>(&length), 2);
  file += header;
  file.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  write_file(path, file);
}

}  // namespace assay
