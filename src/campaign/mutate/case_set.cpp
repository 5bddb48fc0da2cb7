#include "src/campaign/mutate/case_set.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <tuple>

#include "fuzz/cost.h"
#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/draw_on_demand.h"
#include "src/case/random.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

constexpr int64_t kWidest = 256;     ///< cut to the kernel's limit, where it has a lower one
constexpr double kMostWork = 1.2e7;  ///< lane instructions of a drawn case, about

void with_states(Case& c) {
  c.initial_state = true;
  c.final_state_gradient = runs_backward(c);
}

void at_tile_edges(Case& c) {
  c.cu_seqlens = {0};
  for (const int64_t tokens : {1, 16, 17, 32, 33, 48, 49, 64, 65})
    c.cu_seqlens.push_back(c.cu_seqlens.back() + tokens);
  c.T = c.cu_seqlens.back();
}

/// States of -0 stay so also at the end of sequences that end at several places of a segment of 8 tokens.
void with_negative_zeros(Case& c) {
  c.cu_seqlens = {0};
  for (const int64_t tokens : {1, 2, 4, 5, 6, 7, 11}) c.cu_seqlens.push_back(c.cu_seqlens.back() + tokens);
  c.T = c.cu_seqlens.back();
  c.values = "negative-zeros";
  with_states(c);
}

constexpr bool kIfTelling = true;

struct CaseRow {
  const char* name;
  void (*shape)(Case&);
  bool if_telling = false;  ///< a candidate only, as what is drawn
};
constexpr CaseRow kRows[] = {
#include "src/campaign/mutate/mutation_cases.def"
};

bool has_gate(const Case& c, const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& input) {
    return input.role == Role::log_decay && is_present(c, input);
  });
}

/// The axes that the operator has, within the kernel's limits.
void fit(Case& c, const Kernel& kernel, const Operator& op) {
  c.H = uses_axis(op, "H") ? c.H : 1;
  c.HV = uses_axis(op, "HV") ? std::max(c.HV, c.H) : 0;
  if (c.HV > 0) c.HV -= c.HV % c.H;
  c.K = uses_axis(op, "K") ? std::min(c.K, kernel.limits.max_K) : 1;
  c.V = uses_axis(op, "V") ? std::min(c.V, kernel.limits.max_V) : 1;
  // Writes per token are steps of the recurrence: of more than usual few cases stay in the domain.
  c.M = !uses_axis(op, "M")
            ? 0
            : std::min(has_slots(op) ? std::max<int64_t>(c.M, 16) : usual_slots(op), kernel.limits.max_M);
  if (c.values == "exact" && op.inexact) c.values = "normal";
  if (c.values == "exact" || !has_gate(c, op)) c.decay = "none";
  if (!op.takes_scale) c.scale.reset();
  // Layers near the last: between those that decay at once and the one that never does.
  for (const ParameterSpec& spec : op.parameters) {
    if (spec.at_most.empty()) continue;
    const auto most = c.parameters.try_emplace(std::string(spec.at_most), 24).first;
    c.parameters[std::string(spec.name)] = std::max(0.0, most->second - 1 - static_cast<double>(c.seed % 3));
  }
}

