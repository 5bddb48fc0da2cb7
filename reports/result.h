// The result of one run as plain data. JSON is written from it and read back to it; renderers read only the
// JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/backend/backend.h"
#include "src/case/case.h"
#include "src/verification/compare/accumulated_decay.h"
#include "src/verification/compare/compare.h"
#include "src/verification/compare/error_statistics.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/shadow_report.h"

namespace assay {

inline constexpr int kResultSchema = 1;

struct OriginOperand {
  std::string name;  ///< register or immediate as written in the PTX
  std::string type;  ///< "f32", "bf16x2", ...
  double value = 0;
  uint64_t bits = 0;
};

struct InputElement {
  std::string element;  ///< "g[b=0,t=16,h=0,k=3]"
  double value = 0;
  std::string nearest_finite;  ///< "-88.2" where bisection found one, else empty
};

struct ChainLink {
  SourceLocation where;
  std::string instruction;
  std::string text;  ///< source line where it can be read
};

/// Where a non-finite value was born.
struct Origin {
  std::string element;  ///< the bad output element walked back from
  std::string kind;     ///< "exp-overflow", "zero-times-infinity", ...
  SourceLocation where;
  std::string source_text;
  std::string instruction;
  std::vector<OriginOperand> operands;
  double result = 0;
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<InputElement> inputs;
  bool inputs_truncated = false;
  std::vector<ChainLink> chain;  ///< origin first, output last
  /// Where an Inf operand of a NaN was itself made by arithmetic.
  std::optional<ChainLink> infinity_made_at;
  std::string sentence;  ///< one line a person reads first
};

/// One origin behind several non-finite elements, for `assay trace --all`.
struct OriginGroup {
  Origin origin;         ///< of the first such element
  int64_t elements = 0;  ///< non-finite output elements whose earliest origin has this kind and source line
  std::vector<std::string> outputs;  ///< "o 96", "final_state 12"
};

/// A step of the chain through a slice: the instance nearest the output of a run of instances on one source
/// line.
struct SliceStep {
  ChainLink at;
  std::vector<OriginOperand> operands;
  double result = 0;
  std::string type;  ///< of the result
  std::array<uint32_t, 3> block{}, thread{};
  int64_t times = 1;  ///< so many rounds of a loop over this step and its neighbours with the same count
};

/// All instances of a slice on one source line.
struct SliceLine {
  ChainLink at;  ///< the instruction with the most instances
  int64_t instances = 0;
  double smallest = 0, largest = 0;  ///< magnitudes of finite floating-point results
  std::vector<int64_t> from;         ///< lines (indices into ElementSlice::lines) that it took values from
};

/// What a slice read of one input.
struct SliceInput {
  std::string input;
  int64_t elements = 0;
  std::string first, last, largest;  ///< elements; largest: of greatest magnitude, NaN above all
  double value = 0;                  ///< of `largest`
};

struct SliceNodeOperand {
  std::string name, type;
  uint64_t bits = 0;
  int64_t made_by = -1;  ///< instance, or -1:
  std::string source;    ///< then "input", "literal" or "unwritten-memory"; else empty
  std::string input;     ///< element, of an input
};
struct SliceNode {
  int64_t line = 0;  ///< index into ElementSlice::lines
  std::string instruction, type;
  uint64_t bits = 0;
  double value = 0;  ///< of a floating-point result, else 0
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<SliceNodeOperand> operands;
};

/// The instruction instances behind one output element, finite or not.
struct ElementSlice {
  std::string element;
  double value = 0;
  int64_t instances = 0;
  bool truncated =
      false;  ///< the slice has more instances than were kept: the nearest to the output are here
  int64_t blocks = 0, blocks_of = 0;  ///< run again, of all blocks of the plan
  bool unwritten = false;             ///< memory or a register that nothing wrote takes part
  std::vector<SliceStep>
      chain;  ///< input first, output last: at each instance the operand that decides its size
  std::vector<SliceLine> lines;  ///< most instances first
  std::vector<SliceInput> inputs;
  std::vector<SliceNode> nodes;  ///< consumers before producers; all instances, or the first ones
};

struct Diagnosis {
  std::string cause;
  std::string explanation;
  double score = 0;
  std::vector<std::string> evidence;  ///< what speaks for it
  std::vector<std::string> against;   ///< and what against
};

/// Whose fault a finding is, where a GPU ran beside the machine.
struct Triage {
  /// "none", "kernel" (or its code generator), "compiler-or-hardware" (what was made of the PTX, or what runs it),
  /// "race", or "kernel and compiler-or-hardware".
  std::string fault;
  std::string explanation;            ///< one line
  std::vector<std::string> evidence;  ///< machine against reference, GPU against machine, GPU twice, races
};

struct Verification {  ///< one run: `assay verify`, a replay, a fuzz finding
  std::string kernel;
  Case case_;
  std::string token;
  std::string replay;  ///< the command that repeats the run: "assay replay TOKEN", or verify with its files
  std::string backend;
  std::string arithmetic;  ///< the kernel's declared arithmetic, one line
  std::string verdict;     ///< "pass" | "finding" | "undecided" | "domain"
  std::string cause;       ///< verdict kind / output / origin: what shrinking keeps
  std::vector<OutputComparison> outputs;
  /// Outputs that the inputs' file holds, in place of the kernel's, against the reference.
  std::vector<OutputComparison> expected_outputs;
  std::vector<ErrorStatistics> statistics;  ///< one per output, where asked for; not in the document
  std::vector<AccumulatedDecay> accumulated_decay;  ///< one per output that is a log decay
  std::vector<std::string> properties_failed;  ///< "same-bits-twice: o[...] differs ..."
  std::vector<std::string> domain;  ///< inputs outside the domain: "g[b=0,t=3,h=0,k=1] = 0.5: above 0"
  std::optional<Trap> trap;
  std::optional<Origin> origin;
  std::vector<OriginGroup> origins;   ///< every distinct origin, where asked for
  std::optional<ElementSlice> slice;  ///< what stands behind one element, where asked for
  std::vector<Diagnosis> diagnosis;
  std::vector<ExponentRange> exponents;
  std::vector<BranchSides> branches;  ///< where the backend gives them; not written to JSON
  std::optional<std::string> partial;  ///< where only some blocks ran: which, and what is judged
  std::optional<CheckReport> checks;   ///< what the checking machine found, where it ran or should have
  std::optional<ShadowReport> shadow;  ///< the run beside exact arithmetic, where one was asked for
  uint64_t lane_instructions = 0;      ///< vm only
  double seconds_reference = 0, seconds_kernel = 0;
  std::optional<Triage> triage;        ///< where two engines ran
  int64_t bits_differ = -1;  ///< GPU against machine, where both ran; -1: not compared
  /// Where the kernel's first entry begins, where nothing more exact is known of a finding.
  std::optional<SourceLocation> entry;
  std::optional<bool> known;  ///< an earlier run found it too; absent where no baseline was given
};

/// A fuzz run's tables.
struct CoverageRow {
  std::string feature, value;
  int64_t cases = 0;
};
struct TightnessRow {
  std::string kernel, output, dtype, decay, length_class;
  int64_t cases = 0;
  double max_ratio = 0, max_tightness = 0, max_relative_bound = 0;
};
struct PropertyRow {
  std::string name;
  int64_t checked = 0, failed = 0;
};

/// A finding of an earlier run whose case was run again, before anything was drawn.
struct RerunRow {
  std::string kernel, token;
  std::string outcome;  ///< its cause now, "pass", "domain", or why the case is not accepted any more
};
/// What an earlier run found and this one did not.
struct GoneFinding {
  std::string kernel, cause, token;
  std::string outcome;  ///< of running its case again (RerunRow), or "not rerun"
};
struct BaselineReport {
  std::string source;
  std::vector<GoneFinding> gone;
};

/// How much of what one kernel has to be reached was reached.
struct ReachedRow {
  std::string kernel;
  std::string what;  ///< "branch sides": of its guards; "inputs present": combinations of optional inputs
  int64_t reached = 0, of = 0;
};

struct FuzzRun {
  std::vector<std::string> kernels;
  std::string backend;
  uint64_t seed = 0;
  int64_t cases = 0, passed = 0, undecided = 0, domain = 0;
  double seconds = 0;
  std::vector<Verification> findings;  ///< shrunk
  std::vector<PropertyRow> properties;
  std::vector<CoverageRow> coverage;
  std::vector<TightnessRow> tightness;
  std::vector<ReachedRow> reached;
  std::vector<RerunRow> reruns;
  std::optional<BaselineReport> baseline;  ///< where one was given
  /// Why the run ended before its budget was spent, where something failed that is no finding: a full disk.
  std::string ended_early;
  std::string database_lost;  ///< why nothing more could be stored while it went on; else empty
};

nlohmann::json to_json(const Verification&);
Verification verification_from_json(const nlohmann::json&);
nlohmann::json to_json(const FuzzRun&);
FuzzRun fuzz_run_from_json(const nlohmann::json&);

}  // namespace assay
