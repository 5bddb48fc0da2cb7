// Unwritten values that matter: a lane mask per byte of every register cell, and a state per byte of memory,
// say what was never written or came of what was never written. Moves, loads, stores, shuffles, cp.async and
// calls carry the state along; arithmetic unites its sources; of a select only the chosen side counts, and
// `and`, `or`, `mul` and predicates forget a side that the other one decides. A finding is made where such a
// value reaches a branch, an address or an element of an output; loading, moving and computing with it is
// none, so that padded lanes that are masked or selected away are silent.
//
// A tensor-core product carries the state of row i of A and column j of B into element (i, j), so that a
// padded row spoils its own row of the result only.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/program/byte_set.h"
#include "src/base/vm/cell_memory.h"
#include "src/base/vm/checks/check.h"

namespace assay::vm {

/// State of a byte of memory.
enum ByteState : uint8_t {
  written = 0,
  never = 1,    ///< nothing was stored
  derived = 2,  ///< what was stored came of something never written
};

class WrittenCheck;

/// A register and how many of its low bytes count; of a predicate 1.
struct WrittenRegister {
  Slot slot = no_slot;
  uint8_t bytes = 0;
  bool is_mask = false;
};

/// How an op passes states on.
struct WrittenFacts {
  /// A result that is computed: from the lanes in which any source is not written. Null: none is.
  void (WrittenCheck::*pass)(Warp&, const Op&, const WrittenFacts&, uint32_t mask, uint32_t found) = nullptr;
  bool passes_always = false;  ///< where all sources are written too: its carry need not be
  /// What travels through memory, between lanes or into a matrix, looked at once it is done.
  void (WrittenCheck::*travel)(Warp&, const Op&, uint32_t mask) = nullptr;
  std::vector<WrittenRegister> sources;
  WrittenRegister d;
  bool jumps = false;  ///< by a table: its source decides the way
  bool acts = false;   ///< its guard matters at once: it branches, waits or changes memory
};

class WrittenCheck : public Check<WrittenFacts> {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;
  explicit WrittenCheck(const CheckSetup& setup)
      : Check(setup), strict_(setup.strict), partial_(setup.partial) {}

  /// Outputs, workspaces and the gaps of views start as never written; everything else is. What is stored
  /// into inputs that are outputs too is followed. `gaps`: Checks::unwritten_bytes.
  void begin_run(const Memory&, const Program&, const TensorMap& inputs,
                 const std::map<std::string, ByteSet>& gaps);
  void enter(const LaunchContext&);
  void begin_block(Block&);
  void guarded(Warp&, const Op&, uint32_t active);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  /// What holds values before the run, in the bytes of what does not.
  void note_written(const Allocation&, const Part&);
  /// Elements of the outputs that were never written, or that came of what was not.
  void end_run(const Memory&, const std::vector<ProgramOutput>&);
  /// The bytes of an input to which nothing has been stored yet.
  ByteSet never_stored(const std::string& name) const;
  using Areas = GlobalCells<CellArray<uint8_t>>;
  /// Of an output or workspace; null for other names.
  const Areas::Area* area(const std::string& name) const { return areas_.find(name); }
  /// The states of its bytes from `offset` on, united.
  static uint8_t states(const Areas::Area&, uint64_t offset, uint64_t bytes);

 private:
  using Facts = WrittenFacts;
  using Register = WrittenRegister;
  using Lanes = uint32_t;                   ///< bit per lane
  using ByteLanes = std::array<Lanes, 8>;   ///< by byte of a register
  using Events = std::array<uint32_t, 32>;  ///< by lane; 0: none
  /// Something never written that was read: one per instruction that reads.
  struct Event {
    CheckedPlace place;
    std::string what;  ///< "shared tile + 128", "register %f3"
    const Op* op = nullptr;
    std::string through;     ///< the first tensor-core instruction it entered, as text
    bool elsewhere = false;  ///< a block that does not run would have written it
  };
  struct WarpStates {
    std::vector<Lanes> bytes;  ///< by slot / 32 + byte
    /// Event, by slot / 4 + lane; a predicate's by slot / 4; 0: the register itself.
    std::vector<uint32_t> origin;
    Lanes carry = 0;
  };

