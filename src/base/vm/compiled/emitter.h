// Emits host code of 32 lanes: parts of register cells (16 words, 8 wide values) kept in vector registers
// from their first use in a piece until it ends, calls something, or needs the register.
#pragma once
#include <xbyak/xbyak.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {

/// What MXCSR has to say of subnormals.
enum class Mode : uint8_t { any, plain, flushing };

class Emitter : public Xbyak::CodeGenerator {
 public:
  using Zmm = Xbyak::Zmm;
  static constexpr uint32_t part_bytes = 64;

  Emitter() : CodeGenerator(1 << 16, Xbyak::AutoGrow) {}

  // What emissions are written with. Free for them: zmm0 to zmm3, k1 to k6, eax, ecx, edx.
  /// Part `part` of the cell at `slot`, as it is before the instruction.
  Zmm use(Slot slot, uint32_t part) { return use_at(slot + part * part_bytes); }
  /// A register for a result.
  Zmm fresh();
  /// The part's new value: of the guard's lanes where the instruction has one.
  void define(Slot slot, Cell cell, uint32_t part, const Zmm& value);
  /// The lanes' new predicate is in eax.
  void define_mask(Slot slot);
  Xbyak::Address mask_at(Slot slot) { return dword[rbx + slot]; }
  /// Half h of a predicate.
  Xbyak::Address mask_half(Slot slot, uint32_t h) { return word[rbx + (slot + 2 * h)]; }
  /// These 32 bits in every lane, as an operand; of vpbroadcastd.
  Xbyak::Address broadcast(uint32_t bits) { return ptr_b[rip + label_of(bits)]; }
  Xbyak::Address constant(uint32_t bits) { return dword[rip + label_of(bits)]; }
  /// NaN becomes the one that the hardware returns.
  void make_canonical(const Zmm&);

  // What pieces are made with.
  void set_guard(bool guarded) { guarded_ = guarded; }  ///< its lanes are in ebp
  void finish_instruction();                            ///< registers may be taken by others
  void store_all();                                     ///< what memory lacks
  void forget_all();                                    ///< after store_all: registers hold nothing
  void emit_constants();
  /// 0, 4, 8 .. 60 for part 0, on to 124 for part 1.
  Xbyak::Address steps_of_four(uint32_t part) {
    return zword[rip + steps_ + static_cast<int>(part * part_bytes)];
  }

  struct Held {
    Slot at = no_slot;
    bool dirty = false, pinned = false;
    uint64_t used = 0;
  };
  static constexpr int first_register = 4, registers = 28;
  using Holding = std::array<Held, registers>;
  // Around a call out of line, for which memory holds all: registers as they are now, before and behind it.
  const Holding& holding() const { return held_; }
  void store_dirty(const Holding&);
  void load_again(const Holding&);
  void load(const Zmm& to, Slot slot, uint32_t part) { vmovdqa64(to, place(slot + part * part_bytes)); }

 private:
  Zmm use_at(Slot at);
  const Xbyak::Label& label_of(uint32_t bits);
  uint32_t take();
  void store(uint32_t index);
  static Zmm zmm_of(uint32_t index) { return Zmm(static_cast<int>(index) + first_register); }
  Xbyak::Address place(Slot at) { return ptr[rbx + at]; }

  Holding held_;
  uint64_t clock_ = 0;
  bool guarded_ = false;
  std::vector<std::pair<uint32_t, std::unique_ptr<Xbyak::Label>>> constants_;
  Xbyak::Label steps_;
};

}  // namespace assay::vm
