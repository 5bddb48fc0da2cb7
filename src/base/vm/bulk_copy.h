// Bulk copies (PTX ISA 9.7.9.25.4 and .5, cp.async.bulk and cp.async.bulk.tensor): what one thread asks the
// copy engine to move. Nothing moves at issue: what completes at an mbarrier lands when a thread waits there,
// what belongs to a bulk group at the wait that covers it, and the rest at the end of the block, so that a
// missing wait is seen as old contents and an overwritten source as new ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/ptx/form.h"
#include "src/base/ptx/type.h"
#include "src/base/vm/trace.h"

namespace assay::vm {

struct Block;
struct Op;
struct Warp;

/// Bytes that lie together on both sides.
struct BulkPiece {
  enum class What : uint8_t { copy, zeros, nans } what = What::copy;
  uint32_t bytes = 0;
  uint64_t to = 0, from = 0;  ///< of shared memory in Block::shared
  std::byte* to_host = nullptr;
  const std::byte* from_host = nullptr;
};

struct BulkCopy {
  const Op* op = nullptr;
  uint32_t warp = 0;  ///< Warp::index of the issuing thread, and its lane
  int lane = 0;
  ptx::Space to_space = ptx::Space::shared, from_space = ptx::Space::global;
  uint64_t barrier = ~uint64_t{0};  ///< place of the mbarrier in Block::shared; none: of a bulk group
  uint32_t barrier_bytes = 0;
  ptx::Combine combine = ptx::Combine::none;  ///< none: copied
  ptx::Type type = ptx::Type::none;           ///< of elements that are combined or are NaN
  bool narrows = false;                       ///< fp32 to tf32
  std::vector<BulkPiece> pieces;
  uint64_t number = 0;  ///< counted by its Block
};

/// What one wait has completed, in order, until the engine has told the trace.
using Landed = std::vector<BulkCopy>;

/// The copy is on its way. False: trapped.
bool issue_bulk(Warp&, BulkCopy&&);
/// What is on its way to the mbarrier at `place` lands. False: trapped.
bool land_at(Block&, uint64_t place);
/// Bulk groups of the lanes in `mask` but their newest `outstanding` ones.
void wait_for_bulk_groups(Warp&, uint32_t mask, uint64_t outstanding);
/// At the end of a block: what nobody waited for.
void land_rest(Block&);

/// visit(Landing) for its pieces, 32 at a time and at most 16 bytes each.
void each_landing(const BulkCopy&, const std::function<void(const Landing&)>& visit);

}  // namespace assay::vm
