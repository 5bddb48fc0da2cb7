// Four warps that multiply together, and what each of them has in flight.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::vm {

struct Op;
struct Block;
struct Warp;

/// One wgmma.mma_async of a warp in flight: its sums stand in the registers already.
struct AsyncProduct {};

/// The mma_async of one warpgroup in order, as far as not all four warps have executed them.
struct Warpgroup {
  struct Call {
    const Op* op;
    uint64_t a, b;  ///< descriptors; a = 0 for registers
    uint32_t scale;
  };
  std::vector<Call> calls;
  uint64_t dropped = 0;       ///< calls before calls[0]
  uint64_t executed[4] = {};  ///< by warp
};

/// A warp executes mma_async: its lanes and its warpgroup agree, the fence has been executed. False: trapped.
bool issue(Warp&, const Op&, uint32_t mask);
/// What the warp has waited for is complete for all: the other warps have executed those calls too. False:
/// one that still runs has not.
bool completed_by_all(const Warp&);
/// At the end of a block: every warp of a warpgroup has executed the same calls. False: trapped.
bool warpgroups_agree(Block&);

}  // namespace assay::vm
