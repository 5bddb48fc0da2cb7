// Misuse of what runs beside the threads: cp.async, bulk copies and wgmma.
//
// - Shared memory that a cp.async fills is not touched before the wait that covers the copy
//   (`async-copy-race`).
// - Registers of a wgmma.mma_async are not touched while it is in flight: its results by no instruction but
//   the next mma_async that adds to them, its A by none that writes (PTX ISA, wgmma.wait_group); and what is
//   written to its registers is ordered before it by wgmma.fence. Copies from register to register are left
//   out of the latter: compilers place them behind the fence, and the assembler orders them.
// - Shared memory that it reads is not overwritten while it is in flight, and was not written by st, stmatrix
//   or atomics without a fence.proxy.async since, by the writing warp or, after a barrier, by any warp (PTX
//   ISA, "Async proxy"). Data of cp.async is exempt: compiled kernels use no fence
//   for it. That is read off such kernels, not measured.
// The last three are `wgmma-race`.
// - Shared memory that a bulk copy fills is not touched before a wait for it has passed, and what one
//   reads is not overwritten before the wait for its group (`bulk-copy-race`). What it reads was not written
//   by threads without a fence.proxy.async since, by the writer, by the issuer, or after a barrier by anyone
//   (`proxy-fence`).
// - A thread does not pass a wait for one phase of an mbarrier again once the next phase has arrivals or
//   bytes: its parity has not changed with the phases (`mbarrier-phase`).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// What an op has to do with asynchronous work, and its registers.
struct AsyncFacts {
  enum class Act : uint8_t {
    none,
    access,
    copy,
    multiply,
    wgmma_fence,
    proxy_fence,
    bulk,
    barrier_wait
  } act = Act::none;
  bool moves = false;
  bool of_barrier = false;  ///< an mbarrier instruction
  std::vector<Slot> reads, writes;
};

class AsyncCheck : public Check<AsyncFacts> {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::before | hook::after | hook::landed | hook::released;
  explicit AsyncCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext&);
  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  void released(Block&);

 private:
  using Act = AsyncFacts::Act;
  /// 4 bytes of shared memory: the thread's store that their contents came of, none where a cp.async brought
  /// them.
  struct Stored {
    const Op* writer = nullptr;
    uint32_t thread = 0;
    uint32_t time = 0, epoch = 0;
  };
  /// The last wgmma that read 16 bytes of shared memory.
  struct Piece {
    const Op* reader = nullptr;
    uint64_t issue = 0;  ///< of the reading warp's queue
    uint32_t warp = 0;
  };
  /// The bulk copy in flight that reads 16 bytes of shared memory.
  struct BulkReader {
    const Op* op = nullptr;
    uint32_t thread = 0;
    uint64_t number = 0;
  };
  /// Phases of an mbarrier, as far as they have been seen to end.
  struct Phases {
    bool now = false;
    uint64_t ended = 0;
  };
  /// What fills 4 bytes of shared memory.
  struct Copying {
    const Op* op = nullptr;
    uint32_t thread = 0;
  };
  struct WarpState {
    std::vector<const Op*> written;  ///< by slot / 64: by which op since the last wgmma.fence
    std::vector<Slot> since_fence;
    uint32_t proxy_fence = 0;  ///< time
  };

  static AsyncFacts facts_of(const Op&, const Signature&);
  void note_written(WarpState&, const Op&, const AsyncFacts&);
  void touch(Warp&, const Op&, const MemoryAccess&);
  void check_copies(const Warp&, const Op&, const MemoryAccess&);
  void check_registers(const Warp&, const Op&, const AsyncFacts&);
  void check_fence(const Warp&, const Op&);
  void multiply(Warp&, const Op&);
  void issue(Warp&, const Op&);
  void issue_read(const Warp&, const Op&, const BulkCopy&, const BulkPiece&);
  void issue_write(const Warp&, const Op&, const BulkCopy&, const BulkPiece&);
  void check_bulk_readers(const Warp&, const Op&, int lane, uint64_t address, uint64_t bytes);
  bool is_unfenced(const Stored&, const Warp& reader) const;
  uint64_t phases_ended(uint64_t place);
  void pass(Warp&, const Op&, uint32_t mask);
  std::string register_name(const Op&, Slot) const;

  bool copies_ = false, multiplies_ = false, bulk_ = false;  ///< the code has cp.async, wgmma, bulk copies
  std::vector<char> of_wgmma_;                               ///< by slot / 64: a register of some wgmma
  std::vector<Copying> copying_;                             ///< by 4 bytes of shared memory
  std::vector<Stored> stored_;                               ///< by 4 bytes
  std::vector<Piece> pieces_;                                ///< by 16 bytes
  std::vector<BulkReader> bulk_readers_;                     ///< by 16 bytes
  std::unordered_map<uint64_t, Phases> phases_;              ///< by place of the mbarrier
  /// A thread's last pass of a wait for an mbarrier: phases ended by then.
  struct Pass {
    const Op* op = nullptr;
    uint64_t ended = 0;
  };
  std::unordered_map<uint64_t, Pass> passed_;  ///< by thread and place
  std::vector<WarpState> warps_;
  uint32_t time_ = 0, epoch_ = 0, fence_epoch_ = 0;
};

}  // namespace assay::vm
