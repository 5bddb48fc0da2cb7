// The part of a kernel that its blocks may run twice: from the beginning to a barrier of all their threads,
// without anything that others see. Run once without notes, and what is not finite folded into a few
// registers on the way, it tells at that barrier whether the block has to begin anew with the watch in it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/signature.h"

namespace assay::watch {

/// A function as the analyses of the watch see it.
struct FunctionView {
  const ptx::Function& function;
  const std::vector<vm::TextSignature>& signatures;  ///< by instruction
  const std::vector<int>& depth;                     ///< by instruction: 1 in the function's own scope
};

struct Rehearsal {
  std::vector<bool> holds;      ///< by instruction
  std::vector<int32_t> gates;   ///< the barriers where it ends
  std::vector<int32_t> leaves;  ///< instructions before which single threads leave it, for good
  bool copies = false;          ///< cp.async may be in flight at a gate
  bool multiplies = false;      ///< wgmma were issued; they have been waited for
};

/// Where branches may lead from an instruction; none behind a return.
std::vector<int32_t> successors(const FunctionView&, int32_t instruction);

/// None: something is seen by others before every barrier, threads may come to different ones, or the text
/// does not tell.
std::optional<Rehearsal> rehearsal_of(const FunctionView&);

}  // namespace assay::watch
