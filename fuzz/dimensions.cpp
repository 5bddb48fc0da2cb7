#include "fuzz/dimensions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fuzz/choice.h"
#include "src/case/decay_profiles.h"
#include "src/case/layouts.h"
#include "src/case/parameters.h"

namespace assay {
namespace {

int64_t drawn_so_far(const Target& target, const std::string& feature) {
  const auto found = target.feedback.drawn.find(feature);
  return found == target.feedback.drawn.end() ? 0 : found->second;
}

/// Fewer cases so far, more weight: each of `choices` keeps near its even share.
size_t even_weight(const Target& target, const std::string& feature, size_t weight, size_t choices) {
  const double cases = double(drawn_so_far(target, "cases")), drawn = double(drawn_so_far(target, feature));
  const double share = cases < 32 ? 1.0 : std::clamp(cases / double(choices) / (drawn + 1), 0.25, 4.0);
  return std::max<size_t>(1, static_cast<size_t>(100 * share * double(weight)));
}

int64_t partial_rows() {
  return pick<int64_t>({{1, 1},
                        {1, 2},
                        {1, 15},
                        {1, 16},
                        {1, 17},
                        {1, 31},
                        {1, 32},
                        {1, 33},
                        {1, 47},
                        {1, 48},
                        {1, 49},
                        {1, 62},
                        {1, 63},
                        {8, between(1, 63)}});
}

/// Chunks are 64 rows, sub-chunks 16. Weights: two chunks and a partial one 40, above 512 tokens 19 (most of
/// them with a partial chunk too), of which 12 above 1024, so that a run of 2,000 cases has several of every
/// profile and dtype.
int64_t draw_length() {
  return pick<int64_t>({{40, 64 * between(2, 4) + partial_rows()},
                        {6, 64 * between(8, 12) + partial_rows()},
                        {1, 64 * between(8, 16)},
                        {12, 64 * between(16, 24) + partial_rows()},
                        {14, 64 + partial_rows()},
                        {12, partial_rows()},
                        {12, 64 * between(1, 4)},
                        {4, 16 * between(1, 8)},
                        {4, between(1, 4)},
                        {2, 0}});
}

/// Kernels that take few of what M counts are given any number of it.
constexpr int64_t kFew = 15;

int64_t draw_width(int64_t limit) {
  if (limit <= kFew) return between(1, limit);
  const int64_t width =
      pick<int64_t>({{14, 64},
                     {14, 32},
                     {10, 16},
                     {6, 128},
                     {12, pick<int64_t>({{1, 15}, {1, 17}, {1, 31}, {1, 33}, {1, 63}, {1, 65}})},
                     {8, pick<int64_t>({{1, 1}, {1, 2}, {1, 3}, {1, 7}, {1, 8}})},
                     {14, between(1, 48)},
                     {8, 8 * between(1, 16)},
                     {8, between(49, 160)},
                     {4, pick<int64_t>({{2, 129}, {1, 192}, {2, 193}, {1, 255}, {1, 256}})}});
  return std::min(width, limit);
}

/// N + 1 offsets: cuts anywhere, at chunk edges, next to them, twice at one place (an empty sequence), and
/// one after another (a sequence of one token).
std::vector<int64_t> draw_offsets(int64_t T) {
  const int64_t sequences = pick<int64_t>({{1, 1}, {4, 2}, {4, 3}, {2, 4}, {1, between(5, 8)}});
  std::vector<int64_t> offsets{0, T};
  while (static_cast<int64_t>(offsets.size()) < sequences + 1) {
    const int64_t cut = pick<int64_t>({{6, between(0, T)},
                                       {2, 64 * between(0, T / 64)},
                                       {2, 64 * between(0, T / 64) + 1},
                                       {2, offsets[offsets.size() / 2]},
                                       {2, offsets[offsets.size() / 2] + 1}});
    offsets.push_back(std::min(cut, T));
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

/// One drawable property of a case; a fresh case draws all of them, in this order.
struct Dimension {
  const char* name;
  void (*draw)(Case&, const Target&);
};

void draw_time(Case& c, const Target&) {
  c.T = draw_length();
  c.B = pick<int64_t>({{7, 1}, {2, 2}, {1, 3}});
  c.cu_seqlens.clear();
  if (!chance(27)) return;
  c.B = 1;
  c.cu_seqlens = draw_offsets(c.T);
}

void draw_heads(Case& c, const Target& target) {
  c.H = !uses_axis(target.op, "H")
            ? 1
            : pick<int64_t>({{20, 1}, {12, 2}, {6, 3}, {2, 4}, {2, 5}, {1, 9}, {1, between(10, 17)}});
  c.HV = uses_axis(target.op, "HV") ? c.H * pick<int64_t>({{2, 1}, {1, 2}, {1, 3}}) : 0;
}

void draw_widths(Case& c, const Target& target) {
  c.K = uses_axis(target.op, "K") ? draw_width(target.kernel.limits.max_K) : 1;
  c.V = !uses_axis(target.op, "V") ? 1
        : chance(25)               ? std::min(c.K, target.kernel.limits.max_V)
                                   : draw_width(target.kernel.limits.max_V);
  c.M = uses_axis(target.op, "M") ? draw_width(target.kernel.limits.max_M) : 0;
  if (!uses_axis(target.op, "K") || !uses_axis(target.op, "V") || !chance(9)) return;
  // More than one tile of each, the last one partial.
  c.K = std::min(64 + 16 * between(0, 3) + between(1, 15), target.kernel.limits.max_K);
  c.V = std::min(64 + 16 * between(0, 3) + between(1, 15), target.kernel.limits.max_V);
}

}  // namespace

bool begins_with_few_formats(const Target& target) {
  return target.kernel.name.find('@') != std::string::npos && drawn_so_far(target, "cases") < 24;
}

namespace {

void draw_formats(Case& c, const Target& target) {
  Weighted<Dtype> dtypes, gates;
  for (Dtype d : target.kernel.limits.dtypes) dtypes.push_back({1, d});
  for (Dtype d : target.kernel.limits.gate_dtypes) gates.push_back({1, d});
  if (begins_with_few_formats(target)) {
    dtypes = {dtypes.front(), dtypes.back()};
    gates.resize(std::min<size_t>(gates.size(), 1));
  }
  c.dtype = pick(dtypes);
  if (!gates.empty()) c.gate_dtype = pick(gates);
}

}  // namespace

std::string with_variant(const DecayProfile& profile) {
  const std::string name(profile.name);
  if (profile.variants.empty() || chance(40)) return name;
  const auto at = static_cast<size_t>(between(0, std::ssize(profile.variants) - 1));
  return name + ":" + std::string(profile.variants[at]);
}

/// Out-of-domain profiles at a lower weight: they test only that the inputs are refused.
void draw_decay(Case& c, const Target& target) {
  Weighted<const DecayProfile*> profiles;
  for (const DecayProfile& profile : decay_profiles())
    profiles.push_back({even_weight(target, "decay " + std::string(profile.name), profile.in_domain ? 10 : 6,
                                    decay_profiles().size()),
                        &profile});
  c.decay = with_variant(*pick(profiles));
}

namespace {

bool replaces_by_rate(const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [](const ArgumentSpec& input) { return input.role == Role::rate; });
}

bool carries_state(const Operator& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [](const ArgumentSpec& output) { return output.role == Role::state; });
}

bool makes_gates(const Operator& op) {
  return op.outputs.front().role == Role::log_decay;
}

void draw_values(Case& c, const Target& target) {
  c.values = pick(drawn_values(target.op));
}

}  // namespace

std::vector<std::pair<size_t, std::string>> drawn_values(const Operator& op) {
  Weighted<std::string> kinds{
      {10, "normal"}, {4, "positive"}, {3, "cancelling"}, {3, "exact"}, {7, "sparse"}};
  if (carries_state(op)) kinds.push_back({3, "lone"});
  if (removes_from_state(op))
    for (const char* kind : {"growing", "collinear", "repeated", "reflected"}) kinds.push_back({3, kind});
  if (replaces_by_rate(op)) kinds.push_back({3, "long-keys"});
  if (makes_gates(op)) kinds.push_back({14, "logits"});
  return kinds;
}

void draw_scale(Case& c, const Target& target) {
  c.scale.reset();
  if (!target.op.takes_scale) return;
  c.scale = pick<std::optional<double>>({{12, std::nullopt},
                                         {3, 1.0},
                                         {2, std::ldexp(1.0, static_cast<int>(between(-6, 3)))},
                                         {2, 0.1},
                                         {1, 1.7}});
  // What the scale enters otherwise than as a factor may be an exponent: up to its limits, on both sides of
  // 0.
  if (target.op.proportional_to_scale || makes_gates(target.op) || !chance(40)) return;
  c.scale = (chance(50) ? -1 : 1) * std::ldexp(double(between(4, 7)), static_cast<int>(between(-2, 6)));
}

/// Each at its default, at its least, or anywhere up to 40 above it; never above the one that limits it.
void draw_parameters(Case& c, const Target& target) {
  c.parameters.clear();
  for (const ParameterSpec& spec : target.op.parameters) {
    if (chance(30)) continue;
    const double most = std::min(spec.most, spec.least + 40);
    const double value = spec.whole ? double(between(int64_t(spec.least), int64_t(most)))
                                    : spec.least + (most - spec.least) * double(between(0, 64)) / 64;
    c.parameters[std::string(spec.name)] = chance(20) ? spec.least : value;
  }
  for (const ParameterSpec& spec : target.op.parameters) {
    if (spec.at_most.empty()) continue;
    const double limit = parameter_of(c, target.op, spec.at_most);
    if (parameter_of(c, target.op, spec.name) > limit) c.parameters[std::string(spec.name)] = limit;
  }
}

namespace {

/// Fifteen in a hundred: the combination of optional inputs that came up least so far. Else half of the
/// states are there, and of the other inputs most.
void draw_presence(Case& c, const Target& target) {
  c.without.clear();
  c.initial_state = chance(50);
  if (chance(15)) {
    const std::vector<Case> lattice = presence_lattice(c, target.kernel, target.op);
    Weighted<const Case*> least;
    int64_t fewest = INT64_MAX;
    for (const Case& at : lattice) {
      const int64_t drawn = drawn_so_far(target, presence_of(at, target.op));
      if (drawn < fewest) least.clear(), fewest = drawn;
      if (drawn == fewest) least.push_back({1, &at});
    }
    if (!least.empty()) {
      c = Case(*pick(least));
      return;
    }
  }
  const auto& inputs = target.op.inputs;
  for (const ArgumentSpec& input : inputs) {
    if (!input.optional || input.role == Role::state) continue;
    const bool replaceable = std::any_of(inputs.begin(), inputs.end(), [&](const ArgumentSpec& other) {
      return other.instead_of == input.name;
    });
    const bool another_formula = input.role == Role::log_decay && !target.op.absent_gate_is_zero;
    if (chance(replaceable || another_formula ? 30 : 4)) c.without.insert(std::string(input.name));
  }
}

void draw_direction(Case& c, const Target& target) {
  Weighted<Direction> choices;
  for (const Direction direction : directions_of(target.kernel))
    choices.push_back({direction == Direction::both ? 1 : 4, direction});
  c.direction = pick(choices);
  c.final_state_gradient = runs_backward(c) && chance(65);
}

/// Strides of any order of the axes, with gaps at any of them.
std::vector<int64_t> draw_strides(const Case& c, const ArgumentSpec& spec) {
  const Sizes sizes = sizes_of(c);
  std::vector<size_t> order(spec.axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(between(0, static_cast<int64_t>(i) - 1))]);
  std::vector<int64_t> strides(order.size());
  int64_t span = 1;
  for (const size_t axis : order) {
    strides[axis] = span + pick<int64_t>({{6, 0}, {1, 1}, {2, between(1, 9)}, {1, 8}});
    span = strides[axis] * std::max<int64_t>(1, sizes.of(spec.axes[axis]));
  }
  return strides;
}

/// Three in ten cases have views: all inputs alike, or some of them each in its own way.
void draw_layout(Case& c, const Target& target) {
  c.layout.clear();
  if (!chance(30)) return;
  const auto row = [] {
    return &layouts()[static_cast<size_t>(between(1, static_cast<int64_t>(layouts().size()) - 1))];
  };
  std::vector<LayoutEntry> entries;
  if (chance(50)) entries.push_back({"", row(), {}});
  for (const ArgumentSpec& spec : inputs_of(c, target.op)) {
    if (!is_present(c, spec) || !chance(entries.empty() ? 50 : 20)) continue;
    LayoutEntry entry{std::string(spec.name), row(), {}};
    if (chance(40)) entry = {entry.input, nullptr, draw_strides(c, spec)};
    entries.push_back(entry);
  }
  c.layout = layout_text(entries);
}

}  // namespace

