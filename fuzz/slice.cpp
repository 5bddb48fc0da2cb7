#include "fuzz/slice.h"

#include <cassert>
#include <cstring>

namespace assay {
namespace {

/// A row-major tensor seen along one axis: `outer` blocks of `count` rows of `inner` bytes.
struct AxisView {
  int64_t outer = 1, count = 0, inner = 1;
};

AxisView view_along(const Tensor& tensor, int position) {
  AxisView view;
  for (int i = 0; i < position; ++i) view.outer *= tensor.axes[i].size;
  view.count = tensor.axes[position].size;
  view.inner = format(tensor.dtype).bytes;
  for (size_t i = position + 1; i < tensor.axes.size(); ++i) view.inner *= tensor.axes[i].size;
  return view;
}

void copy_rows(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

int axis_position(const Tensor& tensor, std::string_view axis) {
  for (size_t i = 0; i < tensor.axes.size(); ++i)
    if (tensor.axes[i].name == axis) return static_cast<int>(i);
  return -1;
}

Tensor slice(const Tensor& tensor, std::string_view axis, int64_t begin, int64_t end) {
  const int position = axis_position(tensor, axis);
  if (position < 0) return tensor;
  const AxisView from = view_along(tensor, position);
  assert(0 <= begin && begin <= end && end <= from.count);
  auto axes = tensor.axes;
  axes[position].size = end - begin;
  Tensor part(tensor.name, tensor.dtype, axes);
  const int64_t rows = end - begin;
  for (int64_t o = 0; o < from.outer; ++o)
    copy_rows(part.data.data() + o * rows * from.inner,
              tensor.data.data() + (o * from.count + begin) * from.inner, rows * from.inner);
  return part;
}

Tensor concatenate(const Tensor& first, const Tensor& second, std::string_view axis) {
  const int position = axis_position(first, axis);
  assert(position >= 0);
  const AxisView a = view_along(first, position), b = view_along(second, position);
  assert(a.outer == b.outer && a.inner == b.inner);
  auto axes = first.axes;
  axes[position].size = a.count + b.count;
  Tensor joined(first.name, first.dtype, axes);
  for (int64_t o = 0; o < a.outer; ++o) {
    std::byte* to = joined.data.data() + o * (a.count + b.count) * a.inner;
    copy_rows(to, first.data.data() + o * a.count * a.inner, a.count * a.inner);
    copy_rows(to + a.count * a.inner, second.data.data() + o * b.count * b.inner, b.count * b.inner);
  }
  return joined;
}

Tensor reversed(const Tensor& tensor, std::string_view axis) {
  const int position = axis_position(tensor, axis);
  if (position < 0) return tensor;
  const AxisView view = view_along(tensor, position);
  Tensor result(tensor.name, tensor.dtype, tensor.axes);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.count; ++i)
      copy_rows(result.data.data() + (o * view.count + i) * view.inner,
                tensor.data.data() + (o * view.count + view.count - 1 - i) * view.inner, view.inner);
  return result;
}

TensorMap slice_all(const TensorMap& tensors, std::string_view axis, int64_t begin, int64_t end) {
  TensorMap parts;
  for (const auto& [name, tensor] : tensors) parts.emplace(name, slice(tensor, axis, begin, end));
  return parts;
}

}  // namespace assay
