// Where the elements of a tensor lie that is a view into memory of more than its own: any strides that keep
// elements apart.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Element [i, j, ..] lies at offset + i * strides[0] + j * strides[1] + .. of `elements` elements of memory.
struct TensorLayout {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0, elements = 0;

  bool operator==(const TensorLayout&) const = default;
  /// Position in memory of element `flat` (row by row) of the tensor.
  int64_t position(int64_t flat) const;
  /// visit(flat, position, count, stride) for each row of the last axis: `count` elements from `flat` on, so
  /// far apart.
  template <class Visit>
  void each_row(int64_t size, const Visit& visit) const {
    const int64_t row = sizes.empty() ? 1 : sizes.back(), stride = sizes.empty() ? 1 : strides.back();
    for (int64_t flat = 0; flat < size; flat += row) visit(flat, position(flat), row, stride);
  }
  /// The element at a position; -1 in a gap.
  int64_t element(int64_t position) const;
  /// The last element at or before a position; -1 before the first.
  int64_t element_before(int64_t position) const;
  /// Row by row without a gap.
  bool is_dense() const;
};
template <typename Io>
void fields(Io& io, TensorLayout& x) {
  ASSAY_FIELD(sizes);
  ASSAY_FIELD(strides);
  ASSAY_FIELD(offset);
  ASSAY_FIELD(elements);
}

/// "axis T (stride 64) reaches into the 128 elements that H and K span: elements overlap or interleave";
/// empty where every element has a place of its own. Negative strides are a fault, as is 0 along an axis
/// longer than one, and memory of more than 2^40 elements.
std::string stride_fault(const std::vector<Axis>& axes, const std::vector<int64_t>& strides);

/// The layout of strides without a fault: memory from the first element to the last.
TensorLayout layout_of_strides(const std::vector<Axis>& axes, const std::vector<int64_t>& strides);

/// The memory behind the tensor: its elements in their places, every other byte 0xff (NaN in every float
/// format).
std::vector<std::byte> strided_memory(const Tensor&, const TensorLayout&);

}  // namespace assay
