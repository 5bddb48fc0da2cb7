// An output cut into blocks: at most 64 tokens of one head of one sequence, or 64 rows of a state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

struct OutputBlock {
  int64_t sequence = 0, head = 0;
  int64_t first = 0, rows = 0;  ///< tokens of the sequence, or rows of a state
  int64_t of = 0;               ///< rows of the whole sequence or state
};

/// Blocks that are judged together.
struct OutputPart {
  std::string where;
  std::vector<size_t> blocks;
  bool late = false;  ///< in the last quarter of the tokens
};

class OutputBlocks {
 public:
  /// Sequences as cu_seqlens packs them, else of T tokens.
  OutputBlocks(const std::string& name, const std::vector<Axis>&, const std::vector<int64_t>& cu_seqlens);

  const std::vector<OutputBlock>& blocks() const { return blocks_; }
  bool of_tokens() const { return tokens_; }
  /// Elements of a row.
  int64_t columns() const { return columns_; }
  /// First element of a row of a block.
  int64_t row(const OutputBlock&, int64_t r) const;
  /// The block that begins there; none where no block does.
  const OutputBlock* find(int64_t sequence, int64_t head, int64_t first) const;

  /// Every block; the quarters of a sequence and all of it, where it has more; the last quarter of all of
  /// them, and the whole output, which comes last.
  std::vector<OutputPart> parts() const;

 private:
  std::string name_;
  bool tokens_ = false;
  int64_t heads_ = 1, columns_ = 1;
  std::vector<int64_t> first_rows_;  ///< of every sequence or state
  std::vector<OutputBlock> blocks_;
};

}  // namespace assay
