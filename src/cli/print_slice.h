// What stands behind an output element, and which origins stand behind all bad ones, for people.
#pragma once
#include <cstddef>
#include <vector>

#include "src/cli/console.h"
#include "src/result/element_slice.h"
#include "src/result/origin.h"

namespace assay::cli {

inline constexpr size_t kDefaultDepth = 10;  ///< steps of a chain that are printed

/// Size of the slice, the inputs it read, and the chain of operands that decide the element's size; of a
/// chain longer than `depth` the first and last steps.
void print_slice(const Console&, const ElementSlice&, size_t depth);
/// One entry per (kind, source line), most elements first.
void print_origin_groups(const Console&, const std::vector<OriginGroup>&);
/// Steps [0, count) of a chain, or of more than `depth` its two ends: calls step(i), and gap(left out)
/// between.
template <class Step, class Gap>
void for_ends(size_t count, size_t depth, Step step, Gap gap) {
  const size_t head = count <= depth ? count : (depth + 1) / 2, tail = count <= depth ? 0 : depth / 2;
  for (size_t i = 0; i < head; ++i) step(i);
  if (count > head + tail) gap(count - head - tail);
  for (size_t i = count - tail; i < count; ++i) step(i);
}

}  // namespace assay::cli
