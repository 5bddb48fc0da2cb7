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
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "src/base/vm/shadow_kit.h"
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
  bool wide = true;             ///< some value may be an f64
  std::vector<int> part_of_op;  ///< by op: the part its roundings enter, -1 (or empty): none is followed
  int parts = 0;                ///< of every shadow, at most kMostParts
  /// Bounds hold what the exact value may be off by instead of what the machine's is: the rounding of the
  /// shadow's own doubles, `offsets` without a part, `inexact_share`. Infinite: lost.
  bool strict = false;
  /// What rounds to an integer by being added may come in any register, as an argument of a call does: for
  /// diagnosis, as an input may be such a number too.
  bool shifters_by_value = false;
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

/// Whether one of the registers that an op reads says where it reads or goes, or from which lane it takes.
bool says_where(const Signature&, size_t read);

/// Of the doubles that a step computes with: five roundings at most of a sum of slopes times errors, more of
/// a tensor core's (ErrorTrace::Fragments).
inline constexpr double kStepRoundoff = 0x1p-50;
/// Of what is followed.
inline constexpr double kLargestBound = 0x1p+1000;

class ErrorTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;
  static constexpr double nanoseconds = 250;
  explicit ErrorTrace(const ErrorPlan&);
  ~ErrorTrace();
  ErrorTrace(const ErrorTrace&) = delete;
  ErrorTrace& operator=(const ErrorTrace&) = delete;

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
    /// Rows of the registers that it reads, those first that say where it reads or goes; `all_known`: there
    /// are no others.
    struct ReadRows {
      uint32_t row = 0, halves = 0;
    };
    std::array<ReadRows, 6> reads{};
    uint8_t read_count = 0, place_count = 0;
    bool all_known = true;
    ReadRows written;  ///< of an op that writes one register and no other
  };
  using Cells = ErrorCells;
  /// A source of the running op.
  struct Operand {
    const double *error, *bound;  ///< in the cells, in `copied`, or zeros
    const double* part[kMostParts];
    bool exact = true;    ///< no lane carries a shadow: errors, bounds and parts are zero
    uint32_t parted = 0;  ///< parts that may not be zero
    alignas(64) double value[32], copied[2][32];
    alignas(64) double copied_parts[kMostParts][32];
    void be_exact(int parts) {
      static constexpr double zeros[32] = {};
      error = bound = zeros, exact = true, parted = 0;
      for (int p = 0; p < parts; ++p) part[p] = zeros;
    }
    /// Of what lies elsewhere and may change.
    void copy() {
      const auto take = [](const double*& from, double* to) {
        std::memcpy(to, from, sizeof copied[0]);
        from = to;
      };
      take(error, copied[0]), take(bound, copied[1]);
      for (uint32_t rest = parted; rest; rest &= rest - 1) {
        const int p = std::countr_zero(rest);
        take(part[p], copied_parts[p]);
      }
    }
  };
  using Sources = std::span<const Operand* const>;
  struct Result {
    alignas(64) double value[32], local[32], error[32], bound[32], slope[3][32];
    alignas(64) double terms[32];  ///< where there are probes: the sizes of what adds up to the error
    std::array<const double*, 2> product{};  ///< of strict traces: its first operands
    uint32_t chosen = 0;  ///< lanes whose value is an integer next to the exact one (round_to_integer)
    RealStep step() { return {value, {}, {}, {}, local, {slope[0], slope[1], slope[2]}, error, bound}; }
  };
  /// What a step adds to every probe.
  struct Probes {
    Probes(const ErrorTrace&, const Warp&, const Op&, const Result&);
    bool asked = false, leaves_out = false;  ///< there are probes; a series ends at this op
    uint64_t place = 0;
    ProbeSizes sizes;
    bool reach(int p) const { return asked && (p > 0 || leaves_out); }
  };
  /// Of each lane in `mask` the cells of the halves of a value: at, at + step, ...
  struct Places {
    Cells* cells = nullptr;  ///< null: nothing is kept of these
    uint32_t mask = 0;
    size_t step = 1;
    bool in_registers = false;
    ptrdiff_t stride = kApart;  ///< from one lane to the next
    size_t first = 0;           ///< with a stride: of lane 0
    size_t at[32];              ///< without one, and once listed
    bool listed = false;

    static constexpr ptrdiff_t kApart = -1;
    /// As far as lanes 0, 1, ... take part and no others; 0: others do, or they lie apart.
    size_t even_lanes() const {
      return stride == kApart || (mask & (mask + 1)) ? 0 : static_cast<size_t>(std::countr_one(mask));
    }
    void lie_evenly(size_t begin, ptrdiff_t apart) { first = begin, stride = apart, listed = false; }
    void list() {
      if (listed || stride == kApart) return;
      for (size_t lane = 0; lane < 32; ++lane) at[lane] = first + lane * static_cast<size_t>(stride);
      listed = true;
    }
    /// Of registers: all that is written lies in one row, that of `ahead` cells behind.
    bool is_row() const { return in_registers && stride == 1; }
  };

  Facts facts_of(const Code&, const Op&) const;
  const Facts& facts(const Op& op) const { return facts_[op_index(op)]; }
  size_t op_index(const Op& op) const { return static_cast<size_t>(&op - code_->ops.data()); }
  Cells& registers(const Warp& warp) { return cells_.registers(warp); }
  static size_t cell(Slot slot, int half, int lane) { return BlockCells<Cells, 2>::cell(slot, half, lane); }
  static void decode(const Warp&, Slot, int half, ErrorKind, double* values);
  void gather(Warp&, Slot, int half, ErrorKind, bool in_place, uint32_t mask, Operand&);
  bool are(uint32_t mask, const ErrorKind*, ErrorKind);
  bool are_plain(const Warp&, const Facts&, int count) const;
  void note_reads(const Signature&, Facts&) const;
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
  void end_reached(Places&, uint32_t bytes) const;
  void overwrite(Places&, uint32_t bytes);
  void lose(Places&, uint32_t lanes, uint32_t bytes);
  void put_kind(Places& to, size_t half, ErrorKind) const;
  bool put_evenly(Places& to, const Places& from, size_t half) const;
  bool put_whole(Places& to, Places& from, size_t half) const;
  void put_lanes(Places& to, Places& from, size_t half) const;
  void put(Places& to, Places& from, uint32_t bytes);
  void put_byte(Places& to, Places& from) const;
  void move(Warp&, const TransferRow&);

  void prepare_arithmetic(Warp&, const Op&, uint32_t mask);
  void arithmetic(Warp&, const Op&, uint32_t mask);
  void finish(Warp&, const Op&, int half, ErrorKind, Sources, Result&, uint32_t mask);
  void note_amplified(const Warp&, const Op&, ErrorKind, Sources, const Result&, uint32_t mask);
  void widen(const Op&, Sources, Result&, uint32_t mask) const;
  void limit(const Op&, Sources, Result&, uint32_t mask) const;
  void carry_parts(Warp&, const Op&, size_t first, Sources, Result&, uint32_t mask);
  const Result& exact_slopes(const Op&, Sources, Result&, Result& made) const;
  uint32_t keep(Warp&, const Op&, Slot, int half, ErrorKind, Result&, Sources, uint32_t mask);
  void keep_part(const Warp&, size_t first, int p, const double* part, uint32_t mask);
  void keep_sum_parts(const Warp&, const Op&, size_t first, const uint16_t* at, const double* const* parts,
                      const Result&);
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
  static bool is_chosen_integer(const Cells&, size_t at, double value);
  bool keep_float(Warp&, const Op&, int lane);
  void set_sign(Cells&, size_t at, double from, double made, bool fixed) const;
  void move_half(const Op&, const Cells&, size_t shadow, uint32_t word, size_t from, uint32_t made, size_t to,
                 bool fixed_sign);
  void note_cut(const Op&, Cells&, size_t cell, double cut, double value);
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
  std::vector<Facts> facts_;                  ///< by op
  const std::set<Slot>* shifters_ = nullptr;  ///< registers that round by being added (round_to_integer)
  std::vector<Recurrence> recurrences_;       ///< by op; of a trace that is not strict
  std::vector<ReturningRow> returning_;       ///< [warp][two for each that recurs]
  uint32_t recurring_ = 0;
  const LaneKit& kit_ = lane_kit();
  const ShadowKit& shadow_kit_ = shadow_kit();
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
  uint32_t lanes_ = 0;  ///< that lane_bytes_ are of: a byte of ones for each
  uint64_t lane_bytes_[4] = {};
  struct Fragments;
  /// Memory that one trace leaves to the next of its thread.
  struct Room {
    BlockCells<Cells, 2> cells;
    Cells scratch;  ///< on their way from register to register
    std::shared_ptr<Fragments> fragments;
  };
  static thread_local std::unique_ptr<Room> left_;
  std::unique_ptr<Room> room_;
  BlockCells<Cells, 2>& cells_;
  Cells& scratch_;
  std::shared_ptr<Fragments>& fragments_;
};

}  // namespace assay::vm
