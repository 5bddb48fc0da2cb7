#include "src/binding/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/base/numerics/bad_input.h"

namespace assay::binding {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;

/// Elements from the tensor's first to its lowest and its highest.
struct Reach {
  int64_t low = 0, high = 0;
  bool empty = false, overflows = false;
};

Reach reach_of(const assay_array& array) {
  Reach reach;
  for (int i = 0; i < array.rank; ++i) {
    if (array.shape[i] == 0) reach.empty = true;
    int64_t span = 0;
    int64_t& end = array.strides[i] < 0 ? reach.low : reach.high;
    reach.overflows |=
        array.shape[i] > kMostElements ||
        __builtin_mul_overflow(std::max<int64_t>(array.shape[i] - 1, 0), array.strides[i], &span) ||
        __builtin_add_overflow(end, span, &end);
  }
  return reach;
}

void require_sound(const assay_array& array) {
  const std::string name = array.name ? array.name : "";
  const auto fail = [&](const std::string& what) {
    throw BadInput(fmt::format("{}: {}", name.empty() ? "an array" : name, what));
  };
  const bool is_raw = array.format < 0;
  if (array.format >= static_cast<int32_t>(formats().size()))
    fail(fmt::format("format {} is none", array.format));
  if (array.rank < 0 || array.rank > ASSAY_MOST_AXES)
    fail(fmt::format("{} axes; at most {} are possible", array.rank, int{ASSAY_MOST_AXES}));
  if (array.bytes > uint64_t{1} << 48 || array.address + array.bytes < array.address)
    fail(fmt::format("{} bytes from {:#x} on are no memory", array.bytes, array.address));
  if (is_raw) return;
  for (int i = 0; i < array.rank; ++i)
    if (array.shape[i] < 0) fail(fmt::format("axis {} has {} elements", i, array.shape[i]));
  const Reach reach = reach_of(array);
  if (reach.empty) return;
  const int64_t width = formats()[static_cast<size_t>(array.format)].bytes;
  const int64_t room = static_cast<int64_t>(array.bytes) / width;
  int64_t first = 0, last = 0;
  const bool outside = reach.overflows || __builtin_add_overflow(array.offset, reach.low, &first) ||
                       __builtin_add_overflow(array.offset, reach.high, &last) || first < 0 || last >= room;
  if (outside) fail("its elements do not lie within its storage");
}

}  // namespace

std::vector<assay_array> read_arrays(const assay_array* first, uint64_t count) {
  std::vector<assay_array> arrays(count);
  if (count == 0) return arrays;
  const uint64_t stride = first->struct_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const auto* from = reinterpret_cast<const std::byte*>(first) + i * stride;
    std::memcpy(&arrays[i], from, std::min<uint64_t>(stride, sizeof(assay_array)));
    require_sound(arrays[i]);
  }
  return arrays;
}

Tensor shape_of(const assay_array& array) {
  Tensor tensor;
  tensor.name = array.name ? array.name : "";
  tensor.dtype = formats()[static_cast<size_t>(array.format)].dtype;
  std::string_view names = array.axes ? array.axes : "";
  for (int i = 0; i < array.rank; ++i) {
    const std::string_view name = names.substr(0, names.find(','));
    tensor.axes.push_back({std::string(name), array.shape[i]});
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return tensor;
}

bool fills_storage(const assay_array& array) {
  if (array.format < 0 || array.offset != 0) return false;
  int64_t elements = 1;
  for (int i = array.rank; i-- > 0;) {
    if (array.shape[i] != 1 && array.strides[i] != elements) return false;
    elements *= array.shape[i];
  }
  return static_cast<uint64_t>(elements * formats()[static_cast<size_t>(array.format)].bytes) == array.bytes;
}

Tensor elements_of(const assay_array& array) {
  Tensor tensor = shape_of(array);
  const auto width = static_cast<size_t>(format(tensor.dtype).bytes);
  tensor.data.resize(static_cast<size_t>(tensor.bytes()));
  const auto* const base = reinterpret_cast<const std::byte*>(array.address);
  std::byte* to = tensor.data.data();
  if (tensor.size() == 0) return tensor;
  // Rows of the innermost axis; the others count like an odometer.
  const int inner = array.rank - 1;
  const int64_t row = inner < 0 ? 1 : array.shape[inner], step = inner < 0 ? 1 : array.strides[inner];
  std::vector<int64_t> index(static_cast<size_t>(std::max(inner, 0)), 0);
  int64_t at = array.offset;
  for (int64_t left = tensor.size() / row; left > 0; --left) {
    if (step == 1) {
      std::memcpy(to, base + static_cast<size_t>(at) * width, static_cast<size_t>(row) * width);
      to += static_cast<size_t>(row) * width;
    } else {
      for (int64_t i = 0; i < row; ++i, to += width)
        std::memcpy(to, base + static_cast<size_t>(at + i * step) * width, width);
    }
    for (int axis = inner - 1; axis >= 0; --axis) {
      int64_t& digit = index[static_cast<size_t>(axis)];
      at += array.strides[axis];
      if (++digit < array.shape[axis]) break;
      at -= digit * array.strides[axis];
      digit = 0;
    }
  }
  return tensor;
}

std::optional<TensorLayout> layout_of(const assay_array& array) {
  if (array.format < 0 || fills_storage(array)) return std::nullopt;
  TensorLayout layout;
  layout.offset = array.offset;
  layout.elements = static_cast<int64_t>(array.bytes) / formats()[static_cast<size_t>(array.format)].bytes;
  for (int i = 0; i < array.rank; ++i) {
    layout.sizes.push_back(array.shape[i]);
    layout.strides.push_back(array.strides[i]);
  }
  return layout;
}

}  // namespace assay::binding
