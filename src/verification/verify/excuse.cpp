#include "src/verification/verify/excuse.h"

#include <algorithm>
#include <cmath>

#include "reference/domain.h"
#include "reference/safe_range.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Where in its case an element stands. Of a state: which of a sequence, `token` -1.
struct Place {
  int64_t sequence, token, head, heads;
};

Place stands_at(const Tensor& output, size_t element, const std::vector<int64_t>& cu_seqlens) {
  const std::vector<int64_t> at = output.index(static_cast<int64_t>(element));
  if (output.axes[1].name != "T") return {at[0], -1, at[1], output.axes[1].size};
  const int64_t token = at[0] * output.axes[1].size + at[1];
  int64_t sequence = at[0];
  if (!cu_seqlens.empty())
    sequence = std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), token) - cu_seqlens.begin() - 1;
  return {sequence, token, at[2], output.axes[2].size};
}

/// Does an element use the state or adjoint that is lost? o and final_state use states, dinitial_state
/// adjoints, dq the state that its token reads, other gradients both.
bool uses(const LostState& lost, int64_t value_heads, const std::string& output, const Place& at) {
  if (lost.sequence != at.sequence || lost.head * at.heads / value_heads != at.head) return false;
  const bool gradient = output.starts_with("d");
  if (at.token < 0) return lost.adjoint == gradient;
  if (lost.adjoint) return gradient && output != "dq" && at.token <= lost.token;
  return at.token >= lost.token;
}

std::vector<LostState> all_lost(const ResolvedCase& c, const Problem& problem, const TensorMap& inputs) {
  const std::vector<int64_t>& cu_seqlens = c.case_.cu_seqlens;
  std::vector<LostState> all;
  if (c.forward()) all = lost_states(*c.op, problem.arithmetic, cu_seqlens, inputs);
  if (!c.backward()) return all;
  for (const auto& more : {lost_states(*c.op, problem.adjoint.state, cu_seqlens, inputs),
                           lost_adjoints(*c.op, problem.adjoint.adjoint, cu_seqlens, inputs, problem.scale)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Is nothing unknown of an undecided element but a bound, and what the kernel gave a number?
bool lacks_only_a_bound(const ReferenceOutput& expected, const Tensor& got, size_t i) {
  return std::isfinite(expected.mid[i]) && std::isfinite(expected.rad[i]) && std::isinf(expected.bound[i]) &&
         std::isfinite(got.value(static_cast<int64_t>(i)));
}

/// Has the output undecided elements, and does each of them use a lost state?
bool is_excused(const OutputComparison& o, const ReferenceOutput& expected, const Tensor& got,
                const std::vector<LostState>& lost, const ResolvedCase& c, int64_t value_heads) {
  for (size_t i = 0; i < o.verdicts.size(); ++i) {
    if (o.verdicts[i] != ElementVerdict::undecided) continue;
    if (!lacks_only_a_bound(expected, got, i)) return false;
    const Place at = stands_at(got, i, c.case_.cu_seqlens);
    if (std::none_of(lost.begin(), lost.end(),
                     [&](const LostState& state) { return uses(state, value_heads, o.name, at); }))
      return false;
  }
  return true;
}

}  // namespace

void excuse_growth(const ResolvedCase& c, const TensorMap& inputs, Verification& v) {
  if (v.verdict != Verdict::undecided) return;
  const auto fault = lengthening(*c.op, c.case_.cu_seqlens, inputs);
  if (!fault) return;
  v.domain.push_back(describe(*fault));
  decide(v);
}

void excuse_lost_states(const ResolvedCase& c, const ProgramRun& run, const Judgement& judged,
                        const TensorMap& inputs, Verification& v) {
  if (v.verdict != Verdict::undecided || run.written) return;
  std::vector<const OutputComparison*> open;
  for (const OutputComparison& o : v.outputs)
    if (o.undecided > 0) open.push_back(&o);
  if (open.empty() || !std::all_of(open.begin(), open.end(),
                                   [&](const OutputComparison* o) { return formula_is_right(v, *o); }))
    return;
  const std::vector<LostState> lost = all_lost(c, judged.problem, inputs);
  if (lost.empty()) return;
  for (const OutputComparison* o : open)
    for (const ReferenceOutput& expected : judged.reference.outputs)
      if (expected.name == o->name &&
          !is_excused(*o, expected, run.outcome.outputs.at(o->name), lost, c, judged.problem.sizes.HV))
        return;
  v.domain.push_back(describe(*std::min_element(
      lost.begin(), lost.end(), [](const LostState& a, const LostState& b) { return a.tokens < b.tokens; })));
  decide(v);
}

}  // namespace assay
