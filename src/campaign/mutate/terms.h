// What a program computes, as terms over the elements of its inputs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/vm/machine.h"

namespace assay {

/// What one run leaves in the program's buffers but for its workspaces. A value that follows from sizes,
/// literals and parameters alone is its bits; any other a number that stands for the expression that made it:
/// which operation of which operands, down to elements of inputs. Where two programs leave the same, they
/// leave the same bits whatever those elements are, for all that the bits depend on stands in the terms:
/// every branch, address and guard was decided by sizes alone.
///
/// Terms are one where the machine's arithmetic says that their bits are: a product of a zero and a finite
/// number, both known, adds nothing but a zero, and a tensor core's sum takes no notice of it (aligned_sum in
/// src/base/vm/tensor_core.cpp); x + -0 is x, and x + 0 where x is never -0.
struct Terms {
  std::map<std::string, std::vector<uint64_t>> left;  ///< by buffer, for each two bytes
  std::string lost;  ///< what keeps the run from being told so; empty: nothing
};
/// Numbers stand for expressions by a hash of 62 bits.
Terms terms_of(const Program&, const TensorMap& inputs, const vm::MachineOptions&);

/// Do both leave the same terms, as far as they can be told?
bool same_terms(const Program&, const Program& other, const TensorMap& inputs, const vm::MachineOptions&);

}  // namespace assay
