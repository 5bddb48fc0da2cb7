#include "src/verification/verify/companion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/counted_work.h"
#include "src/verification/diagnosis/real_run.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

/// Of as many heads as that, with as many of values to each; 0: the operator has none.
int64_t value_heads(const Case& c, int64_t heads) {
  return c.HV == 0 ? 0 : heads * std::max<int64_t>(1, c.HV / std::max<int64_t>(1, c.H));
}

/// A multiple of every chunk size that kernels of the field take.
constexpr int64_t kWhole = 128;
constexpr int64_t kLongest = 400;
/// Past the first chunk of 64: what a chunk hands to the next shows in no shorter one.
constexpr int64_t kTwoChunks = 101;

bool has_violation(const std::vector<OutputComparison>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const OutputComparison& o) { return o.violation > 0; });
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

/// Index of an axis; that of none is the number of axes.
size_t token_axis(const Tensor& t) {
  size_t axis = 0;
  while (axis < t.axes.size() && t.axes[axis].name != "T") ++axis;
  return axis;
}

/// Where an element of a tensor with axis T is once `before` rows of its batch entry stand before it, of
/// `tokens`.
int64_t moved(const Tensor& t, size_t axis, int64_t flat, int64_t before, int64_t tokens) {
  const int64_t width = t.strides()[axis], own = width * t.axes[axis].size;
  return flat / own * width * tokens + before * width + flat % own;
}

/// A tensor with axis T, each batch entry filled up with zero rows, `before` of them in front.
Tensor padded(const Tensor& t, int64_t before, int64_t tokens) {
  const size_t axis = token_axis(t);
  if (axis == t.axes.size()) return t;
  std::vector<Axis> axes = t.axes;
  axes[axis].size = tokens;
  Tensor out(t.name, t.dtype, axes);
  for (int64_t flat = 0; flat < t.size(); ++flat)
    out.set_bits(moved(t, axis, flat, before, tokens), t.bits(flat));
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

namespace {

/// Decays to try: a weak one before the case's own where that forgets fast, one of trained gates, and last
/// those at which most of a sequence is forgotten at once.
std::vector<std::string> decays_to_try(const Case& c, const Operator& op) {
  const auto decays_of = [](const std::vector<ArgumentSpec>& specs) {
    return std::any_of(specs.begin(), specs.end(),
                       [](const ArgumentSpec& a) { return a.role == Role::log_decay; });
  };
  if (!decays_of(op.inputs) && !decays_of(op.outputs)) return {c.decay};
  const auto is_of = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return c.decay.starts_with(name); });
  };
  std::vector<std::string> decays;
  const bool forgets = is_of({"constant", "extreme"}), strong = is_of({"strong", "ladder", "spike", "reset"});
  if (!forgets && !strong && c.decay != "none") decays.push_back(c.decay);
  for (const char* more : {"mild", "logsigmoid"})
    if (c.decay != more) decays.emplace_back(more);
  if (strong) decays.insert(decays.begin() + 1, c.decay);
  if (forgets || c.decay == "none") decays.push_back(c.decay);
  return decays;
}

/// Several heads and channels, states and their gradients.
Case enlarged(const Case& c) {
  Case large = c;
  large.H = std::max<int64_t>(c.H, 2), large.HV = value_heads(c, large.H);
  large.K = std::max<int64_t>(c.K, 8), large.V = std::max<int64_t>(c.V, 6);
  if (c.M) large.M = std::max<int64_t>(c.M, 8);
  if (runs_backward(c)) large.final_state_gradient = true;
  large.initial_state = true;
  return large;
}

Case lengthened(const Case& c) {
  Case longer = c;
  if (c.cu_seqlens.empty())
    longer.T = std::clamp(2 * c.T + 37, kTwoChunks, std::max(kLongest, c.T));
  else
    lengthen_sequences(longer);
  return longer;
}

/// Meanings are weighed faster on few channels.
Case narrowed(const Case& c) {
  Case small = c;
  small.K = std::min<int64_t>(c.K, 8), small.V = std::min<int64_t>(c.V, 6);
  return small;
}

/// Past a tile of 64 channels: where all that is there is lost in the first one nothing tells causes apart.
/// Only of operators without a recurrence, which are weighed fast on many channels too.
std::optional<Case> widened(const Case& c, const Operator& op) {
  constexpr int64_t kPastATile = 70, kTokens = 67;
  const auto recurs = [](const ArgumentSpec& a) {
    return a.role == Role::state || a.role == Role::log_decay;
  };
  if (std::any_of(op.inputs.begin(), op.inputs.end(), recurs) || !c.cu_seqlens.empty()) return std::nullopt;
  Case wide = enlarged(c);
  wide.T = std::max(c.T, kTokens);
  wide.K = std::max(c.K, kPastATile), wide.V = std::max(c.V, kPastATile);
  return wide;
}

}  // namespace

bool has_code(const Program& program) {
  return !program.modules.empty() && std::all_of(program.launches.begin(), program.launches.end(),
                                                 [](const Launch& launch) { return !launch.module.empty(); });
}