std::string drawn_strides(const Case& c, const Operator& op) {
  std::vector<LayoutEntry> entries;
  std::vector<ArgumentSpec> present;
  for (const ArgumentSpec& spec : inputs_of(c, op))
    if (is_present(c, spec)) present.push_back(spec);
  const int64_t always = between(0, std::ssize(present) - 1);
  for (int64_t i = 0; i < std::ssize(present); ++i) {
    const ArgumentSpec& spec = present[static_cast<size_t>(i)];
    if (i == always || chance(30))
      entries.push_back({std::string(spec.name), nullptr, draw_strides(c, spec)});
  }
  return layout_text(entries);
}

void draw_seed(Case& c, const Target&) {
  c.seed = static_cast<uint64_t>(between(1, 999'999));
}

namespace {

constexpr Dimension kDimensions[] = {
    {"time", draw_time},         {"heads", draw_heads},           {"widths", draw_widths},
    {"formats", draw_formats},   {"decay", draw_decay},           {"values", draw_values},
    {"scale", draw_scale},       {"parameters", draw_parameters}, {"direction", draw_direction},
    {"presence", draw_presence}, {"layout", draw_layout},         {"seed", draw_seed}};

/// Late in a long sequence bounds are wide and errors have had time to grow: a reset there, or single terms
/// that stand alone, show what is wrong.
void draw_late_resets(Case& c) {
  c.T = 64 * between(8, 24) + partial_rows();
  c.B = 1;
  c.cu_seqlens.clear();
  c.decay = with_variant(*parse_decay(chance(60) ? "late-reset" : "reset").profile);
  c.values = chance(50) ? "sparse" : "lone";
}

}  // namespace

Case fresh(const Target& target) {
  Case c;
  for (const Dimension& dimension : kDimensions) dimension.draw(c, target);
  if (carries_state(target.op) && chance(6)) draw_late_resets(c);
  return c;
}

Case redrawn(const Target& target) {
  const auto& corpus = target.feedback.corpus;
  const auto size = static_cast<int64_t>(corpus.size());
  Case c = corpus[static_cast<size_t>(chance(50) ? between(size / 2, size - 1) : between(0, size - 1))];
  for (int64_t n = between(1, 2); n > 0; --n)
    kDimensions[static_cast<size_t>(between(0, std::size(kDimensions) - 1))].draw(c, target);
  draw_seed(c, target);
  if (c.decay == "none") draw_decay(c, target);  // else the decays of exact cases would pile up
  return c;
}

}  // namespace assay
