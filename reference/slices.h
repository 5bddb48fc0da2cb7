// A slice is what an operator acts on: one sequence of one head. Inputs are read slice by slice as doubles.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/operator.h"

namespace assay {

struct Slice {
  int64_t n = 0, h = 0;   ///< sequence and head
  int64_t first_row = 0;  ///< of the [B T] rows of the tensors
  int64_t tokens = 0;
};

/// All slices of a problem, sequence by sequence. Throws BadInput where cu_seqlens is not a packing of T.
std::vector<Slice> slices_of(const Problem&);
/// As above for an operator of `heads` heads.
std::vector<Slice> slices_of(const Problem&, int64_t heads);

/// An output that slices are stored to or added up in.
ReferenceOutput output_of_zeros(std::string name, std::vector<Axis> axes, int threads = 1);

/// The tensor of that name, or null where it is absent. Throws BadInput where its size is not `expected`
/// elements.
const Tensor* find_input(const Problem&, std::string_view name, int64_t expected);
/// As find_input; throws BadInput where it is absent.
const Tensor& require_input(const Problem&, std::string_view name, int64_t expected);

/// out[i] = decoded element first + i, i < count. Exact.
void decode_run(const Tensor&, int64_t first, int64_t count, double* out);
/// Rows first_row .. first_row + rows of a [rows, heads, width] tensor at one head: out is rows x width.
void decode_rows(const Tensor&, int64_t first_row, int64_t rows, int64_t heads, int64_t head, int64_t width,
                 double* out);

}  // namespace assay
