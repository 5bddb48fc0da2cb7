// Indices that wrap around at 32 bits on their way to an address. Beside a 32-bit register whose last integer
// operation wrapped stand the values it would have had with unbounded integers, once with all that it was
// made of read as signed and once as unsigned; PTX's add.s32 and mul.lo.s32 serve both. Where such a register
// is widened (cvt to 64 bits, mul.wide, mad.wide) or is an address itself, and the machine's value is neither
// of the two, the address is wrong: a finding where it is used, in bounds or not.
//
// Addition, subtraction, products, left shifts, negation and what signed division, shift, minimum and maximum
// make of them carry the values on, and so do moves, selections, shuffles and local memory. Bit operations
// and unsigned division end them: hashes and generators of random numbers wrap on purpose. A 64-bit value
// that is narrowed and does not fit counts as wrapped too, but not where it is a shared address: of an index
// into shared memory compilers keep 32 bits right and let the upper ones of a 64-bit register be. Nor does it
// where a negative number was widened without its sign, -64 to 4294967232, and with the sign the sum fits:
// loops count in 64 bits of which nobody reads the upper ones. Of a constant before a left shift by a
// constant only the bits that the shift keeps mean anything: compilers write (x - 1) 128 as
// (x + 0x1ffffff) << 7.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/vm/cell_memory.h"
#include "src/base/vm/checks/check.h"

namespace assay::vm {

class WrapCheck;

/// How an op passes on what wrapped.
struct WrapFacts {
  /// What its result is, beside the machine's; null: looked at in `after`, or it has none.
  void (WrapCheck::*pass)(Warp&, const Op&, const WrapFacts&, uint32_t mask) = nullptr;
  bool reaches = false, carries = false;  ///< memory; bits from place to place
  bool is_signed = false, wide = false;
  int count = 0;  ///< sources
  bool may_wrap = false, adds = false, shifts_left = false;
  int demand = 32;  ///< low bits of the result that anything makes use of: fewer before a left shift
};

class WrapCheck : public Check<WrapFacts> {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;
  explicit WrapCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext&);
  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);

 private:
  struct Followed;
  /// What a wrapped 32-bit value should be; of a widened one, what it should be and what it is.
  struct Ideal {
    int64_t as_signed = 0, as_unsigned = 0;
    uint32_t maker = 0;  ///< 1 + the op that wrapped, by its number; 0: it has not wrapped
  };
  using Ideals = RegisterMarks<Ideal>;

  static WrapFacts facts_of(const Op&, const Signature&);
  void find_demands();
  struct Source;
  Source source(const Warp&, Slot, int demand = 32);

  // WrapFacts::pass
  void clear(Warp&, const Op&, const WrapFacts&, uint32_t mask);
  // unbounded(a, b, c): the operation on integers without bounds. Signed operations do not wrap themselves.
  template <auto unbounded>
  void arithmetic(Warp&, const Op&, const WrapFacts&, uint32_t mask);
  template <auto unbounded>
  void signed_only(Warp&, const Op&, const WrapFacts&, uint32_t mask);
  void carry_on(Warp&, const Op&, const WrapFacts&, uint32_t mask);  ///< as the first source that wrapped
  template <auto unbounded>                                          ///< on 64 bits; carries on as well
  void wide_arithmetic(Warp&, const Op&, const WrapFacts&, uint32_t mask);
  template <int words>  ///< sources of 32 bits
  void widen(Warp&, const Op&, const WrapFacts&, uint32_t mask);
  void narrow(Warp&, const Op&, const WrapFacts&, uint32_t mask);

  void use(const Warp&, const Op&, const Access&, uint32_t mask);
  Ideal take(const Warp&, const BytePlace&);
  void give(const Warp&, const BytePlace&, uint32_t bytes, const Ideal&);
  void transfer(Warp&, const Op&, uint32_t mask);

  Ideals ideals_;
  RegisterMarks<int64_t> with_sign_;  ///< 64-bit registers, were negative words widened with their sign
  std::vector<const Immediate*> immediate_;  ///< by slot / 64; null: none
  BlockCells<CellArray<Ideal>, 4> local_;    ///< unoptimised code keeps its variables there
  std::vector<Ideal> staged_;
};

}  // namespace assay::vm
