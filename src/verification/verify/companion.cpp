#include "src/verification/verify/companion.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

/// A multiple of every chunk size that kernels of the field take.
constexpr int64_t kWhole = 128;
constexpr int64_t kLongest = 400;
/// Past the first chunk of 64: what a chunk hands to the next shows in no shorter one.
constexpr int64_t kTwoChunks = 101;

bool has_violation(const std::vector<OutputComparison>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const OutputComparison& o) { return o.violation > 0; });
}

void run_further(const Case& c, const Kernel& kernel, const Operator& op, Backend& backend, int threads,
                 FurtherCases& found) {
  const ResolvedCase resolved = accepted(c, kernel);
  auto companion = std::make_unique<Companion>();
  companion->case_ = c;
  companion->inputs = draw_inputs(resolved);
  if (!domain_faults(companion->inputs, kernel, op).empty()) return;
  companion->outcome = backend.run(program_of(kernel, resolved, companion->inputs), companion->inputs);
  if (companion->outcome.trap) {
    if (!found.trapped) found.trapped = TrappedCase{c, *companion->outcome.trap};
    return;
  }
  companion->problem = declared_problem(claim_of(kernel, resolved), companion->inputs, threads);
  companion->reference = evaluate_reference(resolved, companion->problem);
  for (const ReferenceOutput& expected : companion->reference.outputs)
    if (const auto got = companion->outcome.outputs.find(expected.name);
        got != companion->outcome.outputs.end())
      companion->outputs.push_back(compare_output(got->second, expected));
  if (has_violation(companion->outputs)) found.companion = std::move(companion);
}

/// Of each output the first non-finite element is walked back from.
std::optional<OverflowingCase> overflow_of(const Case& c, const Kernel& kernel, const Operator& op,
                                           Backend& backend, OriginOptions origin) {
  const ResolvedCase resolved = accepted(c, kernel);
  OverflowingCase found{c, draw_inputs(resolved), {}};
  if (!domain_faults(found.inputs, kernel, op).empty()) return std::nullopt;
  const Program plan = program_of(kernel, resolved, found.inputs);
  origin.nearest_inputs = 0;
  for (const auto& [name, tensor] : backend.run(plan, found.inputs).outputs) {
    int64_t flat = 0;
    while (flat < tensor.size() && std::isfinite(tensor.value(flat))) ++flat;
    if (flat == tensor.size()) continue;
    auto trace = find_origin(plan, found.inputs, name, flat, origin);
    if (!trace || trace->origin.kind != OriginKind::exp_overflow) continue;
    found.trace = std::move(*trace);
    return found;
  }
  return std::nullopt;
}

/// A tensor with axis T, each batch entry filled up with zero rows.
Tensor padded(const Tensor& t, int64_t tokens) {
  size_t axis = 0;
  while (axis < t.axes.size() && t.axes[axis].name != "T") ++axis;
  if (axis == t.axes.size()) return t;
  std::vector<Axis> axes = t.axes;
  axes[axis].size = tokens;
  Tensor out(t.name, t.dtype, axes);
  const int64_t width = t.strides()[axis], before = t.axes[axis].size;
  for (int64_t flat = 0; flat < t.size(); ++flat) {
    const int64_t batch = flat / (width * before), rest = flat % (width * before);
    out.set_bits(batch * width * tokens + rest, t.bits(flat));
  }
  return out;
}

/// As many packed sequences, of different lengths, each long enough that a token's neighbours differ; one
/// that is longer already stays.
void lengthen_sequences(Case& c) {
  constexpr int64_t kFirst = 19, kMore = 13, kMost = 5;
  const auto sequences = static_cast<int64_t>(c.cu_seqlens.size()) - 1;
  if (sequences > kMost) return;
  std::vector<int64_t> edges{0};
  for (int64_t n = 0; n < sequences; ++n) {
    const auto i = static_cast<size_t>(n);
    const int64_t given = c.cu_seqlens[i + 1] - c.cu_seqlens[i];
    edges.push_back(edges.back() + std::max(given, kFirst + kMore * ((n + 1) % sequences)));
  }
  c.T = edges.back();
  c.cu_seqlens = std::move(edges);
}

}  // namespace

