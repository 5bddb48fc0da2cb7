// What the checking machine, a trap or a property says by itself: one row per cause.
#include "src/verification/diagnosis/causes/failed_checks.h"

#include <algorithm>

namespace assay {
namespace {

struct Row {
  const char *name, *summary;
  std::vector<std::string_view> kinds;  ///< of traps, check findings and origins
  const char* advice;
  std::vector<std::string_view> properties = {};  ///< whose failure says the same
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"data-race",
       "threads or blocks reach the same memory without waiting for each other",
       {"race", "warp-race", "ended-block", "async-copy-race", "wgmma-race", "bulk-copy-race", "proxy-fence",
        "mbarrier-phase"},
       "put a barrier between the two, or give each its own memory",
       {"no-races", "same-bits-twice", "same-bits-twice-on-peer"}},
      {"index-wrap",
       "an index wraps around at 32 bits",
       {"index-wrap"},
       "compute the offset in 64 bits",
       {"no-index-wrap"}},
      {"out-of-bounds",
       "an access outside its tensor, workspace or variable",
       {"out-of-bounds"},
       "check the bound of the index, and what the memory was sized for",
       {"stays-in-variables"}},
      {"misaligned-access",
       "a vector access at an address that is not a multiple of its size",
       {"misaligned"},
       "vector accesses need rows that are whole multiples of the vector"},
      {"unwritten-value",
       "an output depends on memory or a register that nothing wrote, or was never stored",
       {"unwritten-output", "never-written", "unwritten-branch", "unwritten-address", "unwritten-tensor-core",
        "unwritten-read", "unwritten-memory"},
       "check the boundary condition of the store or load named",
       {"reads-written-values"}},
      {"hang", "the run does not end", {"hang"}, "a loop or a wait whose condition never comes true"},
      {"barrier-misuse",
       "a barrier that not every thread reaches",
       {"barrier"},
       "every thread of the block, or as many as are named, must arrive"},
      {"launch-refused",
       "a grid, block or shared memory beyond what a GPU launches",
       {"launch"},
       "check the limits of each axis: 65535 blocks along y and z"},
      {"future-token-included", "a later token is read", {}, "check the causal mask", {"causality"}},
      {"sequence-boundary-ignored",
       "packed sequences differ from separate ones",
       {},
       "check which offsets a sequence starts and ends at",
       {"packed-equals-separate"}},
      {"operand-of-another-head",
       "heads or sequences are not independent of their order",
       {},
       "check the offset of the head and of the sequence",
       {"heads-permute"}},
      {"state-handed-on-differs",
       "a run split in two and resumed from its state differs from the run in one",
       {},
       "check how the initial state enters and the final state leaves",
       {"split-and-resume"}},
      {"absent-argument-mistreated",
       "an absent argument is not what its neutral value is",
       {},
       "check the branch without the argument",
       {"absent-equals-zero-gate", "absent-equals-zero-state", "absent-equals-zero-cotangent"}},
      {"scale-not-proportional",
       "doubling the scale does not double the results",
       {},
       "check where the scale enters",
       {"power-of-two-scale"}},
      {"positive-decay-exponent",
       "an exponential of a log decay had a positive argument",
       {},
       "a decay is never above 1: the rows or the anchor of this exponential are in the wrong order",
       {"exponents-nonpositive"}}};
  return all;
}

/// As the machine's memory calls it; what such an access lacks is no bound.
constexpr std::string_view kAbsent = "the null pointer of an absent argument";
constexpr const char* kAdviceOnAbsent =
    "an optional input that the case lacks is read: test its pointer; in a plan of your own \"absent\": "
    "\"zeros\" "
    "gives zeros in its place, and \"accepts\": \"has_g\" leaves out the cases without g";

bool is_at(const SourceLocation& where, const SourceLocation& other) {
  return where.line == other.line && where.file == other.file;
}

/// Was the non-finite value made, or handed on, where the check saw its fault? One that came from outside
/// arithmetic may come from anywhere.
bool is_of_origin(const CheckFinding& finding, const Origin& origin) {
  const bool made = origin.kind != OriginKind::unwritten_memory && origin.kind != OriginKind::input &&
                    origin.kind != OriginKind::literal && origin.kind != OriginKind::beyond;
  const auto meets = [&](const SourceLocation& where) {
    return is_at(where, origin.where) ||
           std::any_of(origin.chain.begin(), origin.chain.end(),
                       [&](const ChainLink& link) { return is_at(where, link.where); });
  };
  return !made || meets(finding.at.where) || (finding.other && meets(finding.other->where));
}

Diagnosis judge(const Row& row, const Evidence& e) {
  Diagnosis d;
  const auto is_of = [&](std::string_view kind) {
    return std::find(row.kinds.begin(), row.kinds.end(), kind) != row.kinds.end();
  };
  d.explanation = row.advice;
  // A trap and what the checking machine saw are the fault itself; values that fit a meaning only point to
  // one.
  constexpr double kSeen = 0.99, kPartOfIt = 0.9, kBeside = 0.2;
  if (e.trap && is_of(name_of(e.trap->kind))) {
    d.score = kSeen;
    d.evidence.push_back(e.trap->message);
    if (e.trap->message.find(kAbsent) != std::string::npos) d.explanation = kAdviceOnAbsent;
  }
  if (e.trace && is_of(name_of(e.trace->origin.kind))) {
    d.score = std::max(d.score, kPartOfIt);
    d.evidence.push_back(e.trace->origin.sentence);
  }
  for (const std::string& failure : e.properties ? *e.properties : std::vector<std::string>{}) {
    const std::string name = failure.substr(0, failure.find(':'));
    if (std::find(row.properties.begin(), row.properties.end(), name) == row.properties.end()) continue;
    d.score = std::max(d.score,
                       row.kinds.empty() ? 0.55 : kPartOfIt);  // other properties only show that there is one
    if (d.evidence.size() < 4) d.evidence.push_back(failure);
  }
  if (!e.checks) return d;
  for (const CheckFinding& finding : e.checks->findings)
    if (is_of(name_of(finding.kind))) {
      const bool beside = e.trace && !is_of_origin(finding, e.trace->origin);
      d.score = std::max(d.score, beside ? kBeside : kSeen);
      if (beside && d.against.empty())
        d.against.push_back("the value that is not finite was made elsewhere, from values that are");
      if (d.evidence.size() < 4) d.evidence.push_back(finding.message);
    }
  return d;
}

}  // namespace

std::vector<Cause> failed_checks() {
  std::vector<Cause> causes;
  for (const Row& row : rows())
    causes.push_back({row.name, row.summary, [&row](const Evidence& e) { return judge(row, e); }});
  return causes;
}

}  // namespace assay
