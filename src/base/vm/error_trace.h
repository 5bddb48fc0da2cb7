// The trace that carries exact shadows (error_shadow.h) beside a run of the engine.
//
// What travels unchanged (transfer.h) carries its shadow. Arithmetic rows follow Row::real; tensor-core sums
// are exact dot products; integer work on the bits of floats that moves a half or a word, flips or clears its
// sign (error_trace_moves.cpp) or rounds the float (a mask that cuts, the addition before it) is followed
// too. Elsewhere the shadow ends: at other work on bits, conversions to and from integers, rounding to
// integral values, atomics, values that are not finite. What comes next starts anew, without error, from the
// machine's value, unless the trace is strict.
//
// A strict trace (exact_run.h) keeps apart what is exact and what comes of rounded values (ErrorKind::lost).
// What is not followed stays exact where the same instruction gives the same result on the operands' exact
// values, rounded once to their formats: the sign of a float, its exponent, the integer next to it, a
// comparison. And what a comparison decides that exact operands would decide the other way is known
// (error_trace_choices.cpp): a selection gives the other operand, anything else is lost, and from a branch
// on, all that the block writes.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "src/base/vm/amplified.h"
#include "src/base/vm/code.h"
#include "src/base/vm/error_shadow.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/vm/recurrences.h"
#include "src/base/vm/shadow_edges.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {

/// A value that parted from its exact counterpart by more than ErrorPlan::parting, relative to the latter.
struct Parting {
  uint64_t block = ~uint64_t{0};  ///< linear; ~0: none
  uint64_t order = 0;             ///< of the warp instruction in its block
  int32_t op = -1;
  uint32_t thread = 0;
  double value = 0, error = 0;
};

/// What the ops of one launch did, as the trace counts it; op is an index into Code::ops.
struct OpErrors {
  struct OfOp {
    uint64_t roundings = 0;  ///< lanes whose own rounding was not zero
    double largest = 0;      ///< |own rounding| / |result|
    EdgeSeen edge;           ///< what may leave its range (shadow_edges.h)
    Amplified amplified;
  };
  std::vector<OfOp> ops;  ///< where the plan counts them
  Parting first;          ///< in the order of blocks, then of execution
  uint64_t ended = 0;     ///< shadows that ended at a value that is not finite
  /// Of a strict trace, lanes: comparisons that exact operands would decide the other way, and branches,
  /// exits and stores under such a predicate, the first of each block.
  uint64_t turned = 0, branches_turned = 0;
  /// Of a strict trace: what lost a value first, in the order of blocks, then of execution; -1: nothing did.
  struct Loss {
    uint64_t block = ~uint64_t{0};
    int32_t op = -1;
  } loss;
  void merge(const OpErrors&);  ///< what another thread saw
};

/// Parts that a shadow may have.
inline constexpr int kMostParts = 16;

/// What the traces of a launch share.
struct ErrorPlan {
  ErrorMemory* memory = nullptr;
  double parting = 0;
  std::vector<int> part_of_op;  ///< by op: the part its roundings enter, -1 (or empty): none is followed
  int parts = 0;                ///< of every shadow, at most kMostParts
  /// Bounds hold what the exact value may be off by instead of what the machine's is: the rounding of the
  /// shadow's own doubles, `offsets` without a part, `inexact_share`. Infinite: lost.
  bool strict = false;
  /// Immediates that stand for another number: what they lack of it enters that part, or the bound.
  struct Offset {
    Slot slot = no_slot;
    double offset = 0;
    int part = -1;
  };
  std::vector<Offset> offsets;
  /// Parts are probes: of everything that enters the bounds, so that what cancels does. Probe 0 has all of
  /// what series leave out with one sign, each other one all that times numbers by chance.
  bool probes = false;
  /// By op: what its result may be off by, as a share of its product (Literals::left_out). Empty: nothing.
  std::vector<double> inexact_share;
  /// By op: the source that `offsets` do not mean (Literals::exact_source). Empty: none.
  std::vector<int8_t> exact_source;
  /// Ops are counted: their roundings, edges, what they amplify.
  bool counts() const { return !strict && parts == 0; }
};

/// Of the doubles that a step computes with: five roundings at most of a sum of slopes times errors, more of
/// a tensor core's (ErrorTrace::Fragments).
inline constexpr double kStepRoundoff = 0x1p-50;
/// Of what is followed.
inline constexpr double kLargestBound = 0x1p+1000;
/// By what a probe takes what enters it: the same for the same place and probe, uniform between -sqrt(3) and
/// sqrt(3), of variance 1; of probe 0 always 1. (error_trace_parts.cpp)
double probe_factor(uint64_t place, int probe);

class ErrorTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;
  static constexpr double nanoseconds = 250;
  explicit ErrorTrace(const ErrorPlan& plan) : plan_(plan) {}

  void begin_block(Block&);
  void guarded(Warp&, const Op&, uint32_t active);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  /// The error of the value that a register holds in a lane, from half `half` on; nothing where no shadow
  /// follows it.
  std::optional<double> error_of(const Warp&, Slot, int half, ErrorKind, int lane);
  /// What follows there: of a register that its type does not tell.
  ErrorKind kind_of(const Warp& warp, Slot slot, int half, int lane) {
    return cells_.registers(warp).kind[cell(slot, half, lane)];
  }

  OpErrors counts;

 private:
  using Step = void (ErrorTrace::*)(Warp&, const Op&, uint32_t mask);
  /// What an op's signature says, found once.
  struct Facts {
    Step prepare = nullptr, follow = nullptr;  ///< before the op, and behind it
    EdgeKind edge = EdgeKind::none;
    bool adds = false;        ///< add, sub or fma of f32 or f64
    bool multiplies = false;  ///< mul or fma: what meets an exact 0 has no part in the result
    /// Of Row::real: whatever the operands are; the other operand's value; by their values.
    enum class Slopes : uint8_t { constant, product, any };
    Slopes slopes = Slopes::any;
    int arity = 0;
    double own_roundoff = 0;  ///< of Row::real, as a share of the rounding that it finds
    bool decides = false;     ///< which instructions run, or what memory holds
  };
  using Cells = ErrorCells;
  /// A source of the running op.
  struct Operand {
    const double *error, *bound;  ///< in the cells, in `copied`, or zeros
    const double* part[kMostParts];
    bool exact = true;  ///< no lane carries a shadow: errors, bounds and parts are zero
    alignas(64) double value[32], copied[2][32];
    alignas(64) double copied_parts[kMostParts][32];
    void be_exact() {
      static constexpr double zeros[32] = {};
      error = bound = zeros, exact = true;
      for (const double*& p : part) p = zeros;
    }
  };
  using Sources = std::span<const Operand* const>;
  struct Result {
    alignas(64) double value[32], local[32], error[32], bound[32], slope[3][32];
    std::array<const double*, 2> product{};  ///< of strict traces: its first operands
    double terms[32];     ///< where there are probes: the sizes of what adds up to the error
    uint32_t chosen = 0;  ///< lanes whose value is an integer next to the exact one (round_to_integer)
    RealStep step() { return {value, {}, {}, {}, local, {slope[0], slope[1], slope[2]}, error, bound}; }
  };
  /// Of each lane in `mask` the cells of the halves of a value: at, at + step, ...
  struct Places {
    Cells* cells = nullptr;  ///< null: nothing is kept of these
    uint32_t mask = 0;
    size_t step = 1;
    size_t at[32];
  };

  Facts facts_of(const Code&, const Op&) const;
  const Facts& facts(const Op& op) const { return facts_[op_index(op)]; }
  size_t op_index(const Op& op) const { return static_cast<size_t>(&op - code_->ops.data()); }
  Cells& registers(const Warp& warp) { return cells_.registers(warp); }
  static size_t cell(Slot slot, int half, int lane) { return BlockCells<Cells, 2>::cell(slot, half, lane); }
  static void decode(const Warp&, Slot, int half, ErrorKind, double* values);
  void gather(Warp&, Slot, int half, ErrorKind, bool in_place, Operand&);
  void mark(Warp&, const Use& written, ErrorKind, uint32_t mask);
  void mark(Warp&, const Op&, ErrorKind, uint32_t mask);
  void note_loss(const Op&);
  uint32_t not_plain(const Warp&, const Use& read, uint32_t mask);
  uint32_t not_plain(const Warp&, const Op&, uint32_t mask);
  std::optional<uint64_t> exact_bits(const Warp&, const Op&, int source, int lane, int step);
  SourceBits exact_sources(const Warp&, const Op&, uint32_t asked, int step, SourceBits, uint32_t& known);
  void prepare_exact_result(Warp&, const Op&, uint32_t mask);
  void end(Warp&, const Op&, uint32_t mask);
  void lose(Warp&, const Op&, uint32_t mask);
  void lose_results(Warp&, const Op&, uint32_t lanes);
  void compare(Warp&, const Op&, uint32_t mask);
  uint32_t turned_lanes(const Op&, ErrorKind, const Operand&, const Operand&, uint32_t mask) const;
  void prepare_select(Warp&, const Op&, uint32_t mask);
  /// That a selection does not take in a lane; as it was before the selection.
  const Operand& other_operand(const Warp& warp, const Op& op, int lane) const {
    return operands_[warp.mask(op.s[2]) >> lane & 1];
  }
  void note_select(Warp&, const Op&, uint32_t mask);
  void note_predicates(const Warp&, const Op&);
  void note_addresses(Warp&, const Op&, uint32_t mask);
  void follow_predicates(Warp&, const Op&, uint32_t mask);
  void go_astray(uint32_t lanes);
  template <class Visit>
  void each_place(Warp&, const PlaceRow&, uint32_t mask, bool to_write, Visit);
  void overwrite(const Places&, uint32_t bytes);
  void lose(const Places&, uint32_t lanes, uint32_t bytes);
  void put(const Places& to, const Places& from, uint32_t bytes);
  void move(Warp&, const TransferRow&);

  void prepare_arithmetic(Warp&, const Op&, uint32_t mask);
  void arithmetic(Warp&, const Op&, uint32_t mask);
  void finish(Warp&, const Op&, int half, ErrorKind, Sources, Result&, uint32_t mask);
  void note_amplified(const Warp&, const Op&, ErrorKind, Sources, const Result&, uint32_t mask);
  void widen(const Op&, Sources, Result&) const;
  void carry_parts(Warp&, const Op&, size_t first, Sources, Result&, uint32_t mask);
  const Result& exact_slopes(const Op&, Sources, Result&, Result& made) const;
  uint32_t keep(Warp&, const Op&, Slot, int half, ErrorKind, Result&, Sources, uint32_t mask);
  void probe(const Warp&, const Op&, int p, const Result&, double* sum) const;
  void round_to_integer(const Op&, Sources, Result&) const;
  void note_argument(const Op&, uint32_t mask);
  void prepare_bits(Warp&, const Op&, uint32_t mask);
  void bits(Warp&, const Op&, uint32_t mask);
  void move_bits(Warp&, const Op&, int lane);
  const LaneBits& inverted(const Op&, size_t source, size_t from);
  uint32_t word_before(size_t source, size_t lane) const {
    return static_cast<uint32_t>(before_.value[source][lane]);
  }
  enum class Travel : uint8_t { none, reaches, moves };
  Travel travel(const Op&, size_t source, size_t from, size_t to, uint32_t made, int lane);
  bool keep_float(Warp&, const Op&, int lane);
  void set_sign(Cells&, size_t at, double from, double made, bool fixed) const;
  void move_half(const Cells&, size_t shadow, uint32_t word, size_t from, uint32_t made, size_t to,
                 bool fixed_sign);
  void carry(Warp&, const Op&, uint32_t mask);
  void unpack(Warp&, const Op&, uint32_t mask);
  bool chooses(const Op&) const;
  void atomic(Warp&, const Op&, uint32_t mask);
  void prepare_matrix(Warp&, const Op&, uint32_t mask);
  void matrix(Warp&, const Op&, uint32_t mask);
  void unfollowed_matrix(Warp&, const Op&);
  void matrix_tile(Warp&, const Op&, const MatrixForm&, int block, int tile);
  void gather_shared(const Warp&, uint64_t at, Element, Operand&);
  void gather_element(Warp&, Slot, Element, int i, Operand&);
  static bool carries_errors(const MatrixForm& form) {
    return !format_of(form.sum).integer && form.sum != Element::f64 && form.k <= 32;
  }

  const ErrorPlan& plan_;
  const Code* code_ = nullptr;
  Block* block_ = nullptr;
  uint64_t order_ = 0;
  size_t area_hint_ = 0;
  std::vector<Facts> facts_;             ///< by op
  std::set<Slot> shifters_;              ///< registers that round by being added (round_to_integer)
  std::vector<Recurrence> recurrences_;  ///< by op; of a trace that is not strict
  std::vector<Returning> returning_;     ///< [warp][two for each that recurs][lane]
  uint32_t recurring_ = 0;
  BlockCells<Cells, 2> cells_;
  std::array<Operand, 6> operands_;  ///< three per half
  /// Sources of bit operations that carry shadows, and cells that a move or pack may overwrite.
  bool bits_carry_ = false;
  SourceBits before_;
  /// What the running op makes where one half of one source has all its bits inverted: [source][half].
  std::array<std::array<LaneBits, 2>, 3> inverted_{};
  uint32_t inverted_known_ = 0;
  /// Of predicates: lanes in which exact operands would have decided it the other way, or might have.
  RegisterLanes unsure_;
  bool any_unsure_ = false;  ///< in this block so far
  /// Of the running op, lanes: unsure are its guard, a predicate among its sources; lost is where it reads or
  /// which way it goes.
  uint32_t guard_unsure_ = 0, read_unsure_ = 0, misplaced_ = 0;
  bool astray_ = false;     ///< the block on real numbers would have gone another way
  uint32_t unchanged_ = 0;  ///< lanes in which the running op gives the same on exact operands
  uint32_t selected_ = 0;   ///< lanes in which the running selection should give the other operand
  ErrorKind other_kind_ = ErrorKind::none;
  Cells scratch_;  ///< on their way from register to register
  struct Fragments;
  std::shared_ptr<Fragments> fragments_;
};

}  // namespace assay::vm
