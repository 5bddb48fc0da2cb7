// Places in a kernel's sources, and chains of them, on the console.
#pragma once
#include <cstddef>
#include <string>

#include "reports/console.h"
#include "src/base/program/outcome.h"

namespace assay {

inline constexpr size_t kDefaultDepth = 10;  ///< steps of a chain that are printed

/// "chunk.cu:142", of a line of a list.
std::string short_place(const SourceLocation&);
/// One line, "bulk.cu:6 inlined at bulk.cu:28, bulk.cu:44"; nothing where it is inlined nowhere.
void print_calls(const Console&, const SourceLocation&);
/// The calls that were inlined into a line, and those around it, down to the kernel's entry.
void print_frames(const Console&, const SourceLocation&);

/// Steps [0, count) of a chain, or of more than `depth` its two ends: calls step(i), and gap(left out)
/// between.
template <class Step, class Gap>
void for_ends(size_t count, size_t depth, Step step, Gap gap) {
  const size_t head = count <= depth ? count : (depth + 1) / 2, tail = count <= depth ? 0 : depth / 2;
  for (size_t i = 0; i < head; ++i) step(i);
  if (count > head + tail) gap(count - head - tail);
  for (size_t i = count - tail; i < count; ++i) step(i);
}

}  // namespace assay
