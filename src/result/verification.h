// The result of one run as plain data. JSON is written from it and read back to it; renderers read only the
// JSON.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/program/outcome.h"
#include "src/base/vm/births.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/shadow_report.h"
#include "src/case/case.h"
#include "src/result/checkout.h"
#include "src/result/comparison.h"
#include "src/result/diagnosis.h"
#include "src/result/element_slice.h"
#include "src/result/formula.h"
#include "src/result/origin.h"
#include "src/result/program_check.h"
#include "src/result/rounding.h"
#include "src/result/suspect_line.h"
#include "src/result/verdict.h"

namespace assay {

/// A finding that shows a defect which another one of its run shows too: evidence of that.
struct SameDefect {
  std::string cause, sentence, replay, identity;
};
template <typename Io>
void fields(Io& io, SameDefect& x) {
  io.type("same_defect", "a further finding of the run that shows the same defect");
  ASSAY_FIELD(cause);
  ASSAY_FIELD(sentence);
  ASSAY_FIELD(replay);
  ASSAY_FIELD(identity);
}

struct Verification {  ///< one run: `assay verify`, a replay, a fuzz finding
  std::string kernel;
  Case case_;
  std::string token;
  std::string replay;  ///< the command that repeats the run: "assay replay TOKEN", or verify with its files
  std::string backend;
  std::string arithmetic;  ///< the kernel's declared arithmetic, one line
  Verdict verdict = Verdict::undecided;
  std::string cause;  ///< verdict kind / output / origin: what shrinking keeps
  /// Of the source line that the cause ends with: its shape (identity.h), and which line of that shape in its
  /// file it is; empty where its text is not there.
  std::string source_shape;
  std::vector<OutputComparison> outputs;
  std::optional<FormulaReport> formula;    ///< the outputs in exact arithmetic, where that was looked at
  std::optional<RoundingReport> rounding;  ///< whether the declared roundings explain the errors
  std::optional<PowerReport> power;        ///< what the verdicts would have seen
  /// Outputs that the inputs' file holds, in place of the kernel's, against the reference.
  std::vector<OutputComparison> expected_outputs;
  std::vector<ErrorStatistics> statistics;          ///< one per output, where asked for; not in the document
  std::vector<AccumulatedDecay> accumulated_decay;  ///< one per output that is a log decay
  std::vector<std::string> properties_failed;       ///< "same-bits-twice: o[...] differs ..."
  std::vector<std::string> domain;  ///< inputs outside the domain: "g[b=0,t=3,h=0,k=1] = 0.5: above 0"
  std::optional<Trap> trap;
  std::optional<Origin> origin;
  std::vector<OriginGroup> origins;   ///< every distinct origin, where asked for
  std::optional<ElementSlice> slice;  ///< what stands behind one element, where asked for
  std::vector<Diagnosis> diagnosis;
  std::vector<SuspectLine> lines;          ///< that may have made finite values wrong, the likeliest first
  std::optional<std::string> unexplained;  ///< of a finding whose explanation had no time, or not enough: why
  std::vector<ExponentRange> exponents;
  std::vector<BranchSides> branches;   ///< where the backend gives them; not written to JSON
  std::optional<std::string> partial;  ///< where only some blocks ran: which, and what is judged
  std::optional<CheckReport> checks;   ///< what the checking machine found, where it ran or should have
  std::optional<ShadowReport> shadow;  ///< the run beside exact arithmetic, where one was asked for
  uint64_t lane_instructions = 0;      ///< vm only
  double seconds_reference = 0, seconds_kernel = 0;
  std::optional<Triage> triage;  ///< where two engines ran
  int64_t bits_differ = -1;      ///< GPU against machine, where both ran; -1: not compared
  /// Where the kernel's first entry begins, where nothing more exact is known of a finding.
  std::optional<SourceLocation> entry;
  std::optional<CheckedProgram> program;  ///< of `assay check`: nothing is claimed, and no case was drawn
  std::vector<LineBirths> births;         ///< special values by the source line that made them
  std::vector<Repeat> repeats;            ///< in other orders, with other poison, on other architectures
  std::optional<Checkout> checkout;       ///< the sources that were tested, of a run by itself
  std::vector<SameDefect> also;           ///< further findings of a run that show the same defect
  std::optional<bool> known;              ///< an earlier run found it too; absent where no baseline was given
};
std::string identity_of(const Verification&);  // identity.h

template <typename Io>
void fields(Io& io, Verification& x) {
  io.type("finding");
  ASSAY_FIELD(kernel);
  io("case", x.case_);
  ASSAY_FIELD(token, "the case in one line; replays it");
  ASSAY_FIELD(replay, "the command that repeats the run");
  ASSAY_FIELD(backend);
  ASSAY_FIELD(arithmetic);
  ASSAY_FIELD(verdict);
  ASSAY_FIELD(cause, "verdict kind / output / origin; empty for a pass");
  ASSAY_LATER(source_shape,
              "of the line that the cause ends with: its text without what is changed for looks");
  ASSAY_FIELD(outputs);
  ASSAY_LATER(formula);
  ASSAY_LATER(rounding);
  ASSAY_LATER(power);
  ASSAY_LATER(expected_outputs, "outputs that the inputs' file holds, in place of the kernel's");
  ASSAY_FIELD(properties_failed);
  ASSAY_FIELD(domain, "inputs outside the operator's domain");
  ASSAY_FIELD(trap);
  ASSAY_FIELD(origin);
  ASSAY_LATER(accumulated_decay);
  ASSAY_LATER(origins);
  ASSAY_LATER(slice);
  ASSAY_FIELD(diagnosis);
  ASSAY_LATER(lines, "source lines that may have made finite values wrong, the likeliest first");
  ASSAY_LATER(unexplained,
              "of a finding whose explanation had no time, or not enough: why; its replay explains it");
  ASSAY_FIELD(exponents);
  ASSAY_LATER(partial, "where only some blocks ran: which, and what is judged");
  ASSAY_LATER(checks);
  ASSAY_LATER(shadow);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds_reference);
  ASSAY_FIELD(seconds_kernel);
  ASSAY_LATER(triage);
  ASSAY_FIELD(bits_differ, "elements that differ between GPU and machine; -1: not compared");
  ASSAY_LATER(entry, "where the kernel's first entry begins, of a finding whose place is not known better");
  ASSAY_LATER(program);
  ASSAY_LATER(births, "special values by the source line that made them");
  ASSAY_LATER(repeats, "the run in other orders, with other poison, on other architectures");
  ASSAY_LATER(checkout);
  ASSAY_LATER(also);
  ASSAY_LATER(known, "the baseline has it too; null: no baseline was given");
  io.made(
      "identity", [&] { return std::optional(identity_of(x)); },
      "what is the same for one finding in several runs: kernel, cause, diagnosis");
}

nlohmann::json to_json(const Verification&);
Verification verification_from_json(const nlohmann::json&);

/// Did it end, and with outputs? So may one that is out of the domain only for what no bound could decide.
inline bool was_run(const Verification& v) {
  return !v.trap && (v.verdict != Verdict::domain || !v.outputs.empty());
}

}  // namespace assay
