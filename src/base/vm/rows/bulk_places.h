// Where bulk copies read and write: addresses made into bytes of the host, and the blocks that a copy goes
// to.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/vm/bulk_copy.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/rows/bulk_operands.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// Collects an instruction's operands in Op::slots.
class BulkOperands {
 public:
  BulkOperands(Decoder&, const ptx::Instruction&, Op&);
  /// The next operand, in brackets; its offset goes to `offset`.
  void address(BulkSlot, bool& wide, int64_t& offset);
  /// The next operand [map, {coordinates}]: as many as there are axes.
  void tensor(BulkSlot, bool& wide, int64_t& offset);
  /// The next operand, a register or constant.
  void value(BulkSlot, ptx::Type);
  /// The next operand {..} of im2col.
  void offsets();
  /// What completes the copy, by the opcode; the mbarrier is the next operand where it is one.
  void completion();
  /// The mask of blocks where the opcode has one; then nothing but a cache policy may be left.
  void finish();

  BulkForm form;

 private:
  const ptx::Operand& next();
  void put(BulkSlot, const ptx::Operand&, ptx::Type);
  bool has(const char* part) const;

  Decoder& decoder_;
  const ptx::Instruction& instruction_;
  Op& op_;
  std::vector<std::string> parts_;
  std::vector<Slot> slots_;
  size_t at_ = 0;
};

inline uint64_t bulk_address(const Warp& warp, Slot slot, bool wide, int lane) {
  return wide ? warp.wide(slot)[lane] : warp.word(slot)[lane];
}

/// One end of a copy of plain bytes.
struct BulkSide {
  bool found = false;    ///< all bytes are there
  uint64_t address = 0;  ///< of shared memory in Block::shared
  std::byte* data = nullptr;
  PagedBytes* pages = nullptr;  ///< where there is no data
  uint64_t offset = 0;          ///< in the pages
  std::byte* host(uint64_t at) const { return pages ? pages->at(offset + at) : data + at; }
};
BulkSide bulk_side(Warp&, const Op&, bool shared, uint64_t address, uint64_t bytes, bool in_cluster);

/// visit(at, bytes) for runs that lie together on both sides.
template <class Visit>
void each_run(const BulkSide& a, const BulkSide& b, uint32_t bytes, Visit visit) {
  if (!a.pages && !b.pages) return visit(uint64_t{0}, bytes);
  for (uint32_t at = 0; at < bytes; at += 16) visit(uint64_t{at}, std::min(16u, bytes - at));
}

/// send(destination, copy) for every block that the copy goes to: the one that `to` names, or those of the
/// mask at the same offset, each with its own mbarrier. The copies have all but their pieces and source.
/// False: trapped.
bool each_target(Warp&, const Op&, int lane, uint64_t to, uint32_t bytes,
                 const std::function<bool(uint64_t to, BulkCopy&&)>& send);

}  // namespace assay::vm