bool is_taken(const Case& c, const Kernel& kernel) {
  try {
    const ResolvedCase resolved = accepted(c, kernel);
    if (!domain_faults(draw_limited_inputs(resolved), kernel, *resolved.op).empty()) return false;
    program_of(kernel, resolved, inputs_without_values(resolved));
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

/// The case, with the first milder decays that the kernel takes where it does not take its own; without
/// packing where it takes none. False: the kernel takes nothing like it.
bool make_acceptable(Case& c, const Kernel& kernel) {
  for (const bool unpacked : {false, true}) {
    Case attempt = c;
    if (unpacked) {
      if (c.cu_seqlens.empty()) break;
      attempt.cu_seqlens.clear();
    }
    for (const char* decay :
         {"", "reset:16,50", "strong", "constant:-0.5", "logsigmoid", "mild", "near-one", "none"}) {
      if (*decay != '\0') attempt.decay = decay;
      if (is_taken(attempt, kernel)) return c = attempt, true;
    }
  }
  return false;
}

struct Collector {
  const Kernel& kernel;
  const Operator& op;
  std::vector<std::pair<Dtype, Dtype>> formats;
  std::vector<MutationCase> cases;
  size_t rows = 0;

  /// The case in every pair of formats, as one row.
  void add(const Case& c) {
    for (const auto& [dtype, gate] : formats) {
      Case made = c;
      made.kernel = kernel.name;
      made.dtype = dtype, made.gate_dtype = gate;
      fit(made, kernel, op);
      if (!make_acceptable(made, kernel)) continue;
      const auto same = [&](const MutationCase& other) { return other.case_ == made; };
      if (std::none_of(cases.begin(), cases.end(), same)) cases.push_back({made, rows});
    }
    ++rows;
  }
};

/// What the plan of a small case in the first formats launches.
std::set<std::string> modules_of(const Kernel& kernel, Case c) {
  std::set<std::string> modules;
  const Operator& op = find_operator(kernel.operator_name);
  c.kernel = kernel.name;
  c.T = 83, c.K = 24, c.V = 16;
  std::tie(c.dtype, c.gate_dtype) = format_pairs(kernel).front();
  fit(c, kernel, op);
  if (!make_acceptable(c, kernel)) return modules;
  const ResolvedCase resolved = resolve_unchecked(c, op);
  for (const Module& module : program_of(kernel, resolved, inputs_without_values(resolved)).modules)
    modules.insert(module.name);
  return modules;
}

}  // namespace

std::vector<std::set<std::string>> absent_inputs(const Operator& op) {
  std::vector<std::set<std::string>> sets{{}};
  for (const ArgumentSpec& input : op.inputs) {
    if (!input.optional || input.role == Role::state) continue;
    const size_t known = sets.size();
    for (size_t i = 0; i < known; ++i) {
      sets.push_back(sets[i]);
      sets.back().insert(std::string(input.name));
    }
  }
  sets.erase(sets.begin());
  return sets;
}

std::vector<std::pair<Dtype, Dtype>> format_pairs(const Kernel& kernel) {
  const auto& dtypes = kernel.limits.dtypes;
  const std::vector<Dtype> gates =
      kernel.limits.gate_dtypes.empty() ? std::vector{Dtype::fp32} : kernel.limits.gate_dtypes;
  std::vector<std::pair<Dtype, Dtype>> pairs;
  for (size_t i = 0; i < std::max(dtypes.size(), gates.size()); ++i)
    pairs.emplace_back(dtypes[i % dtypes.size()], gates[(i + 1) % gates.size()]);
  return pairs;
}

std::vector<MutationCase> mutation_cases(const Kernel& kernel, const std::vector<Direction>& directions) {
  Collector collector{kernel, find_operator(kernel.operator_name), format_pairs(kernel), {}, 0};
  for (const Direction direction : directions) {
    uint64_t number = 0;
    Case basis;
    basis.direction = direction;
    basis.decay = "logsigmoid";
    const auto add_rows = [&](const Case& with) {
      for (const CaseRow& row : kRows) {
        if (row.if_telling) continue;
        Case c = with;
        row.shape(c);
        c.seed = ++number;
        collector.add(c);
      }
    };
    add_rows(basis);
    std::set<std::string> known = modules_of(kernel, basis);
    for (const std::set<std::string>& without : absent_inputs(collector.op)) {
      Case c = basis;
      c.T = 83, c.K = 24, c.V = 16;
      c.seed = ++number;
      c.without = without;
      with_states(c);
      collector.add(c);
      Case absent = basis;
      absent.without = without;
      const size_t before = known.size();
      known.merge(modules_of(kernel, absent));
      if (known.size() > before) add_rows(absent);
    }
  }
  return collector.cases;
}

std::vector<MutationCase> costly_cases(const Kernel& kernel, const std::vector<Direction>& directions,
                                       size_t first_row) {
  Collector collector{kernel, find_operator(kernel.operator_name), format_pairs(kernel), {}, first_row};
  for (const Direction direction : directions)
    for (const CaseRow& row : kRows) {
      if (!row.if_telling) continue;
      Case c;
      c.direction = direction;
      c.decay = "logsigmoid";
      row.shape(c);
      c.seed = collector.rows + 1;
      collector.add(c);
    }
  return collector.cases;
}

std::vector<MutationCase> absence_cases(const Kernel& kernel, const std::vector<Direction>& directions,
                                        size_t first_row) {
  constexpr std::string_view kTelling[] = {
      "exact out of step", "packed", "wide keys", "wide values",  "widest",
      "widest, exact",     "long",   "batches",   "middle widths"};
  Collector collector{kernel, find_operator(kernel.operator_name), format_pairs(kernel), {}, first_row};
  for (const Direction direction : directions)
    for (const std::set<std::string>& without : absent_inputs(collector.op))
      for (const CaseRow& row : kRows) {
        if (std::find(std::begin(kTelling), std::end(kTelling), row.name) == std::end(kTelling)) continue;
        Case c;
        c.direction = direction;
        c.decay = "logsigmoid";
        row.shape(c);
        c.without = without;
        c.seed = collector.rows + 1;
        collector.add(c);
      }
  return collector.cases;
}

namespace {

/// Few tokens and heads, widths around tiles and vectors, and whole ones of them; exact values where the
/// operator has them; some optional input absent in one of four.
Case with_odd_sizes(const Operator& op, Direction direction, uint64_t seed, uint64_t index) {
  static constexpr int64_t kWidths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,   12,  15,  16,  18,  24,
                                        27,  30,  32,  34,  36,  39,  40,  48,  50,  61,  62,  63,  64,  65,
                                        66,  67,  68,  70,  72,  74,  80,  95,  96,  97,  98,  99,  100, 112,
                                        120, 127, 128, 129, 130, 131, 135, 144, 160, 176, 192, 208, 240, 256};
  static constexpr int64_t kTokens[] = {1,  2,  3,  5,  7,  8,  15, 16,  17,  31,  32,  33, 47,
                                        48, 49, 63, 64, 65, 67, 96, 127, 128, 129, 193, 257};
  const RandomStream random(seed, "sizes");
  const auto at = [&](uint64_t lane) {
    return Coordinates{static_cast<int64_t>(index), 0, 0, static_cast<int64_t>(lane)};
  };
  const auto of = [&](const auto& table, uint64_t lane) {
    return table[static_cast<size_t>(random.below(static_cast<int64_t>(std::size(table)), at(lane)))];
  };
  Case c;
  c.direction = direction;
  c.decay = "logsigmoid";
  c.T = of(kTokens, 0), c.K = of(kWidths, 1), c.V = of(kWidths, 2), c.M = of(kWidths, 3);
  c.H = 1 + random.below(3, at(4)), c.HV = c.H * (1 + random.below(2, at(5)));
  c.B = 1 + random.below(2, at(6));
  if (random.below(2, at(7)) == 0) c.values = "exact";
  if (random.below(2, at(8)) == 0) with_states(c);
  if (c.B == 1 && random.below(4, at(9)) == 0) c.cu_seqlens = {0, c.T / 3, c.T / 3, c.T};
  if (const auto absences = absent_inputs(op); !absences.empty() && random.below(4, at(10)) == 0)
    c.without = absences[static_cast<size_t>(random.below(static_cast<int64_t>(absences.size()), at(11)))];
  c.seed = index + 1;
  return c;
}

}  // namespace

