// The trace that carries exact shadows (error_shadow.h) beside a run of the engine.
//
// What travels unchanged (transfer.h) carries its shadow. Arithmetic rows follow Row::real; tensor-core sums
// are exact dot products. Elsewhere the shadow ends and starts anew, without error, from the machine's value:
// - integer operations on the bits of floats, unless they move a half or a word (bf16 -> f32 by a shift,
//   selection by masks) or round the float (a mask that cuts, the addition before it);
// - conversions to and from integers and rounding to integral values: the exact run takes the machine's
//   integers, as it takes the machine's branches and selections;
// - atomics;
// - values that are not finite.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/error_shadow.h"
#include "src/base/vm/matrix_form.h"
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
  std::vector<uint64_t> roundings;  ///< by op: lanes whose own rounding was not zero
  std::vector<double> largest;      ///< by op: largest |own rounding| / |result|
  std::vector<EdgeSeen> edges;      ///< by op: what may leave its range (shadow_edges.h)
  Parting first;                    ///< in the order of blocks, then of execution
  uint64_t ended = 0;               ///< shadows that ended at a value that is not finite
  /// Comparisons that exact operands would decide the other way (ErrorPlan::strict), and those of them that
  /// decide more than selections.
  uint64_t turned = 0, branches_turned = 0;
  uint64_t longest = 0;  ///< warp instructions of a block, at most
};

/// What the traces of a launch share.
template <int parts_count>
struct ErrorPlan {
  ErrorMemory<parts_count>* memory = nullptr;
  double parting = 0;
  std::vector<int> part_of_op;  ///< by op: the part its roundings enter, -1: none is followed
  /// Immediates that stand for another number, and what they lack of it.
  std::vector<std::pair<Slot, double>> offsets;
  /// What comes of rounded values and no shadow follows has an infinite bound; comparisons are watched.
  bool strict = false;
  /// By op, where bounds are to follow something else than roundings: what the result may be off by, as a
  /// share of its product (exact_run.cpp). Empty: roundings.
  std::vector<double> inexact_share;
};

template <int parts_count>
class ErrorTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after | hook::landed;
  explicit ErrorTrace(const ErrorPlan<parts_count>& plan) : plan_(plan) {}

  void begin_block(Block&);
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
  /// What an op's signature says, found once.
  struct Facts {
    enum class Route : uint8_t { none, clear, lose, carry, arithmetic, bits, compare, atomic, matrix };
    Route route = Route::none;
    EdgeKind edge = EdgeKind::none;
    bool adds = false;  ///< add, sub or fma of f32 or f64
    int arity = 0;
    bool only_selects = false;  ///< of a comparison: nothing but selections reads its predicate
  };
  using Cells = ErrorCells<parts_count>;
  /// A source of the running op.
  struct Operand {
    const double *error, *bound;  ///< in the cells, in `copied`, or zeros
    bool exact = true;            ///< no lane carries a shadow: errors and bounds are zero, parts unset
    alignas(64) double value[32], copied[2][32];
    float parts[32][parts_count ? parts_count : 1];
    void be_exact() {
      static constexpr double zeros[32] = {};
      error = bound = zeros, exact = true;
    }
  };
  struct Result {
    alignas(64) double value[32], local[32], error[32], bound[32], slope[3][32];
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
  void clear(Warp&, Slot, int halves, uint32_t mask);
  void clear(Warp&, const Op&, uint32_t mask);
  static void lose(Cells&, size_t at);
  void lose(Warp&, const Op&, uint32_t mask);
  void compare(Warp&, const Op&, uint32_t mask);
  void prepare_select(Warp&, const Op&);
  void note_select(Warp&, const Op&, uint32_t mask);
  template <class Visit>
  void each_place(Warp&, const PlaceRow&, uint32_t mask, bool to_write, Visit);
  static void overwrite(const Places&, uint32_t bytes);
  static void put(const Places& to, const Places& from, uint32_t bytes);
  void move(Warp&, const TransferRow&);

  void prepare_arithmetic(Warp&, const Op&);
  void arithmetic(Warp&, const Op&, uint32_t mask);
  void finish(Warp&, const Op&, int half, ErrorKind, int arity, const int* which, Result&, uint32_t mask);
  void keep(Warp&, const Op&, Slot, int half, ErrorKind, Result&, uint32_t mask);
  void round_to_integer(const int* which, int arity, ErrorKind kind, Result& r) const;
  void note_argument(const Op&, uint32_t mask);
  void prepare_bits(Warp&, const Op&);
  void bits(Warp&, const Op&, uint32_t mask);
  bool is_moved(const Op&, size_t source, size_t from, size_t to, int lane);
  bool keep_rounded(Warp&, const Op&, int lane);
  void carry(Warp&, const Op&, uint32_t mask);
  void atomic(Warp&, const Op&, uint32_t mask);
  void prepare_matrix(Warp&, const Op&);
  void matrix(Warp&, const Op&);
  void matrix_tile(Warp&, const Op&, const MatrixForm&, int block, int tile);
  void gather_shared(const Warp&, uint64_t at, Element, Operand&);
  void gather_element(Warp&, Slot, Element, int i, Operand&);
  static bool carries_errors(const MatrixForm& form) {
    return !format_of(form.sum).integer && form.sum != Element::f64;
  }

  const ErrorPlan<parts_count>& plan_;
  const Code* code_ = nullptr;
  Block* block_ = nullptr;
  uint64_t order_ = 0;
  size_t area_hint_ = 0;
  std::vector<Facts> facts_;  ///< by op
  BlockCells<Cells, 2> cells_;
  std::array<Operand, 6> operands_;  ///< three per half
  /// Sources of bit operations that carry shadows, and cells that a move or pack may overwrite.
  bool bits_carry_ = false;
  std::array<std::array<uint32_t, 32>, 3> words_{};
  /// What the running op makes where one half of one source has all its bits inverted: [source][half].
  std::array<std::array<std::array<uint32_t, 32>, 2>, 3> inverted_{};
  uint32_t inverted_known_ = 0;
  std::map<std::pair<uint32_t, Slot>, uint32_t> turned_;  ///< (warp, predicate): lanes of the last comparison
  uint32_t select_turned_ = 0;    ///< lanes in which the running selection should give the other operand,
  std::array<double, 32> other_;  ///< and what that is, exactly
  Cells scratch_;                 ///< on their way from register to register
  struct Fragments;
  std::shared_ptr<Fragments> fragments_;
};

extern template class ErrorTrace<0>;
extern template class ErrorTrace<16>;

}  // namespace assay::vm
