// The buffers of a program and the tensors it is run with, as an engine makes them.
#pragma once
#include <string>
#include <vector>

#include "src/base/program/program.h"

namespace assay {

struct Buffer {
  enum class Use : uint8_t { in, constant, in_out, out, workspace };

  std::string name;
  Use use = Use::workspace;
  Tensor shape;  ///< without data; a workspace that is no copy of a tensor has no name there
  int64_t bytes = 0;
  const Tensor* contents = nullptr;      ///< before the first launch; null: Program::poison
  const TensorLayout* layout = nullptr;  ///< of an input that is a view
  int storage = -1;                      ///< the buffer in whose bytes it lies; -1: its own
  int64_t offset = 0;                    ///< there

  bool is_read_back() const { return use == Use::out || use == Use::in_out; }
};

/// Inputs, constants, outputs and workspaces, in this order. Throws BadInput for two of one name, a size that
/// is none, an input that is written with another shape or as a view, and an alias of nothing, of an alias or
/// outside its storage. Points into both arguments.
std::vector<Buffer> buffers_of(const Program&, const TensorMap& inputs);

/// Whether bytes of the buffer are another's too.
bool is_shared(const std::vector<Buffer>&, const Buffer&);

}  // namespace assay