std::vector<MutationCase> drawn_cases(const Kernel& kernel, const std::vector<Direction>& directions,
                                      int count, uint64_t seed, size_t first_row) {
  Collector collector{kernel, find_operator(kernel.operator_name), {}, {}, first_row};
  const auto formats = format_pairs(kernel);
  int found = 0;
  for (uint64_t index = 0; found < count && index < 20u * static_cast<uint64_t>(count); ++index) {
    const bool sizes = index % 2 == 0;
    Case c = sizes ? with_odd_sizes(collector.op, directions[index / 2 % directions.size()], seed, index)
                   : draw_case(kernel, collector.op, {}, seed, index);
    if (std::find(directions.begin(), directions.end(), c.direction) == directions.end()) continue;
    c.kernel = kernel.name;
    fit(c, kernel, collector.op);
    if (estimated_cost(c) > kMostWork) continue;
    collector.formats = {formats[static_cast<size_t>(found++) % formats.size()]};
    collector.add(c);
  }
  return collector.cases;
}

Case with_other_values(const Case& c, const Kernel& kernel, uint64_t round) {
  constexpr int64_t kTokens = 600, kWidth = 64;
  Case other = c;
  other.seed += 1000 * round;
  if (round % 2 == 0 || !c.cu_seqlens.empty()) return other;
  const KernelLimits& limits = kernel.limits;
  other.T = std::max(c.T, kTokens);
  if (c.K > 1) other.K = std::clamp(kWidth, c.K, std::max(c.K, limits.max_K));
  if (c.V > 1) other.V = std::clamp(kWidth, c.V, std::max(c.V, limits.max_V));
  other.overrides.clear(), other.layout.clear();
  return other;
}

