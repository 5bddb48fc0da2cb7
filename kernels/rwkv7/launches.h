// The launches of rwkv7's scans token by token.
#pragma once
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace assay::rwkv7 {

/// Key channels that the serving function of delta/columns.cuh holds: as many as a row's of the others.
int64_t key_capacity(const Sizes&);

/// A table of sequences.
struct SequenceTable {
  std::string name;
  int64_t count;
};

/// Launches of kernels/rwkv7/<source>.cu, whose module the plan has from then on.
class Launches {
 public:
  Launches(Program&, const std::string& source, const ResolvedCase&, SequenceTable);

  /// By value columns, each block some of them.
  void by_columns(const std::string& scan, std::vector<Argument>);
  /// By key channels, the rows of the state.
  void by_rows(const std::string& scan, std::vector<Argument>);
  const Sizes& sizes() const { return sizes_; }

 private:
  void add(const std::string& function, int64_t blocks, std::vector<Argument>);

  Program& plan_;
  std::string module_;
  const Sizes sizes_;
  const Argument scale_;
  const SequenceTable sequences_;
};

/// What the gradients by rows start from: what tokens read and pull, and the states' ends.
struct RowGradients {
  PointerArgument reads, pulls, initial_state, dfinal_state, dinitial_state;
};
/// dr, dw, dk, da and db; `kept`: states kept in between, of all sequences.
void add_row_gradients(Launches&, Program&, const TensorMap& inputs, const RowGradients&, int64_t kept);

}  // namespace assay::rwkv7
