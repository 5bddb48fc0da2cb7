// One slice of any operator's problem as plain doubles, and where its results go: for operators that are
// evaluated slice by slice from their transcription.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "reference/slices.h"
#include "src/base/numerics/ball.h"

namespace assay {

/// An argument's part of one slice as a matrix. Arguments of every token have one row per token, which takes
/// all other axes; else the last axis makes the columns, all others the rows; without any axis left it is
/// 1 x 1.
struct SliceMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< row by row; zeros where the argument is absent
  bool present = false;
};

struct SliceProblem {
  Slice slice;
  int64_t heads = 1;  ///< of the operator; 1 where it is not taken head by head
  double scale = 1;
  std::vector<SliceMatrix> inputs;      ///< in the order of Operator::inputs
  std::vector<SliceMatrix> cotangents;  ///< of Operator::outputs
  const std::vector<ParameterSpec>* parameters = nullptr;
  const Problem* problem = nullptr;

  /// Value of a parameter of the operator.
  double parameter(std::string_view name) const;
};

/// Where one argument's part of a slice lies in its tensor.
class SliceLayout {
 public:
  /// `per_head`: one slice per head; otherwise heads are part of the matrix.
  SliceLayout(const ArgumentSpec&, const Sizes&, bool per_head);

  int64_t heads() const { return heads_; }  ///< of the argument; 1 where it has none
  bool of_tokens() const { return tokens_; }
  /// True where several slices read the same elements, so that their gradients add up. `heads` of the
  /// operator.
  bool shared(int64_t heads) const { return (!tokens_ && !sequences_) || (heads_ != heads); }
  int64_t rows(const Slice& s) const { return tokens_ ? s.tokens : rows_; }
  int64_t columns() const { return columns_; }
  /// A token's row in so many equal parts, where axes stand between tokens and heads; else one.
  int64_t parts() const { return parts_; }
  /// First element of a row of the slice's matrix, or of one of its parts, each of which lies in one piece;
  /// `heads` of the operator share the argument's in groups.
  int64_t row(const Slice& s, int64_t heads, int64_t r, int64_t part = 0) const;
  /// The tensor's axes, with their sizes.
  const std::vector<Axis>& axes() const { return axes_; }
  int64_t size() const;

 private:
  std::vector<Axis> axes_;
  bool tokens_ = false, sequences_ = false;
  int64_t heads_ = 1, rows_ = 1, columns_ = 1, parts_ = 1;
};

/// Most heads that any argument has, where slices are taken head by head; else 1.
int64_t heads_of(const std::vector<SliceLayout>& inputs, bool per_head);

/// Reads a slice. Cotangents are those of `outputs`, absent ones zero; empty `outputs`: none.
SliceProblem read_slice(const Problem&, const std::vector<ArgumentSpec>& inputs,
                        const std::vector<ArgumentSpec>& outputs,
                        const std::vector<ParameterSpec>& parameters, const Slice&, bool per_head);

}  // namespace assay
