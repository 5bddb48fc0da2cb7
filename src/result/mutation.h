// The result of a mutation run as plain data, and its JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/plan/outcome.h"

namespace assay {

/// What became of a mutant.
inline constexpr const char* kKilled = "killed";  ///< its verdict differs from the kernel's on some case
inline constexpr const char* kWithinBound =
    "within-bound";                                       ///< its bits differ on some case, nothing else does
inline constexpr const char* kEquivalent = "equivalent";  ///< same bits on all cases, and an argument why
inline constexpr const char* kSurvived = "survived";      ///< same bits on all cases
inline constexpr const char* kUntried = "untried";        ///< the time ran out before it was classified

struct Mutant {
  std::string id;      ///< KERNEL%id is a kernel (kernels/mutant.h)
  std::string change;  ///< the operator
  SourceLocation where;
  std::string source_text;
  std::string original,
      replacement;  ///< instructions; the replacement is empty where nothing takes its place
  std::string outcome;
  /// killed: the cause of the verdict; equivalent: the argument; survived: how far the change got.
  std::string reason;
  std::string
      token;  ///< killed, within-bound: of the case that shows it; empty where a property did on other inputs
  int64_t cases = 0;       ///< that it ran on
  int64_t reached_by = 0;  ///< cases in which the instruction is executed
};

struct MutationCount {
  std::string change;
  int64_t killed = 0, within_bound = 0, equivalent = 0, survived = 0;
};

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

int64_t count_of(const MutationRun&, const char* outcome);
/// Killed of killed and survived, in percent; 100 where there are none.
double score_of(const MutationRun&);
/// By operator, those that occur.
std::vector<MutationCount> counts_by_change(const MutationRun&);

nlohmann::json to_json(const MutationRun&);

}  // namespace assay
