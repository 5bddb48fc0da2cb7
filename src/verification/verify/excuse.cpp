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
  // Writes of a token stand before its heads.
  size_t heads = 2;
  while (heads + 1 < at.size() && !output.axes[heads].name.starts_with("H")) ++heads;
  return {sequence, token, at[heads], output.axes[heads].size};
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

/// Sequences that transitions lengthen, as if their states were lost by as much.
std::vector<LostState> all_lengthened(const std::vector<Lengthening>& all, int64_t value_heads) {
  std::vector<LostState> lost;
  for (const Lengthening& x : all)
    for (int64_t head = 0; head < value_heads; ++head) {
      if (head * x.heads / value_heads != x.head) continue;
      for (const bool adjoint : {false, true}) {
        LostState& state = lost.emplace_back();
        state.adjoint = adjoint, state.sequence = x.sequence, state.head = head;
        state.token = adjoint ? x.back : x.token;
      }
    }
  return lost;
}

/// Is nothing unknown of an undecided element but a bound, and what the kernel gave a number?
bool lacks_only_a_bound(const ReferenceOutput& expected, const Tensor& got, size_t i) {
  return std::isfinite(expected.mid[i]) && std::isfinite(expected.rad[i]) && std::isinf(expected.bound[i]) &&
         std::isfinite(got.value(static_cast<int64_t>(i)));
}

/// Is the kernel's value a number wherever the right one is?
bool is_number_if_right(const ReferenceOutput& expected, const Tensor& got, size_t i) {
  return std::isfinite(got.value(static_cast<int64_t>(i))) || !std::isfinite(expected.mid[i]) ||
         !std::isfinite(expected.rad[i]);
}

using IsOpen = bool(const ReferenceOutput&, const Tensor& got, size_t element);

/// Are there undecided elements, and is each of them what `may_be` says and uses a lost state?
bool are_excused(const std::vector<LostState>& lost, IsOpen* may_be, const ResolvedCase& c,
                 const ProgramRun& run, const Judgement& judged, const Verification& v) {
  bool any = false;
  for (const OutputComparison& o : v.outputs)
    for (const ReferenceOutput& expected : judged.reference.outputs) {
      if (o.undecided == 0 || expected.name != o.name) continue;
      const Tensor& got = run.outcome.outputs.at(o.name);
      for (size_t i = 0; i < o.verdicts.size(); ++i) {
        if (o.verdicts[i] != ElementVerdict::undecided) continue;
        any = true;
        if (!may_be(expected, got, i)) return false;
        const Place at = stands_at(got, i, c.case_.cu_seqlens);
        if (std::none_of(lost.begin(), lost.end(), [&](const LostState& state) {
              return uses(state, judged.problem.sizes.HV, o.name, at);
            }))
          return false;
      }
    }
  return any;
}

}  // namespace

void excuse_growth(const ResolvedCase& c, const ProgramRun& run, const Judgement& judged,
                   const TensorMap& inputs, Verification& v) {
  const auto is_open = [](const OutputComparison& o) { return o.undecided > 0; };
  if (v.verdict != Verdict::undecided || std::none_of(v.outputs.begin(), v.outputs.end(), is_open)) return;
  const std::vector<Lengthening> all = lengthenings(*c.op, c.case_.cu_seqlens, inputs);
  if (!are_excused(all_lengthened(all, judged.problem.sizes.HV), is_number_if_right, c, run, judged, v))
    return;
  v.domain.push_back(describe(all.front().fault));
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
  if (!are_excused(lost, lacks_only_a_bound, c, run, judged, v)) return;
  v.domain.push_back(describe(*std::min_element(
      lost.begin(), lost.end(), [](const LostState& a, const LostState& b) { return a.tokens < b.tokens; })));
  decide(v);
}

}  // namespace assay
