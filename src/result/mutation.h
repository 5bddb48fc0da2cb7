// The result of a mutation run as plain data, and its JSON.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/program/outcome.h"

namespace assay {

/// What became of a mutant.
enum class MutantOutcome : uint8_t {
  killed,        ///< its verdict differs from the kernel's on some case
  within_bound,  ///< its bits differ on some case, nothing else does
  equivalent,    ///< same bits on all cases, and an argument why
  survived,      ///< same bits on all cases
  untried,       ///< the time ran out before it was classified
};
constexpr std::array<std::string_view, 5> names_of(MutantOutcome) {
  return {"killed", "within-bound", "equivalent", "survived", "untried"};
}

struct Mutant {
  std::string id;      ///< KERNEL%id is a kernel (kernels/mutant.h)
  std::string change;  ///< the operator
  SourceLocation where;
  std::string source_text;
  std::string original,
      replacement;  ///< instructions; the replacement is empty where nothing takes its place
  MutantOutcome outcome = MutantOutcome::untried;
  /// killed: the cause of the verdict; equivalent: the argument; survived: how far the change got.
  std::string reason;
  std::string
      token;  ///< killed, within-bound: of the case that shows it; empty where a property did on other inputs
  int64_t cases = 0;       ///< that it ran on
  int64_t reached_by = 0;  ///< cases in which the instruction is executed
};

template <typename Io>
void fields(Io& io, Mutant& x) {
  ASSAY_FIELD(id, "KERNEL%id is a kernel");
  ASSAY_FIELD(change);
  ASSAY_FIELD(where);
  ASSAY_FIELD(source_text);
  ASSAY_FIELD(original);
  ASSAY_FIELD(replacement, "empty: nothing");
  ASSAY_FIELD(outcome);
  ASSAY_FIELD(reason);
  ASSAY_FIELD(token, "of the kernel's case that shows it; empty: none does");
  ASSAY_FIELD(cases);
  ASSAY_FIELD(reached_by);
}

struct MutationCount {
  std::string change;
  int64_t killed = 0, within_bound = 0, equivalent = 0, survived = 0;
};

template <typename Io>
void fields(Io& io, MutationCount& x) {
  ASSAY_FIELD(change);
  ASSAY_FIELD(killed);
  ASSAY_FIELD(within_bound);
  ASSAY_FIELD(equivalent);
  ASSAY_FIELD(survived);
}

struct MutationRun {
  std::string kernel, backend;
  uint64_t seed = 0;
  int64_t asked = 0;     ///< mutants
  int64_t possible = 0;  ///< changes there are
  int64_t places = 0;    ///< pairs of source line and operator among them
  int64_t cases = 0;
  int64_t instructions = 0,
          instructions_reached = 0;  ///< of the functions that are launched; executed by a case
  double seconds = 0;
  std::vector<std::string> set_aside;  ///< cases that the kernel itself does not pass, with their causes
  std::vector<Mutant> mutants;
};

int64_t count_of(const MutationRun&, MutantOutcome);
/// Killed of killed and survived, in percent; 0 where there are none.
double score_of(const MutationRun&);
/// By operator, those that occur.
std::vector<MutationCount> counts_by_change(const MutationRun&);

template <typename Io>
void fields(Io& io, MutationRun& x) {
  io.type("", "assay mutate: what became of single changed instructions");
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(asked);
  ASSAY_FIELD(possible);
  ASSAY_FIELD(places, "pairs of source line and change");
  ASSAY_FIELD(cases);
  ASSAY_FIELD(instructions);
  ASSAY_FIELD(instructions_reached);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(set_aside);
  io.made("killed", [&] { return count_of(x, MutantOutcome::killed); });
  io.made("within_bound", [&] { return count_of(x, MutantOutcome::within_bound); });
  io.made("equivalent", [&] { return count_of(x, MutantOutcome::equivalent); });
  io.made("survived", [&] { return count_of(x, MutantOutcome::survived); });
  io.made(
      "score", [&] { return score_of(x); },
      "killed of killed and survived, in percent; 0 where there are none");
  io.made("changes", [&] { return counts_by_change(x); });
  ASSAY_FIELD(mutants);
}

nlohmann::json to_json(const MutationRun&);

}  // namespace assay
