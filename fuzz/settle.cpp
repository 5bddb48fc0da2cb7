#include "fuzz/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/choice.h"
#include "fuzz/cost.h"
#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/draw_on_demand.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

int64_t halved(int64_t n) {
  return (n + 1) / 2;
}

/// Above these a size is rare, and what makes a case that has it dear is taken from the others.
constexpr int64_t kUsualWidth = 128, kUsualHeads = 8;
/// Two chunks and a partial one; long sequences are there for their length.
constexpr int64_t kFewTokens = 192, kLong = 512;

/// The case with a step less of what it can best do without; false where nothing is left.
bool cheaper(Case& c) {
  int64_t* widths[] = {&c.K, &c.V, &c.M};
  std::sort(std::begin(widths), std::end(widths), [](const auto* a, const auto* b) { return *a < *b; });
  int64_t &middle = *widths[1], &widest = *widths[2];
  const bool wide = widest > kUsualWidth, rare = wide || c.H > kUsualHeads;
  if (c.H > 1 && c.H <= kUsualHeads && c.HV <= c.H)
    c.H = halved(c.H), c.HV = std::min(c.HV, c.H);
  else if (c.B > 1)
    c.B = halved(c.B);
  else if (c.T > kFewTokens && (rare || std::min(c.K, c.V) > 64 || c.T <= kLong))
    c.T -= 64;  // the partial chunk stays
  else if (rare && middle > 16)
    middle = halved(middle);
  else if (rare && c.T > 64)
    c.T -= 64;
  else if (c.H > kUsualHeads && c.HV <= c.H)
    c.H = halved(c.H), c.HV = std::min(c.HV, c.H);
  else if (widest > 16)
    widest = halved(widest);
  else if (c.T > 64)
    c.T -= 64;
  else
    return false;
  return true;
}

}  // namespace

void fit_cost(Case& c, double budget) {
  const int64_t drawn_T = c.T;
  while (estimated_cost(c) > budget && cheaper(c)) {
  }
  if (c.cu_seqlens.empty() || c.T == drawn_T) return;
  for (int64_t& offset : c.cu_seqlens) offset = std::min(offset, c.T);
  c.cu_seqlens.back() = c.T;
}

namespace {

/// Drops layouts of what is no input any more, or of a shape that has outgrown them.
void settle_layout(Case& c, const Operator& op) {
  if (c.layout.empty()) return;
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

}  // namespace

void agree(Case& c, const Operator& op) {
  if (c.values == "exact" && op.inexact) c.values = "normal";
  if (c.values == "exact") {
    c.decay = "none";
    if (op.takes_scale) c.scale = std::ldexp(1.0, static_cast<int>(c.seed % 4) - 3);
  }
  settle_layout(c, op);
  const auto is_gate = [](const ArgumentSpec& input) { return input.role == Role::log_decay; };
  const auto& inputs = op.inputs;
  if (std::any_of(inputs.begin(), inputs.end(), is_gate) &&
      std::none_of(inputs.begin(), inputs.end(),
                   [&](const ArgumentSpec& input) { return is_gate(input) && is_present(c, input); }))
    c.decay = "none";
}

void fit_sizes(Case& c, const Kernel& kernel) {
  const std::pair<const char*, int64_t*> axes[] = {{"B", &c.B}, {"T", &c.T}, {"H", &c.H}, {"HV", &c.HV},
                                                   {"K", &c.K}, {"V", &c.V}, {"M", &c.M}};
  for (const auto& [axis, size] : axes) {
    const auto found = kernel.sizes.find(axis);
    if (found == kernel.sizes.end() || found->second.empty() || *size == 0) continue;
    const auto nearer = [&, wanted = *size](int64_t a, int64_t b) {
      return std::abs(a - wanted) < std::abs(b - wanted);
    };
    *size = *std::min_element(found->second.begin(), found->second.end(), nearer);
  }
  if (c.HV > 0 && c.HV % c.H != 0) c.HV = c.H;
  if (c.cu_seqlens.empty()) return;
  for (int64_t& offset : c.cu_seqlens) offset = std::min(offset, c.T);
  c.cu_seqlens.back() = c.T;
}

void share_shape(Case& c, const Case& of, const Operator& op) {
  c.H = of.H, c.HV = of.HV, c.K = of.K, c.V = of.V, c.M = of.M;
  c.dtype = of.dtype, c.gate_dtype = of.gate_dtype;
  settle_layout(c, op);
}

bool takes_all_decays(const KernelLimits& limits) {
  return limits.gate_min <= kSmallestLogDecay && limits.gate_max >= 0;
}

std::string decay_within(const KernelLimits& limits, Dtype gate_dtype) {
  // Ends a little inside, because formats round them.
  const double weakest = std::max(0.0, -limits.gate_max * 65 / 64),
               strongest = std::min(-limits.gate_min * 63 / 64, std::max(8.0, 2 * weakest));
  const std::string profiles[] = {"near-one", fmt::format("strong:{},{}", weakest, strongest),
                                  fmt::format("constant:{}", (limits.gate_min + limits.gate_max) / 2)};
  const Extremes taken{limits.gate_min, limits.gate_max};
  for (const std::string& profile : profiles)
    if (const Extremes drawn = parse_decay(profile).extremes(gate_dtype);
        taken.has(drawn.least) && taken.has(drawn.greatest))
      return profile;
  return fmt::format("constant:{}", limits.gate_max);
}

bool within_gate_range(const Case& c, const Target& target) {
  const KernelLimits& limits = target.kernel.limits;
  if (takes_all_decays(limits)) return true;
  const ResolvedCase r = resolve(c, target.op);
  for (const SizedArgument& input : r.inputs) {
    if (input.spec.role != Role::log_decay) continue;
    // Element by element: the first one outside decides, and no other input is drawn for it.
    const Tensor gate =
        r.overrides.empty() ? draw_on_demand(input, r) : draw_inputs(r).at(std::string(input.spec.name));
    for (int64_t i = 0; i < gate.size(); ++i)
      if (gate.value(i) < limits.gate_min || gate.value(i) > limits.gate_max) return false;
  }
  return true;
}

void settle_gates(Case& c, const Target& target) {
  if (takes_all_decays(target.kernel.limits) || chance(10)) return;
  // Nothing decays in exact values, which not every kernel takes.
  if (c.values == "exact" && !within_gate_range(c, target)) c.values = "normal";
  for (int attempt = 0; attempt < 12 && !within_gate_range(c, target); ++attempt) draw_decay(c, target);
  if (!within_gate_range(c, target)) c.decay = decay_within(target.kernel.limits, c.gate_dtype);
}

}  // namespace assay
