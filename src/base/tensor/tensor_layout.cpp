#include "src/base/tensor/tensor_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace assay {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;

/// Axes longer than one, the widest stride first.
std::vector<size_t> by_stride(const TensorLayout& layout) {
  std::vector<size_t> order;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    if (layout.sizes[i] > 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  return order;
}

}  // namespace

int64_t TensorLayout::position(int64_t flat) const {
  int64_t at = offset;
  for (size_t i = sizes.size(); i-- > 0;) {
    at += flat % sizes[i] * strides[i];
    flat /= sizes[i];
  }
  return at;
}

int64_t TensorLayout::element_before(int64_t position) const {
  int64_t rest = position - offset;
  if (rest < 0 || std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return -1;
  std::vector<int64_t> index(sizes.size(), 0);
  // A narrower axis never reaches the next step of a wider one.
  for (const size_t i : by_stride(*this)) {
    index[i] = std::min(rest / strides[i], sizes[i] - 1);
    rest -= index[i] * strides[i];
  }
  int64_t flat = 0;
  for (size_t i = 0; i < sizes.size(); ++i) flat = flat * sizes[i] + index[i];
  return flat;
}

int64_t TensorLayout::element(int64_t at) const {
  const int64_t flat = element_before(at);
  return flat >= 0 && position(flat) == at ? flat : -1;
}

bool TensorLayout::is_dense() const {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return offset == 0 && elements == expected;
}

std::string stride_fault(const std::vector<Axis>& axes, const std::vector<int64_t>& strides) {
  if (strides.size() != axes.size())
    return fmt::format("{} strides for {} axes", strides.size(), axes.size());
  const bool empty = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == 0; });
  std::vector<size_t> order;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (strides[i] < 0)
      return fmt::format("axis {} has the negative stride {}: copy the tensor forwards", axes[i].name,
                         strides[i]);
    if (empty) continue;
    if (strides[i] == 0 && axes[i].size > 1)
      return fmt::format(
          "axis {} has stride 0 along {} elements: a tensor expanded over an axis is not taken, copy it",
          axes[i].name, axes[i].size);
    if (axes[i].size > 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t span = 1;  // elements from the first to the last of the axes so far
  std::vector<std::string> inner;
  for (const size_t i : order) {
    if (strides[i] < span)
      return fmt::format("axis {} has stride {}, but {} span{} {} elements: elements overlap or interleave",
                         axes[i].name, strides[i], fmt::join(inner, " and "), inner.size() == 1 ? "s" : "",
                         span);
    int64_t reach = 0;
    if (__builtin_mul_overflow(strides[i], axes[i].size - 1, &reach) || reach > kMostElements - span)
      return fmt::format("axis {} with stride {} reaches beyond 2^40 elements", axes[i].name, strides[i]);
    span += reach;
    inner.push_back(axes[i].name);
  }
  return "";
}

TensorLayout layout_of_strides(const std::vector<Axis>& axes, const std::vector<int64_t>& strides) {
  TensorLayout layout{{}, strides, 0, 1};
  for (size_t i = 0; i < axes.size(); ++i) {
    layout.sizes.push_back(axes[i].size);
    layout.elements += (axes[i].size - 1) * strides[i];
  }
  if (std::find(layout.sizes.begin(), layout.sizes.end(), 0) != layout.sizes.end()) layout.elements = 0;
  return layout;
}

std::vector<std::byte> strided_memory(const Tensor& tensor, const TensorLayout& layout) {
  const auto width = static_cast<size_t>(format(tensor.dtype).bytes);
  std::vector<std::byte> memory(static_cast<size_t>(layout.elements) * width, std::byte{0xff});
  layout.each_row(tensor.size(), [&](int64_t flat, int64_t position, int64_t count, int64_t stride) {
    std::byte* to = memory.data() + static_cast<size_t>(position) * width;
    const std::byte* from = tensor.data.data() + static_cast<size_t>(flat) * width;
    if (stride == 1) return void(std::memcpy(to, from, static_cast<size_t>(count) * width));
    for (int64_t i = 0; i < count; ++i, to += static_cast<size_t>(stride) * width, from += width)
      std::memcpy(to, from, width);
  });
  return memory;
}

}  // namespace assay