  static Facts facts_of(const Op&, const Signature&);
  static uint64_t untouched_bytes(const Areas::Area&, uint64_t offset);
  static decltype(Facts::pass) pass_of(const Op&, const Signature&);
  static Register whole(const Use& use) {
    const bool mask = use.cell == Cell::mask;
    return {use.slot, static_cast<uint8_t>(mask ? 1 : bytes_of(use.cell)), mask};
  }
  WarpStates& of(const Warp& warp) { return warps_[warp.index]; }
  Lanes* bytes(const Warp& warp, Slot slot) { return &of(warp).bytes[slot / 32]; }
  uint32_t& origin(const Warp& warp, const Register& r, int lane) {
    return of(warp).origin[r.slot / 4 + static_cast<size_t>(r.is_mask ? 0 : lane)];
  }
  Lanes any(const Warp&, const Register&);
  Lanes any_source(const Warp&, const Facts&);
  /// The event behind lane's state of a source; made where the register itself was never written.
  uint32_t event_of(const Warp&, const Op&, const Register&, int lane);
  /// `what` is asked only where the op has none yet.
  template <class Text>
  uint32_t make_event(const Warp& warp, const Op& op, int lane, Text what) {
    const auto [known, is_new] = event_of_op_.try_emplace(&op, static_cast<uint32_t>(events_.size()));
    if (is_new) events_.push_back({place(warp, op, lane, "read by " + opcode_of(*code_, op)), what(), &op});
    return known->second;
  }
  void set(Warp&, const Op&, const Register&, uint32_t mask, const ByteLanes& states);
  void set_all(Warp&, const Op&, const Register&, uint32_t mask, Lanes states);
  void clear(const Warp&, const Register&, uint32_t mask);
  void clear(const Warp&, const Op&, uint32_t mask);
  /// All bytes of a register, for one reason; of all that an op writes.
  void spoil(const Warp&, const Register&, Lanes, uint32_t event);
  void spoil(const Warp&, const Op&, Lanes, uint32_t event);
  /// States and events of a destination.
  void put(const Warp&, const Register&, uint32_t mask, const ByteLanes&, const Events&);
  void sink(Warp&, const Op&, const Register&, Lanes, const CheckSentence&, const char* what);
  void strict(Warp&, const Op&, const Register&, uint32_t mask);

  // written_values.cpp: WrittenFacts::pass
  void forget(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void plain(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void vote(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void by_byte(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void multiply(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void predicates(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void compare(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  void carry(Warp&, const Op&, const Facts&, uint32_t mask, Lanes);
  // WrittenFacts::travel: written_memory.cpp, and matrix in written_values.cpp
  void transfer(Warp&, const Op&, uint32_t mask);
  void atomic(Warp&, const Op&, uint32_t mask);
  void matrix(Warp&, const Op&, uint32_t mask);
  /// Bytes on their way: bit by byte of those not written, of them those that nothing was ever stored to.
  struct Taken {
    uint64_t missing = 0, never = 0;
    uint32_t event = 0;
  };
  uint8_t* states_at(const Warp&, const BytePlace&);  ///< null: all written there
  uint32_t& stored_event(const Warp&, const BytePlace&, uint32_t byte = 0);
  uint32_t memory_event(const Warp&, const Op&, const BytePlace&, uint32_t byte, uint8_t state);
  Taken take(const Warp&, const Op&, const BytePlace&, uint32_t count);
  void give(const Warp&, const BytePlace&, uint32_t count, const Taken&);
  bool all_written(Warp&, const Op&, uint32_t mask);
  void leave_out_uncovered(const LaunchContext&);
  void end_output(const Areas::Area&, const Place&);
  void add_gaps(const Allocation&, const ByteSet&);

  bool strict_, partial_;
  std::set<std::string> with_gaps_;  ///< inputs that a later launch may write
  std::vector<WarpStates> warps_;
  BlockCells<CellArray<uint8_t>, 1> memory_;
  Areas areas_;  ///< of what starts unwritten
  size_t area_hint_ = 0;
  std::vector<Taken> staged_;  ///< from register to register
  std::vector<Event> events_{1};
  std::unordered_map<const Op*, uint32_t> event_of_op_;  ///< of this launch
  /// Where a derived value was stored, by 4 bytes -> event; of the block's own memory, and of global memory.
  std::unordered_map<uint64_t, uint32_t> stored_in_block_, stored_;
  Lanes guard_lanes_ = 0;  ///< of the guarded op that runs: lanes whose guard was never written
  uint32_t guard_event_ = 0;
};

}  // namespace assay::vm