namespace {

/// At a multiple of 8, at most 2 off one, or anywhere from 1 to `most`.
int64_t searched_width(const RandomStream& random, int64_t most, int64_t manner, const Coordinates& at) {
  if (manner == 2) return 1 + random.below(most, at, 0);
  const int64_t blocks = 8 * (1 + random.below(std::max<int64_t>(most / 8, 1), at, 1));
  return std::clamp<int64_t>(blocks + (manner == 0 ? 0 : random.below(5, at, 2) - 2), 1, most);
}

}  // namespace

std::optional<MutationCase> with_searched_sizes(const MutationCase& like, const Kernel& kernel, uint64_t seed,
                                                uint64_t index,
                                                const std::function<bool(const Program&)>& wanted) {
  static constexpr int64_t kTokens[] = {1, 2, 15, 16, 17, 31, 33, 47, 49, 63, 64, 65, 79, 127, 128, 130};
  static constexpr int64_t kFewTokens[] = {1, 2, 15, 16, 17};
  constexpr int64_t kManyHeads = 160;
  constexpr double kMost = kMostWork / 2, kMostOfMany = 2 * kMostWork;
  const RandomStream random(seed, "searched sizes");
  const auto below = [&](int64_t n, int64_t lane) {
    return random.below(n, {static_cast<int64_t>(index), 0, 0, lane});
  };
  const bool many = below(6, 0) == 0;
  const int64_t manner = below(3, 1);
  const auto width = [&](int64_t lane) {  // narrow ones oftener: they cost less
    return searched_width(random, (many ? 64 : kWidest) >> below(3, lane), manner,
                          {static_cast<int64_t>(index), 1, 0, lane});
  };
  Case c = like.case_;
  c.layout.clear(), c.overrides.clear(), c.cu_seqlens.clear();
  c.T = many ? kFewTokens[below(std::size(kFewTokens), 2)] : kTokens[below(std::size(kTokens), 2)];
  c.B = 1, c.H = many ? kManyHeads >> below(2, 3) : 1 + below(3, 3) / 2,
  c.HV = many ? c.H : c.H * (1 + below(2, 4));
  c.K = width(5), c.V = width(6), c.M = width(7);
  c.values = below(2, 8) == 0 ? "exact" : "normal", c.decay = "logsigmoid";
  c.initial_state = c.final_state_gradient = false;
  if (below(2, 9) == 0) with_states(c);
  if (!many && below(4, 10) == 0) c.cu_seqlens = {0, c.T / 3, c.T / 3, c.T};
  if (!many && below(8, 11) == 0) {  // whole chunks hardly decay, one of them after another
    c.T = 257 + below(256, 12), c.cu_seqlens.clear(), c.decay = "mild:0.01";
    c.K = std::min<int64_t>(c.K, 16), c.V = std::min<int64_t>(c.V, 16);
    with_states(c);
  }
  c.seed = 1 + index;
  const Operator& op = find_operator(kernel.operator_name);
  const int64_t slots = c.M;
  fit(c, kernel, op);
  if (has_slots(op)) c.M = std::min(slots, kernel.limits.max_M);
  if (estimated_cost(c) > (many ? kMostOfMany : kMost)) return std::nullopt;
  try {
    const ResolvedCase resolved = resolve(c, op);
    if (!wanted(program_of(kernel, resolved, inputs_without_values(resolved)))) return std::nullopt;
  } catch (const BadInput&) {
    return std::nullopt;
  }
  if (!make_acceptable(c, kernel)) return std::nullopt;
  return MutationCase{c, like.row};
}

std::vector<MutationCase> in_other_formats(const MutationCase& own, const Kernel& kernel) {
  Collector collector{kernel, find_operator(kernel.operator_name), format_pairs(kernel), {}, own.row};
  std::erase(collector.formats, std::pair{own.case_.dtype, own.case_.gate_dtype});
  collector.add(own.case_);
  return collector.cases;
}

}  // namespace assay
