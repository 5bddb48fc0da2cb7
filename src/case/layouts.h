// How the inputs of a case lie in memory: dense, or views as models hold them. One row each in layouts.def;
// the row carries the behaviour.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/tensor/tensor_layout.h"
#include "src/case/resolved_case.h"

namespace assay {

struct LayoutRow {
  std::string_view name;
  std::string_view summary;  ///< one line
  std::string_view needs;    ///< what a tensor must have, "a token and a head axis"
  /// Absent where the tensor lacks what the row needs.
  std::optional<TensorLayout> (*layout)(const std::vector<Axis>&);
};

/// All rows, in the order of layouts.def.
const std::vector<LayoutRow>& layouts();

/// Case::layout taken apart: "heads-first,q=padded,k=4096:64:64:1".
struct LayoutEntry {
  std::string input;  ///< empty: of all inputs that no entry names and that have what the row needs
  const LayoutRow* row = nullptr;
  std::vector<int64_t> strides;  ///< without a row: by axis, in elements
  bool operator==(const LayoutEntry&) const = default;
};
/// Throws BadInput for an unknown layout, strides that are no numbers, an input named twice.
std::vector<LayoutEntry> parse_layout(std::string_view text);
/// The entries as text that parse_layout reads.
std::string layout_text(const std::vector<LayoutEntry>&);

/// SizedArgument::layout of every input: where its elements lie, absent where they lie row by row. Throws
/// BadInput for a layout of no input of this operator and direction, or of one that cannot have it.
void lay_out(ResolvedCase&);
void validate_layout(const Case&, const Operator&);

}  // namespace assay
