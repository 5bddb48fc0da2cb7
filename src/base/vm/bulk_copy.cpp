#include "src/base/vm/bulk_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/vm/mbarrier.h"
#include "src/base/vm/rows/bulk_combine.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

constexpr size_t most_in_flight = 1 << 14;  // of a cluster or a warp

void move(const BulkCopy& copy) {
  for (const BulkPiece& piece : copy.pieces) {
    if (piece.what == BulkPiece::What::nans)
      fill_with_nans(piece.to_host, piece.bytes);
    else if (piece.what == BulkPiece::What::zeros)
      std::memset(piece.to_host, 0, piece.bytes);
    else if (copy.combine != ptx::Combine::none)
      combine_bytes(copy.combine, copy.type, piece.to_host, piece.from_host, piece.bytes);
    else if (copy.narrows)
      narrow_to_tf32(piece.to_host, piece.from_host, piece.bytes);
    else
      std::memmove(piece.to_host, piece.from_host, piece.bytes);
  }
}

bool land(Block& block, BulkCopy&& copy) {
  move(copy);
  block.landed.push_back(std::move(copy));
  const BulkCopy& done = block.landed.back();
  return done.barrier == no_shared ||
         complete_bytes(block.warps[done.warp], *done.op, done.lane, done.barrier, done.barrier_bytes);
}

}  // namespace

bool issue_bulk(Warp& warp, BulkCopy&& copy) {
  Block& block = *warp.block;
  const bool of_group = copy.barrier == no_shared;
  if ((of_group ? warp.bulk.in_flight().size() : block.loads.size()) >= most_in_flight)
    return raise(warp, *copy.op, copy.lane, TrapKind::unsupported,
                 "16384 bulk copies are in flight: what waits for them is missing");
  copy.number = ++block.issued;
  if (of_group)
    warp.bulk.issue(*copy.op, 1u << copy.lane) = std::move(copy);
  else
    block.loads.push_back(std::move(copy));
  return true;
}

bool land_at(Block& block, uint64_t place) {
  std::vector<BulkCopy> mine;
  const auto others = std::stable_partition(block.loads.begin(), block.loads.end(),
                                            [&](const BulkCopy& copy) { return copy.barrier != place; });
  mine.assign(std::make_move_iterator(others), std::make_move_iterator(block.loads.end()));
  block.loads.erase(others, block.loads.end());
  for (BulkCopy& copy : mine)
    if (!land(block, std::move(copy))) return false;
  return true;
}

void wait_for_bulk_groups(Warp& warp, uint32_t mask, uint64_t outstanding) {
  warp.bulk.wait(mask, outstanding, [&](const auto& entry, uint32_t) {
    BulkCopy copy = entry.work;
    land(*warp.block, std::move(copy));
  });
}

void each_landing(const BulkCopy& copy, const std::function<void(const Landing&)>& visit) {
  uint64_t to[32], from[32];
  uint32_t copied[32];
  Landing made{copy.op,
               0,
               to,
               from,
               copied,
               0,
               copy.to_space,
               copy.from_space,
               copy.lane,
               copy.combine != ptx::Combine::none,
               copy.number};
  made.barrier = copy.barrier;
  made.is_last = false;
  int count = 0;
  const auto tell = [&] {
    made.mask = count == 32 ? ~0u : (1u << count) - 1;
    if (count || made.is_last) visit(made);
    made.is_first = false;
    count = 0;
  };
  for (const BulkPiece& piece : copy.pieces)
    for (uint32_t at = 0; at < piece.bytes; at += 16) {
      const uint32_t bytes = std::min(16u, piece.bytes - at);
      if (count == 32 || bytes != made.bytes) tell(), made.bytes = bytes;
      to[count] = piece.to + at, from[count] = piece.from + at;
      copied[count++] = piece.what == BulkPiece::What::copy ? bytes : 0;
    }
  made.is_last = true;
  tell();
}

void land_rest(Block& block) {
  for (Warp& warp : block.warps) wait_for_bulk_groups(warp, ~0u, AsyncQueue<BulkCopy>::none);
}

}  // namespace assay::vm
