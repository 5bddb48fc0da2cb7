#include "fuzz/generator.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fuzz/choice.h"
#include "fuzz/cost.h"
#include "fuzz/dimensions.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/draw_on_demand.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

/// Lane instructions one run of this case may take.
double draw_budget() {
  return pick<double>({{60, 6e6}, {32, 2e7}, {7, 5e7}, {1, 1.2e8}});
}

int64_t halved(int64_t n) {
  return (n + 1) / 2;
}

/// Smaller heads, batch and widths, then fewer whole chunks, until the case is cheap enough. The partial
/// chunk stays.
void fit_cost(Case& c, double budget) {
  while (estimated_cost(c) > budget) {
    if (c.H > 1 && c.HV <= c.H) {
      c.H = halved(c.H);
    } else if (c.B > 1) {
      c.B = halved(c.B);
    } else if (std::min(c.K, c.V) > 64 && c.T > 128) {
      c.T -= 64;  // widths of several tiles meet few chunks
    } else if (std::max({c.K, c.V, c.M}) > 16) {
      int64_t& widest = c.M > std::max(c.K, c.V) ? c.M : c.K >= c.V ? c.K : c.V;
      widest = halved(widest);
    } else if (c.T > 64) {
      c.T -= 64;
    } else {
      return;
    }
    c.HV = std::min(c.HV, 3 * c.H);
  }
}

/// Drops layouts of what is no input any more, or of a shape that has outgrown them.
void settle_layout(Case& c, const Operator& op) {
  std::vector<LayoutEntry> kept;
  for (const LayoutEntry& entry : parse_layout(c.layout)) {
    Case alone = c;
    alone.layout = layout_text({entry});
    try {
      validate_layout(alone, op);
      kept.push_back(entry);
    } catch (const BadInput&) {
    }
  }
  c.layout = layout_text(kept);
}

/// Makes the drawn dimensions agree: packed offsets with T, no profile where nothing decays, exact values
/// unscaled.
void settle(Case& c, const Target& target, double budget) {
  const int64_t packed_T = c.T;
  fit_cost(c, budget);
  if (!c.cu_seqlens.empty() && c.T != packed_T) {
    for (int64_t& offset : c.cu_seqlens) offset = std::min(offset, c.T);
    c.cu_seqlens.back() = c.T;
  }
  if (c.values == "exact" && target.op.inexact) c.values = "normal";
  if (c.values == "exact") {
    c.decay = "none";
    if (target.op.takes_scale) c.scale = std::ldexp(1.0, static_cast<int>(c.seed % 4) - 3);
  }
  settle_layout(c, target.op);
  const auto is_gate = [](const ArgumentSpec& input) { return input.role == Role::log_decay; };
  const auto& inputs = target.op.inputs;
  if (std::any_of(inputs.begin(), inputs.end(), is_gate) &&
      std::none_of(inputs.begin(), inputs.end(),
                   [&](const ArgumentSpec& input) { return is_gate(input) && is_present(c, input); }))
    c.decay = "none";
}

/// A kernel with a narrower gate range than the operator's domain: does the case stay inside?
bool within_gate_range(const Case& c, const Target& target) {
  const ResolvedCase r = resolve(c, target.op);
  for (const SizedArgument& input : r.inputs) {
    if (input.spec.role != Role::log_decay) continue;
    // Element by element: the first one outside decides, and no other input is drawn for it.
    const Tensor gate =
        r.overrides.empty() ? draw_on_demand(input, r) : draw_inputs(r).at(std::string(input.spec.name));
    for (int64_t i = 0; i < gate.size(); ++i)
      if (gate.value(i) < target.kernel.limits.gate_min) return false;
  }
  return true;
}

/// Nine in ten cases of such a kernel are drawn again until their gates are inside, the mild profiles at
/// last.
void settle_gates(Case& c, const Target& target) {
  if (target.kernel.limits.gate_min <= -1e4 || chance(10)) return;
  for (int attempt = 0; attempt < 12 && !within_gate_range(c, target); ++attempt) draw_decay(c, target);
  if (!within_gate_range(c, target)) c.decay = "near-one";
}

rc::Gen<Case> cases(const Kernel& kernel, const Operator& op, const Feedback& feedback) {
  return rc::gen::exec([&kernel, &op, &feedback] {
    const Target target{kernel, op, feedback};
    Case c = !feedback.corpus.empty() && chance(25) ? redrawn(target) : fresh(target);
    c.kernel = kernel.name;
    settle(c, target, draw_budget());
    // A refused case is drawn again anyway, and no plan refuses one for its decays.
    if (!refused(c, kernel)) settle_gates(c, target);
    return c;
  });
}

}  // namespace

bool uses_axis(const Operator& op, std::string_view axis) {
  for (const ArgumentSpec& input : op.inputs)
    for (std::string_view name : input.axes) {
      if (axis == "V" && name == "D") return true;
      for (size_t times; (times = name.find('*')) != name.npos; name.remove_prefix(times + 1))
        if (name.substr(0, times) == axis) return true;
      if (name == axis) return true;
    }
  return false;
}

void count_case(Feedback& feedback, const Case& c, const Operator& op) {
  ++feedback.drawn["cases"];
  ++feedback.drawn["decay " + c.decay.substr(0, c.decay.find(':'))];
  ++feedback.drawn[presence_of(c, op)];
}

std::string presence_of(const Case& c, const Operator& op) {
  std::string names = std::string(name_of(c.direction)) + ":";
  for (const ArgumentSpec& input : inputs_of(c, op))
    if (input.optional && is_present(c, input)) names += " " + std::string(input.name);
  return names;
}

std::vector<Case> presence_lattice(const Case& from, const Kernel& kernel, const Operator& op) {
  std::vector<const ArgumentSpec*> optional;
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional) optional.push_back(&input);
  std::vector<Case> lattice;
  std::set<std::string> seen;
  for (size_t absent = 0; absent < size_t{1} << optional.size(); ++absent) {
    Case c = from;
    c.without.clear();
    c.initial_state = false;
    for (size_t i = 0; i < optional.size(); ++i) {
      if (absent >> i & 1)
        c.without.insert(std::string(optional[i]->name));
      else
        c.initial_state |= optional[i]->role == Role::state;
    }
    if (!c.initial_state)
      for (const ArgumentSpec* input : optional)
        if (input->role == Role::state) c.without.erase(std::string(input->name));
    if (refused(c, kernel)) continue;
    if (seen.insert(presence_of(c, op)).second) lattice.push_back(std::move(c));
  }
  return lattice;
}

Case draw_case(const Kernel& kernel, const Operator& op, const Feedback& feedback, uint64_t seed,
               uint64_t index) {
  return first_accepted(cases(kernel, op, feedback), kernel, seed, index);
}

int64_t longest_sequence(const Case& c) {
  if (c.cu_seqlens.empty()) return c.T;
  int64_t longest = 0;
  for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n)
    longest = std::max(longest, c.cu_seqlens[n + 1] - c.cu_seqlens[n]);
  return longest;
}

}  // namespace assay
