// The recording machine's trace: hooks that keep shadow cells beside every register and memory half and log
// the instruction instances whose results are not finite. Blocks run one after another, so that the log has
// one order.
//
// What travels unchanged (moves, packing, loads, stores, shuffles, ldmatrix, cp.async, the chosen side of a
// select) carries its cells along; arithmetic unites what its sources depend on and, where its result is not
// finite, logs an event.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/event_log.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/provenance.h"
#include "src/base/vm/recording.h"
#include "src/base/vm/shadow.h"
#include "src/base/vm/trace.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// How an op moves shadow cells; found once per op.
enum class Passage : uint8_t {
  none,
  clear,
  arithmetic,
  packed_convert,
  results,
  move,
  pack,
  unpack,
  bits,
  shift_halves,
  select,
  load,
  store,
  atomic,
  shuffle,
  matrix,
  load_matrix,
  store_matrix,
  move_matrix
};

/// Input elements listed per event; of more, the nearest ones.
inline constexpr size_t kListedElements = 256;

/// What a run leaves behind; shared with the Recording that reads it.
struct RecordedRun {
  struct Site {
    int32_t launch, module, function, instruction;
  };
  EventLog log;
  Provenance provenance;
  MemoryShadow memory;
  std::vector<Site> sites;
  std::vector<Launch> launches;
  std::vector<std::shared_ptr<const ptx::Module>> modules;
  /// Leaf numbers: input ordinal by its first leaf, ascending.
  struct LeafRange {
    uint32_t first;
    int32_t input;
  };
  std::vector<LeafRange> leaves;
  std::vector<std::string> input_names;
  /// Event whose dependences are collected at the moment it is logged (-1: none), before newer unions
  /// displace them.
  int32_t watched = -1;
  std::optional<Provenance::Elements> watched_elements;
};

/// A Recording that reads `run` and keeps it alive.
Recording make_recording(std::shared_ptr<const RecordedRun> run);

class Recorder {
 public:
  static constexpr bool enabled = true;
  explicit Recorder(std::shared_ptr<RecordedRun> run) : run_(std::move(run)) {}

  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  void copied_local(Warp&, uint32_t mask, uint32_t from, uint32_t to, uint32_t bytes);
  void end_block(Block&) {}
  /// The watched event has been logged: later blocks say nothing more about it.
  bool finished() const { return run_->watched_elements.has_value(); }

 private:
  using Cells = std::vector<ShadowCell>;
  struct WarpShadow {
    Cells registers, local;
  };

  /// What an op's row and opcode say, found once.
  struct OpFacts {
    Passage passage = Passage::none;
    uint8_t word_sources = 0, wide_sources = 0;  ///< bit i: source i is a cell of that width
    bool wide_result = false;
    enum class Bits : uint8_t {
      mixed,
      by_half,
      masking,
      permute,
      shift_left,
      shift_right
    } bits = Bits::mixed;
  };
  static OpFacts facts_of(const Code&, const Op&);
  const OpFacts& facts(const Op& op) const { return current_->ops[op_index(op)]; }
  int32_t site(const Op&);
  size_t op_index(const Op& op) const { return static_cast<size_t>(&op - code_->ops.data()); }
  /// First of the two (word) or four (wide) halves of a register cell.
  ShadowCell* cells(const Warp& warp, Slot slot, int lane, bool wide = false) {
    return &shadow_[warp.index].registers[2 * (slot / 4 + static_cast<size_t>(wide ? 2 * lane : lane))];
  }
  Dependence dependence(const Warp&, Slot, int lane, bool wide);
  Tag tag(const Warp&, Slot, int lane, bool wide);
  Tag log(const LoggedEvent&, const LoggedOperand*, int count);
  LoggedEvent event_at(const Warp&, const Op&, int lane);

  // recorder_values.cpp
  void arithmetic(Warp&, const Op&, uint32_t mask);
  void log_results(Warp&, const Op&, uint32_t mask, const Dependence* united);
  Tag log_result(Warp&, const Op&, int lane, int half, Dependence united);
  void packed_convert(Warp&, const Op&, uint32_t mask);
  void bits(Warp&, const Op&, uint32_t mask);
  ShadowCell bits_of_half(Warp&, const Op&, const OpFacts&, int lane, int to);
  void shift_halves(Warp&, const Op&, uint32_t mask);
  void move(Warp&, const Op&, uint32_t mask);
  void select(Warp&, const Op&, uint32_t mask);
  void pack(Warp&, const Op&, uint32_t mask);
  void unpack(Warp&, const Op&, uint32_t mask);
  void shuffle(Warp&, const Op&, uint32_t mask);
  void move_matrix(Warp&, const Op&);
  void clear(Warp&, const Op&, uint32_t mask);
  // recorder_memory.cpp
  ShadowCell read_half(Warp&, int lane, uint64_t address, ptx::Space space);
  void write_half(Warp&, int lane, uint64_t address, ptx::Space space, ShadowCell, int32_t writer);
  void load(Warp&, const Op&, uint32_t mask);
  void store(Warp&, const Op&, uint32_t mask);
  void before_atomic(Warp&, const Op&, uint32_t mask);
  void atomic(Warp&, const Op&, uint32_t mask);
  ShadowCell added(Warp&, const Op&, int lane, int half, uint64_t old, uint64_t sum, ShadowCell old_cell,
                   ShadowCell operand);
  void load_matrix(Warp&, const Op&, uint32_t mask);
  void store_matrix(Warp&, const Op&, uint32_t mask);
  // recorder_matrix.cpp
  struct MatrixTerm;
  struct MatrixTerms;
  ShadowCell united(const ShadowCell* first, int bits);
  MatrixTerm matrix_term(const Warp&, const Op&, Element, const ElementPlace&);
  void before_matrix(const Warp&, const Op&);
  void matrix(Warp&, const Op&);
  Tag log_sum(Warp&, const Op&, const MatrixTerms&, int row, int column, int lane, uint64_t result,
              Dependence);

  std::shared_ptr<RecordedRun> run_;
  const Code* code_ = nullptr;
  int32_t launch_ = 0, module_ = 0;
  Block* block_ = nullptr;
  std::vector<WarpShadow> shadow_;
  Cells shared_;
  /// Facts and sites of each op, by code; a site belongs to one launch.
  struct CodeFacts {
    std::vector<OpFacts> ops;
    std::vector<int32_t> sites;
    int32_t launch = -1;
  };
  std::unordered_map<const Code*, CodeFacts> facts_;
  CodeFacts* current_ = nullptr;
  /// Source values of the op that runs, kept before it may overwrite them.
  std::array<std::array<uint64_t, 32>, 4> before_{};
  std::vector<std::array<uint32_t, 32>> before_slots_;
  std::vector<std::array<uint64_t, 32>> before_wide_slots_;
};

}  // namespace assay::vm
