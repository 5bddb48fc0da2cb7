// What assay knows of an instruction. A row of the instruction table declares a Meaning once (rows/);
// decoding resolves it for every op of a program into a Signature, in slots of the register file; analyses of
// a program's text get the same in register numbers. Recorder, shadows, checks, slices, mutation and
// equivalence read this and the Form of the opcode (src/base/ptx/form.h); none of them looks at the text of
// an opcode.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/availability.h"
#include "src/base/vm/matrix_form.h"

namespace assay::vm {

/// How values pass through: what a result's bits, its error or its being written depend on.
enum class Flow : uint8_t {
  none,         ///< no values: branches, barriers, fences, waits
  copy,         ///< source 0 unchanged
  pack,         ///< mov d, {..}: the sources side by side
  unpack,       ///< mov {..}, s
  select,       ///< source 0 or 1, as source 2 says: a predicate (selp) or a sign (slct)
  logic,        ///< bit i from bits i of the sources
  shift,        ///< source 0 moved by source 1 bits: shl, shr
  permute,      ///< bits of the sources at places that other sources choose: prmt, shf, bfe, bfi, brev
  integer,      ///< of integers, every bit from all bits of the sources
  arithmetic,   ///< of floats, rounded
  conversion,   ///< cvt, between any two types
  comparison,   ///< a predicate or a mask: setp, set, testp, isspacep
  address,      ///< cvta: the same place, named in another space
  exchange,     ///< shfl: another lane's source 0 (Warp::lane_source)
  vote,         ///< one value of the warp's lanes: vote, match, redux, elect, activemask
  matrix,       ///< a tensor-core product (Signature::matrix); slots D, A, B, C (wgmma: D, A if in registers)
  load,         ///< memory to registers
  store,        ///< registers to memory
  atomic,       ///< memory combined with registers, the old value to a register
  load_matrix,  ///< ldmatrix: 16-byte rows, dealt out to the warp
  store_matrix,  ///< stmatrix
  move_matrix,   ///< movmatrix
  copy_async,    ///< global to shared memory, landing later (Trace::landed)
  copy_bulk,     ///< from memory to memory, landing later (Trace::landed)
  parameters     ///< a call's results, copied within local memory: Op::slots are (from, to, bytes)
};

/// Whether `x` is one of those listed.
template <class X, class... Of>
constexpr bool is_one_of(X x, Of... of) {
  return ((x == of) || ...);
}

/// Where the run goes. Of an op as the engine runs it (a `ret` of an entry exits); of text as it is written.
enum class Control : uint8_t { none, branch, branch_table, call, ret, exit, trap, barrier };

/// Through which path memory is reached: accesses of different proxies are ordered by a fence.proxy alone.
enum class Proxy : uint8_t { generic, async };

/// What an asynchronous instruction's end is counted by.
enum class Completion : uint8_t { none, copy_group, bulk_group, wgmma_group, mbarrier };

/// What an instruction is to asynchronous work: begins some, closes a group, waits for it, arrives for it,
/// orders accesses before it.
enum class Step : uint8_t { none, issue, commit, wait, arrive, fence };

struct Asynchronous {
  Completion completion = Completion::none;
  Step step = Step::none;
  Proxy proxy = Proxy::generic;
};

/// What an operand of the text is, in PTX order. Address roles say what is done to the memory there.
enum class Role : uint8_t {
  none,  ///< a label, a function, a modifier
  write,
  write_any,  ///< a result that may be left out: `red` beside `atom`
  update,     ///< read and written in place: D of wgmma
  read,
  load_from,
  store_to,
  modify_at
};

/// Where the bits of a result come from on one architecture.
enum class Evidence : uint8_t {
  absent,    ///< the architecture lacks the form
  exact,     ///< the specification fixes them
  measured,  ///< fitted to, and compared with, that hardware
  modelled   ///< as on the architecture they were measured on
};
class Status {
 public:
  static constexpr Status exact() { return Status(Evidence::exact); }
  /// On this one; modelled on the others.
  static constexpr Status measured_on(int architecture) {
    Status made(Evidence::modelled);
    for (size_t i = 0; i < made.by_.size(); ++i)
      if (architectures[i] == architecture) made.by_[i] = Evidence::measured;
    return made;
  }
  constexpr Evidence on(int architecture) const {
    for (size_t i = 0; i < by_.size(); ++i)
      if (architectures[i] == architecture) return by_[i];
    return Evidence::absent;
  }