std::vector<Case> companion_cases(const Case& c, const Operator& op) {
  Case random = c;
  random.overrides.clear();
  random.values =
      std::any_of(op.inputs.begin(), op.inputs.end(), [](const auto& a) { return a.role == Role::positive; })
          ? "positive"
          : "normal";
  random.seed = c.seed + 1;
  const std::vector<std::string> decays = decays_to_try(c, op);
  std::vector<Case> cases;
  const auto add = [&](const std::string& decay, Case further) {
    further.decay = decay;
    if (std::find(cases.begin(), cases.end(), further) == cases.end()) cases.push_back(std::move(further));
  };
  if (const auto wide = widened(random, op)) add(decays.front(), *wide);
  const Case large = enlarged(random), longer = lengthened(large), small = narrowed(longer);
  for (const std::string& decay : decays) {
    add(decay, small);
    if (decay != decays.front()) continue;
    Case precise = small;  // an error that a short format hides
    precise.dtype = Dtype::fp32;
    add(decay, precise);
  }
  Case whole = small;  // some faults show in whole chunks only
  whole.T = kWhole;
  Case odd = small;  // and some in channels that fill no vector
  odd.H = std::max<int64_t>(c.H, 3), odd.HV = value_heads(c, odd.H);
  odd.K = std::max<int64_t>(c.K, 7), odd.V = std::max<int64_t>(c.V, 7);
  for (const std::string& decay : decays) {
    add(decay, longer);
    if (c.cu_seqlens.empty() && c.T <= kWhole) add(decay, whole);
    add(decay, large);
    add(decay, odd);
    add(decay, random);
  }
  return cases;
}

FurtherCases::FurtherCases(const Kernel& kernel, const Operator& op, Backend& backend, FurtherOptions options,
                           IsEnough is_enough)
    : kernel_(kernel),
      op_(op),
      backend_(backend),
      options_(std::move(options)),
      is_enough_(std::move(is_enough)),
      start_(counted_seconds()) {}

bool FurtherCases::is_over() const {
  return enough_ || counted_seconds() - start_ > options_.seconds;
}

void FurtherCases::run(const std::vector<DerivedRun>& derived) {
  for (const DerivedRun& each : derived) {
    if (is_over()) return;
    try {
      run(each.case_, each.inputs, "the run that it derived, " + token_of(each.case_));
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  }
}

void FurtherCases::run_companions(const Case& c) {
  for (const Case& candidate : companion_cases(c, op_)) {
    if (is_over()) return;
    if (candidate.T < shortest_wrong_) continue;  // it says less
    try {
      run(candidate, draw_inputs(accepted(candidate, kernel_)), token_of(candidate));
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  }
}

void FurtherCases::run(const Case& c, TensorMap inputs, const std::string& text) {
  const ResolvedCase resolved = accepted(c, kernel_);
  Companion companion;
  companion.case_ = c, companion.text = text, companion.inputs = std::move(inputs);
  if (!domain_faults(companion.inputs, kernel_, op_).empty()) return;
  const Program program = program_of(kernel_, resolved, companion.inputs);
  companion.outcome = backend_.run(program, companion.inputs);
  if (companion.outcome.trap) {
    if (!trapped_) trapped_ = TrappedCase{c, *companion.outcome.trap};
    return;
  }
  companion.problem = declared_problem(claim_of(kernel_, resolved), companion.inputs, options_.threads);
  companion.reference = evaluate_reference(resolved, companion.problem);
  for (const ReferenceOutput& expected : companion.reference.outputs)
    if (const auto got = companion.outcome.outputs.find(expected.name);
        got != companion.outcome.outputs.end())
      companion.outputs.push_back(compare_output(got->second, expected));
  if (!is_wrong(companion, program)) return;
  shortest_wrong_ = shortest_wrong_ == 0 ? c.T : std::min(shortest_wrong_, c.T);
  enough_ = is_enough_(companion);
}

/// Adds the exact run where that may say more.
bool FurtherCases::is_wrong(Companion& companion, const Program& program) const {
  const bool violated = has_violation(companion.outputs);
  if (!violated && !options_.formula) return false;
  const uint64_t instructions = companion.outcome.lane_instructions;  // 0: not the machine's
  if (!has_code(program) || instructions == 0 || instructions > thresholds::kExactInstructions)
    return violated;
  companion.exact = vm::run_exact(program, companion.inputs, options_.machine);
  return violated || RealRun(companion.failing(op_), *companion.exact).wrong_by() == WrongBy::formula;
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
  const auto is_finite = [&](int64_t before) -> std::optional<bool> {
    TensorMap filled;
    for (const auto& [name, tensor] : inputs) filled[name] = padded(tensor, before, whole.T);
    const Outcome outcome = backend.run(program_of(kernel, accepted(whole, kernel), filled), filled);
    const auto found = outcome.outputs.find(output);
    if (outcome.trap || found == outcome.outputs.end()) return std::nullopt;
    Tensor own = found->second;
    const size_t axis = token_axis(own);
    if (axis == own.axes.size()) return std::isfinite(own.value(flat));
    own.axes[axis].size = c.T;
    return std::isfinite(found->second.value(moved(own, axis, flat, before, whole.T)));
  };
  try {
    const std::optional<bool> behind = is_finite(0);
    return behind == true ? is_finite(whole.T - c.T) : behind;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

std::optional<bool> exponents_span_rows(const Case& c, const Kernel& kernel, Backend& backend) {
  constexpr double kDecay = 2, kLog2e = 0x1.71547652b82fep+0;  // nats: a whole chunk does not overflow
  constexpr int64_t kFewRows = 16;
  Case alike = c;
  alike.overrides.clear();
  alike.decay = fmt::format("constant:-{}", kDecay), alike.values = "normal";
  if (alike.cu_seqlens.empty() && alike.T < kFewRows) alike.T += 2 * kFewRows;  // of few rows one may be all
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
