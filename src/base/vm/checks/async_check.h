// Misuse of what runs beside the threads: cp.async and wgmma.
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
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// What an op has to do with asynchronous work, and its registers.
struct AsyncFacts {
  enum class Act : uint8_t { none, access, copy, multiply, wgmma_fence, proxy_fence } act = Act::none;
  bool moves = false;
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
  std::string register_name(const Op&, Slot) const;

  bool copies_ = false, multiplies_ = false;  ///< the code has cp.async, wgmma
  std::vector<char> of_wgmma_;                ///< by slot / 64: a register of some wgmma
  std::vector<Copying> copying_;              ///< by 4 bytes of shared memory
  std::vector<Stored> stored_;                ///< by 4 bytes
  std::vector<Piece> pieces_;                 ///< by 16 bytes
  std::vector<WarpState> warps_;
  uint32_t time_ = 0, epoch_ = 0, fence_epoch_ = 0;
};

}  // namespace assay::vm