 private:
  constexpr explicit Status(Evidence everywhere) { by_.fill(everywhere); }
  std::array<Evidence, std::size(architectures)> by_{};
};

/// What a row declares of its forms. Rounding, flushing, comparisons, spaces and types are the Form's.
struct Meaning {
  Flow flow = Flow::none;
  Status status = Status::exact();     ///< of architectures that have the form (evidence_of)
  ptx::Type result = ptx::Type::none;  ///< of the destination (mma: of D)
  std::array<ptx::Type, 4> sources{};  ///< none beyond the last; all none where the form or the operands tell
  /// In PTX order; the last holds for all that follow. Empty: a result if there is one, then the sources.
  std::vector<Role> operands;
  Asynchronous asynchronous;
  int8_t members = -1;  ///< which of Op::s names the lanes that take part; -1: none does
};

/// Byte offset of a cell in a warp's register file. Immediates and special registers have cells of their own.
using Slot = uint32_t;
inline constexpr Slot no_slot = ~0u;

/// Registers are cells of 32 lanes: uint32_t[32] for every type up to 32 bits (narrower values in the low
/// bits; readers ignore the rest), uint64_t[32] for 64-bit types, one uint32_t lane mask for a predicate.
enum class Cell : uint8_t { none, word, wide, mask };
Cell cell_of(ptx::Type);

/// What a register is read for.
enum class Purpose : uint8_t { value, address, descriptor, members, guard };

/// A cell that an op reads or writes.
struct Use {
  Slot slot = no_slot;
  Cell cell = Cell::none;
  Purpose purpose = Purpose::value;
  ptx::Type type =
      ptx::Type::none;  ///< as which it is read or written; bits of the cell's width where nothing says
};

/// Memory that an instruction reaches.
struct Access {
  enum class Direction : uint8_t { read, write, update } direction = Direction::read;
  /// per_lane: `bytes` at each lane's address; rows: at those of lanes 0 to 8 matrices - 1 (ldmatrix);
  /// descriptor: a matrix tile in shared memory, of all lanes together.
  enum class Reach : uint8_t { per_lane, rows, descriptor } reach = Reach::per_lane;
  ptx::Space space = ptx::Space::none;
  Proxy proxy = Proxy::generic;
  uint32_t bytes = 0;   ///< 0: the operands tell (cp.async in text)
  int8_t operand = -1;  ///< of the text
  Slot base = no_slot;  ///< of an op: address = cell + offset; descriptor: its cell
  bool base_wide = true;
  int64_t offset = 0;
};

/// One op, resolved.
struct Signature {
  const Meaning* meaning = nullptr;
  ptx::Form form;  ///< of the op's row where the decoder made several ops of an instruction
  Control control = Control::none;
  std::span<const Use> reads;        ///< Op::s in order, then the read ones of Op::slots, the guard last
  std::span<const Use> writes;       ///< d, d2, then the written ones of Op::slots
  std::span<const Access> accesses;  ///< cp.async: source, destination
  MatrixForm matrix;                 ///< Flow::matrix
  uint64_t groups =
      0;  ///< Step::wait: how many of the newest groups may stay in flight; ~0: none, open ones included

  Flow flow() const { return meaning->flow; }
};

/// An instruction of a program's text, resolved: registers by index into Function::registers.
struct TextSignature {
  const Meaning* meaning = nullptr;  ///< null: the machine has no such form; then operand 0 counts as written
  ptx::Form form;
  Control control = Control::none;
  std::vector<int32_t> reads;  ///< the guard first
  std::vector<int32_t> writes;
  std::vector<Access> accesses;

  Flow flow() const { return meaning ? meaning->flow : Flow::none; }
};
TextSignature signature_of(const ptx::Instruction&);
/// Null: the machine has no such form.
const Meaning* meaning_of(const ptx::Instruction&);
/// An opcode as the table spells it: cache and ordering qualifiers dropped, the others in the table's order.
/// Without a row its canonical form.
std::string spelling_of(std::string_view opcode);
/// Of one form of a row on one architecture.
Evidence evidence_of(const Meaning&, std::string_view form, int architecture);

}  // namespace assay::vm