std::vector<Case> companion_cases(const Case& c, const Operator& op) {
  std::vector<Case> cases;
  Case random = c;
  random.overrides.clear();
  random.values =
      std::any_of(op.inputs.begin(), op.inputs.end(), [](const auto& a) { return a.role == Role::positive; })
          ? "positive"
          : "normal";
  random.seed = c.seed + 1;
  const bool degenerate = c.decay.starts_with("constant") || c.decay.starts_with("extreme");
  std::vector<std::string> decays{"logsigmoid"};
  if (!degenerate) decays.insert(c.decay == "none" ? decays.end() : decays.begin(), c.decay);
  for (const std::string& decay : decays) {
    Case large = random;
    large.decay = decay;
    large.H = std::max<int64_t>(c.H, 2), large.HV = c.HV > c.H ? large.H * (c.HV / c.H) : c.HV;
    large.K = std::max<int64_t>(c.K, 8), large.V = std::max<int64_t>(c.V, 6);
    if (c.M) large.M = std::max<int64_t>(c.M, 8);
    if (runs_backward(c)) large.final_state_gradient = true;
    large.initial_state = true;
    Case longer = large;
    if (c.cu_seqlens.empty()) longer.T = std::clamp(2 * c.T + 37, kTwoChunks, std::max(kLongest, c.T));
    if (!c.cu_seqlens.empty()) lengthen_sequences(longer);
    Case small = longer;  // meanings are weighed faster on it
    small.K = std::min<int64_t>(longer.K, 8), small.V = std::min<int64_t>(longer.V, 6);
    if (small.K != longer.K || small.V != longer.V) cases.push_back(small);
    if (longer.T != large.T) cases.push_back(longer);
    Case whole = small;  // some faults show in whole chunks only
    whole.T = kWhole;
    if (c.cu_seqlens.empty() && c.T <= kWhole) cases.push_back(whole);
    cases.push_back(large);
    Case odd = small;  // and some in channels that fill no vector
    odd.H = std::max<int64_t>(c.H, 3), odd.HV = c.HV > c.H ? odd.H * (c.HV / c.H) : c.HV;
    odd.K = std::max<int64_t>(c.K, 7), odd.V = std::max<int64_t>(c.V, 7);
    cases.push_back(odd);
    Case same_sizes = random;
    same_sizes.decay = decay;
    cases.push_back(same_sizes);
  }
  return cases;
}

FurtherCases find_further_cases(const Case& c, const Kernel& kernel, const Operator& op, Backend& backend,
                                int threads, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  FurtherCases found;
  for (const Case& candidate : companion_cases(c, op)) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (spent.count() > seconds || found.companion) break;
    try {
      run_further(candidate, kernel, op, backend, threads, found);
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  }
  return found;
}

std::optional<OverflowingCase> find_overflow(const Case& c, const Kernel& kernel, const Operator& op,
                                             Backend& backend, const OriginOptions& origin) {
  constexpr uint64_t kSeeds = 4;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) try {
      Case strong = c;
      strong.overrides.clear();
      strong.decay = "extreme", strong.values = "normal", strong.seed = c.seed + seed;
      if (auto found = overflow_of(strong, kernel, op, backend, origin)) return found;
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  return std::nullopt;
}

std::optional<bool> finite_when_padded(const Case& c, const Kernel& kernel, const TensorMap& inputs,
                                       Backend& backend, const std::string& output, int64_t flat) {
  if (!c.cu_seqlens.empty() || c.T % kWhole == 0 || c.T > 16 * kLongest) return std::nullopt;
  Case whole = c;
  whole.T = (c.T + kWhole - 1) / kWhole * kWhole;
  TensorMap filled;
  for (const auto& [name, tensor] : inputs) filled[name] = padded(tensor, whole.T);
  try {
    const Outcome outcome = backend.run(program_of(kernel, accepted(whole, kernel), filled), filled);
    const auto found = outcome.outputs.find(output);
    if (outcome.trap || found == outcome.outputs.end()) return std::nullopt;
    const Tensor& t = found->second;
    size_t axis = 0;
    while (axis < t.axes.size() && t.axes[axis].name != "T") ++axis;
    if (axis == t.axes.size()) return std::isfinite(t.value(flat));
    const int64_t width = t.strides()[axis], batch = flat / (width * c.T), rest = flat % (width * c.T);
    return std::isfinite(t.value(batch * width * whole.T + rest));
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

std::optional<bool> exponents_span_rows(const Case& c, const Kernel& kernel, Backend& backend) {
  constexpr double kDecay = 2, kLog2e = 0x1.71547652b82fep+0;  // nats: a whole chunk does not overflow
  Case alike = c;
  alike.overrides.clear();
  alike.decay = fmt::format("constant:-{}", kDecay), alike.values = "normal";
  try {
    const ResolvedCase resolved = accepted(alike, kernel);
    const TensorMap inputs = draw_inputs(resolved);
    if (!domain_faults(inputs, kernel, *resolved.op).empty()) return std::nullopt;
    double largest = 0;
    for (const ExponentRange& range : backend.run(program_of(kernel, resolved, inputs), inputs).exponents)
      largest = std::max(largest, range.max);
    return largest > 1.5 * kDecay * kLog2e;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

}  // namespace assay
