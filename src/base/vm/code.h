// A module decoded for the engine: one flat array of ops over register slots; operands, addresses, immediates
// and reconvergence points are resolved once.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/instruction_row.h"

namespace assay::vm {

class CompiledCode;
struct Literals;
struct ShadowText;

enum class BooleanOp : uint8_t { none, land, lor, lxor };

struct Op {
  const Row* row = nullptr;
  Kind kind = Kind::nothing;
  bool guarded = false, guard_negated = false;
  Cell d_cell = Cell::none;
  uint8_t source_count = 0;
  LaneFunction lanes = nullptr;
  Slot guard = no_slot;
  Slot d = no_slot;   ///< first destination
  Slot d2 = no_slot;  ///< second of p|q or d|p
  Slot s[4] = {no_slot, no_slot, no_slot, no_slot};

  // compare
  BooleanOp boolean = BooleanOp::none;
  bool third_negated = false;  ///< !c of setp (s[2]), !a of votes

  // memory: Warp::address = cell(s[0]) + offset
  ptx::Space space = ptx::Space::none;
  ptx::Type type = ptx::Type::none;  ///< of one element
  uint8_t element_bytes = 0, vector_length = 1;
  bool in_cluster = false;   ///< .shared::cluster: perhaps another block's
  bool address_wide = true;  ///< s[0] is a 64-bit cell
  bool address2_wide = true;
  int64_t offset = 0, offset2 = 0;  ///< cp.async: the destination is cell(s[1]) + offset2

  /// Vector operands flattened in PTX order (ld.v4: 4 destinations; mma: D, A, B, C; mov {..}), with count.
  const Slot* slots = nullptr;
  uint16_t slot_count = 0;
  uint16_t written_slots = 0;  ///< the first of them are results
  uint64_t immediate = 0;      ///< modifiers a warp function needs (shfl mode, barrier, mma shape ...)

  int32_t target = -1;       ///< branch or call target
  int32_t reconverge = -1;   ///< first op of the immediate post-dominator; -1: none
  int32_t exponential = -1;  ///< index of its exponent range
  int32_t function = -1,
          instruction = -1;  ///< into Module::functions and Function::body (-1: made by the decoder)
};

/// A register-file cell with a fixed value in every warp.
struct Immediate {
  Slot slot;
  Cell cell;
  uint64_t bits;
};

/// Where a register of the program lies.
struct RegisterPlace {
  int32_t function = -1, reg = -1;  ///< into Module::functions and Function::registers
  Slot slot;
};

/// Cells that follow each other in a register file.
struct SlotRange {
  Slot begin, end;
};

/// A special register that the entry reads ("%tid.x"), filled at the start of a block.
struct SpecialCell {
  Slot slot;
  Cell cell;
  std::string name;
};

/// A variable in shared or local memory, for messages and for the check that addresses stay inside it.
struct NamedArea {
  std::string name;  ///< as in the source where the PTX name is a mangled one
  uint32_t offset = 0, bytes = 0;
  int32_t function = -1, variable = -1;  ///< into Module::functions (-1: module scope) and its variables
  bool dynamic = false;                  ///< extern shared: reaches to the end of shared memory
};
/// "tile + 128", "4 bytes past the end of tile (1024 bytes)", "byte 12".
std::string area_text(const std::vector<NamedArea>&, uint64_t address);

/// An entry and the functions it calls, decoded. Register slots of all functions are disjoint (recursion is
/// refused).
struct Code {
  std::shared_ptr<const ptx::Module> module;
  int32_t entry = -1;                 ///< into Module::functions
  std::vector<Op> ops;                ///< the entry's first op is ops[0]
  std::vector<Signature> signatures;  ///< by op
  std::vector<Use> uses;              ///< what they point to
  std::vector<Access> accesses;
  std::vector<uint64_t> variables;       ///< address of each of the module's, where it is .global or .const
  std::vector<int32_t> named_variables;  ///< those that instructions name, ascending
  std::vector<std::unique_ptr<Slot[]>> slot_pool;
  std::vector<std::vector<int32_t>> branch_tables;  ///< Op::immediate of brx.idx
  std::vector<Immediate> immediates;
  std::vector<SpecialCell> specials;
  std::vector<RegisterPlace> registers;  ///< those that the program names
  uint32_t register_bytes = 0;           ///< the first part of a register file: registers
  std::vector<SlotRange> unsure;         ///< those whose contents at a block's start may matter
  uint32_t file_bytes = 0;               ///< then immediates and special registers
  uint32_t shared_bytes = 0;             ///< static shared memory; dynamic shared memory follows
  uint32_t local_bytes = 0;              ///< per thread: .local variables and call parameters
  std::vector<int32_t> exponentials;     ///< op index by exponent range
  bool global_atomics = false;           ///< blocks then run one after another
  bool heap = false;                     ///< calls malloc
  bool spins = false;  ///< loops over a load that is no weak one, or an exchange: may wait for another thread
  std::vector<NamedArea> shared_areas, local_areas;  ///< ascending offsets

  /// Its host code, once somebody has asked for it (compiled/compiled_code.h).
  struct {
    std::once_flag once;
    std::shared_ptr<const CompiledCode> made;
  } mutable compiled;
  /// What its literals stand for, likewise (literals.h).
  struct {
    std::once_flag once;
    std::shared_ptr<const Literals> made;
  } mutable literals;
  /// What shadows know of it, likewise (shadow_text.h).
  struct {
    std::once_flag once;
    std::shared_ptr<const ShadowText> made;
  } mutable shadow_text;

  /// Of one of `ops`.
  size_t index(const Op& op) const { return static_cast<size_t>(&op - ops.data()); }
  const Signature& signature(const Op& op) const { return signatures[index(op)]; }
};

/// "_ZZ1kE4tile" is "tile" in the source; other names stay.
std::string source_name(const std::string& name);
/// Address of module variable `index` where it is .global or .const, and has no place of its own.
uint64_t variable_address(int32_t index);
/// Of every variable of the module, those at their `places` first.
std::vector<uint64_t> variable_addresses(const ptx::Module&, const std::map<std::string, uint64_t>& places);
/// What the variable holds before the first launch: zeros without an initialiser.
std::vector<std::byte> initial_bytes(const ptx::Variable&, const std::vector<uint64_t>& addresses);
/// Address of function `index` of the module: what an indirect call jumps to.
uint64_t function_address(int32_t index);

/// Of entry `index` only what memory it and the functions of its module take: Code::shared_bytes, local_bytes
/// and the areas.
std::shared_ptr<const Code> lay_out(std::shared_ptr<const ptx::Module> module, int32_t index);
/// Decodes entry `name`. Throws BadInput naming opcode, line and kernel of a form that the table lacks.
std::shared_ptr<const Code> decode(std::shared_ptr<const ptx::Module> module, const std::string& name,
                                   const std::map<std::string, uint64_t>& places = {});

}  // namespace assay::vm
