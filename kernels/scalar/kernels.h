// The kernels of the scalar family, those with one decay per head and token: one of each mode for every
// operator that is one of its members.
#pragma once
#include <string>

#include "kernels/kernel.h"

namespace assay::scalar {

/// An operator of the family.
struct Member {
  const char* operator_name;
  /// Natural-log decay of every token of a head, where it is no input; null: heads have none of their own.
  double (*head_decay)(const ResolvedCase&, int64_t head) = nullptr;

  std::string kernel_name(const std::string& mode) const { return std::string(operator_name) + "." + mode; }
};

Kernel chunk_kernel(const Member&);
Kernel fused_chunk_kernel(const Member&);
Kernel chunk_hopper_kernel(const Member&);
Kernel recurrent_kernel(const Member&);
Kernel parallel_kernel(const Member&);

}  // namespace assay::scalar
