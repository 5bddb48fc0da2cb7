// The recording machine's trace: hooks that keep the provenance of every register and memory half beside it
// and log the instruction instances whose results are not finite. Blocks run one after another, so that the
// log has one order.
//
// What travels unchanged (transfer.h) carries its cells along; arithmetic unites what its sources depend on
// and, where its result is not finite, logs an event.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/base/vm/code.h"
#include "src/base/vm/event_log.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/provenance_memory.h"
#include "src/base/vm/recording.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {

/// Input elements listed per event; of more, the nearest ones.
inline constexpr size_t kListedElements = 256;

/// What a run leaves behind; shared with the Recording that reads it.
struct RecordedRun {
  struct Site {
    int32_t launch, module, function, instruction;
  };
  EventLog log;
  Provenance provenance;
  ProvenanceMemory memory;
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

class Recorder : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after | hook::landed;
  static constexpr double nanoseconds = 400;
  explicit Recorder(std::shared_ptr<RecordedRun> run) : run_(std::move(run)) {}

  void begin_block(Block&);
  void before(Warp&, const Op&, uint32_t mask);
  void after(Warp&, const Op&, uint32_t mask);
  void landed(Warp&, const Landing&);
  /// The watched event has been logged: later blocks say nothing more about it.
  bool finished() const { return run_->watched_elements.has_value(); }

 private:
  using Cells = BlockCells<CellArray<ProvenanceCell>, 2>;

  /// What an op's signature says, found once.
  struct OpFacts {
    /// Before the op: keeps the values that it may overwrite, or says what its results come of; after it: the
    /// latter, where their values matter.
    void (Recorder::*keep)(const Warp&, const Op&, uint32_t mask) = nullptr;
    void (Recorder::*pass)(const Warp&, const Op&, uint32_t mask) = nullptr;
    uint8_t sources = 0;          ///< bit i: source i is a value
    std::array<int, 4> halves{};  ///< of each source
    int result_halves = 2;
    /// Of arithmetic: half `from` of a source takes part in half `to` of the result.
    bool reaches(int source, int from, int to) const {
      return reach[static_cast<size_t>(source)][static_cast<size_t>(from)] >> to & 1;
    }
    HalfInfluence reach{};
    bool multiplies = false;  ///< sources 0 and 1, fp32
  };
  static OpFacts facts_of(const Code&, const Op&);
  const OpFacts& facts(const Op& op) const { return current_->ops[op_index(op)]; }
  int32_t site(const Op&);
  const Signature& signature(const Op& op) const { return code_->signature(op); }
  size_t op_index(const Op& op) const { return code_->index(op); }
  ProvenanceCell& cell(const Warp& warp, Slot slot, int half, int lane) {
    return cells_.registers(warp)[Cells::cell(slot, half, lane)];
  }
  ProvenanceCell unite(ProvenanceCell a, ProvenanceCell b) {
    return {a.tag ? a.tag : b.tag, run_->provenance.unite(a.dependence, b.dependence)};
  }
  ProvenanceCell read(const Warp&, const BytePlace&, int half);
  void write(const Warp&, const BytePlace&, int half, ProvenanceCell, int32_t writer);
  static LoggedOperand operand(uint64_t bits, ptx::Type type, int position, ProvenanceCell from, int k = 0) {
    return {bits, type, static_cast<uint8_t>(position), static_cast<uint8_t>(k), from.tag, from.dependence};
  }
  Tag log(LoggedEvent, LoggedOperand*, int count);
  LoggedEvent event_at(const Warp&, const Op&, int lane, ptx::Type, uint64_t result, Dependence);
  void clear(const Warp&, const Op&, uint32_t mask);

  // recorder_values.cpp
  void keep_sources(const Warp&, const Op&, uint32_t mask);
  void arithmetic(const Warp&, const Op&, uint32_t mask);
  Tag log_result(const Warp&, const Op&, int lane, int half, Dependence united);
  ProvenanceCell arriving(const Warp&, const Op&, int source, int lane, int half);
  void bits(const Warp&, const Op&, uint32_t mask);
  void log_chosen(const Warp&, const Op&, uint32_t mask);
  // recorder_memory.cpp
  void carry(const Warp&, const Op&, uint32_t mask);
  void keep_memory(const Warp&, const Op&, uint32_t mask);
  void atomic(const Warp&, const Op&, uint32_t mask);
  ProvenanceCell added(const Warp&, const Op&, int lane, int half, uint64_t old, uint64_t sum,
                       ProvenanceCell old_cell, ProvenanceCell operand);
  // recorder_matrix.cpp
  struct MatrixTerm;
  struct MatrixTerms;
  MatrixTerm matrix_term(const Warp&, const Op&, Element, const ElementPlace&);
  void keep_slots(const Warp&, const Op&, uint32_t mask);
  void matrix(const Warp&, const Op&, uint32_t mask);
  Tag log_sum(const Warp&, const Op&, MatrixTerms&, int row, int column, int lane, uint64_t result,
              Dependence);

  std::shared_ptr<RecordedRun> run_;
  const Code* code_ = nullptr;
  int32_t launch_ = 0, module_ = 0;
  Block* block_ = nullptr;
  Cells cells_;
  std::vector<ProvenanceCell> staged_;  ///< on their way from register to register
  /// Facts and sites of each op, by code; a site belongs to one launch.
  struct CodeFacts {
    std::vector<OpFacts> ops;
    std::vector<int32_t> sites;
    int32_t launch = -1;
  };
  std::unordered_map<const Code*, CodeFacts> facts_;
  CodeFacts* current_ = nullptr;
  /// Source values of the op that runs, kept before it may overwrite them.
  std::array<LaneBits, 4> before_{};
  std::vector<LaneBits> before_slots_;
};

}  // namespace assay::vm
