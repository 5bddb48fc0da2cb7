#include "fuzz/shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/case/layouts.h"
#include "src/case/override.h"

namespace assay {
namespace {

using Cases = rc::Seq<Case>;

/// Candidates made by setting one size to each of `sizes` in turn.
template <typename Set>
Cases with_each(const Case& from, rc::Seq<int64_t> sizes, Set set) {
  return rc::seq::map(std::move(sizes), [from, set](int64_t size) {
    Case c = from;
    set(c, size);
    return c;
  });
}

/// `preferred` values below `value`, ascending, then RapidCheck's halving towards `least`.
rc::Seq<int64_t> smaller(int64_t value, int64_t least, std::vector<int64_t> preferred) {
  std::sort(preferred.begin(), preferred.end());
  preferred.erase(
      std::remove_if(preferred.begin(), preferred.end(), [&](int64_t x) { return x < least || x >= value; }),
      preferred.end());
  return rc::seq::concat(rc::seq::fromContainer(preferred),
                         rc::shrink::towards(value, std::min(value, least)));
}

/// One sequence of a packed case alone, then the case with one sequence left out.
Cases fewer_sequences(const Case& from) {
  std::vector<Case> candidates;
  const auto& cu = from.cu_seqlens;
  for (size_t n = 0; n + 1 < cu.size(); ++n) {
    Case alone = from;
    alone.cu_seqlens.clear();
    alone.T = cu[n + 1] - cu[n];
    candidates.push_back(alone);
  }
  for (size_t n = 0; cu.size() > 2 && n + 1 < cu.size(); ++n) {
    Case without = from;
    const int64_t length = cu[n + 1] - cu[n];
    without.cu_seqlens.erase(without.cu_seqlens.begin() + static_cast<std::ptrdiff_t>(n) + 1);
    for (size_t i = n + 1; i < without.cu_seqlens.size(); ++i) without.cu_seqlens[i] -= length;
    without.T -= length;
    candidates.push_back(without);
  }
  return rc::seq::fromContainer(candidates);
}

/// Chunk-shaped lengths first: the same partial chunk after fewer whole ones, then chunk edges, then anything
/// shorter.
Cases shorter(const Case& from) {
  const int64_t T = from.T, r64 = T % 64, r16 = T % 16;
  const auto set = [](Case& c, int64_t length) { c.T = length; };
  if (from.cu_seqlens.empty())
    return with_each(
        from,
        smaller(T, 0, {1, 2, r16, 16 + r16, 16, 17, r64, 63, 64, 65, 64 + r16, 64 + r64, 128, 128 + r64}),
        set);
  std::vector<Case> candidates;
  for (size_t n = 0; n + 1 < from.cu_seqlens.size(); ++n) {
    const int64_t length = from.cu_seqlens[n + 1] - from.cu_seqlens[n];
    for (const int64_t less : {int64_t{0}, int64_t{1}, length % 16, length % 64, length / 2, length - 1}) {
      if (less < 0 || less >= length) continue;
      Case c = from;
      for (size_t i = n + 1; i < c.cu_seqlens.size(); ++i) c.cu_seqlens[i] -= length - less;
      c.T -= length - less;
      candidates.push_back(c);
    }
  }
  return rc::seq::fromContainer(candidates);
}

/// All sizes at once: what saves most where it keeps the cause.
Cases smallest_sizes(const Case& from) {
  std::vector<Case> candidates;
  if (!from.cu_seqlens.empty()) return rc::seq::fromContainer(candidates);
  const int64_t T = from.T, r64 = T % 64;
  for (const int64_t width : {1, 2, 16})
    for (const int64_t length : {r64 == 0 ? int64_t{64} : r64, 64 + r64}) {
      Case c = from;
      c.B = c.H = 1;
      c.HV = from.HV == 0 ? 0 : from.HV / from.H;
      c.K = std::min(from.K, width), c.V = std::min(from.V, width), c.M = std::min(from.M, width);
      c.T = std::min(T, length);
      if (!(c == from)) candidates.push_back(c);
    }
  return rc::seq::fromContainer(candidates);
}

Cases smaller_sizes(const Case& from) {
  return rc::seq::concat(
      fewer_sequences(from), smallest_sizes(from),
      with_each(from, rc::shrink::towards<int64_t>(from.B, 1), [](Case& c, int64_t x) { c.B = x; }),
      with_each(from, rc::shrink::towards<int64_t>(from.H, 1),
                [](Case& c, int64_t x) {
                  c.HV = c.HV == 0 ? 0 : c.HV / c.H * x;
                  c.H = x;
                }),
      with_each(from, smaller(from.HV, from.H, {from.H}), [](Case& c, int64_t x) { c.HV = x; }),
      shorter(from), with_each(from, smaller(from.K, 1, {1, 2, 16}), [](Case& c, int64_t x) { c.K = x; }),
      with_each(from, smaller(from.V, 1, {1, 2, 16}), [](Case& c, int64_t x) { c.V = x; }),
      with_each(from, smaller(from.M, 1, {1, 2, 16}), [](Case& c, int64_t x) { c.M = x; }));
}

/// No views; a view less; what all have for a single input; a named layout for strides.
std::vector<std::string> simpler_layouts(const Case& from, const Operator& op) {
  std::vector<std::string> simpler;
  if (from.layout.empty()) return simpler;
  simpler.emplace_back();
  const std::vector<LayoutEntry> entries = parse_layout(from.layout);
  for (size_t i = 0; i < entries.size() && entries.size() > 1; ++i) {
    std::vector<LayoutEntry> fewer = entries;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    simpler.push_back(layout_text(fewer));
  }
  if (entries.size() > 1) return simpler;
  if (entries[0].input.empty())
    for (const ArgumentSpec& spec : inputs_of(from, op))
      if (is_present(from, spec))
        simpler.push_back(layout_text({{std::string(spec.name), entries[0].row, {}}}));
  if (!entries[0].row)
    for (const LayoutRow& row : layouts()) simpler.push_back(layout_text({{entries[0].input, &row, {}}}));
  return simpler;
}

/// Simpler kinds, each a change of its own; those that change nothing are dropped.
Cases simpler_kinds(const Case& from, const Operator& op) {
  std::vector<Case> candidates;
  const auto add = [&](auto change) {
    Case c = from;
    change(c);
    if (!(c == from)) candidates.push_back(c);
  };
  add([](Case& c) { c.initial_state = false; });
  add([](Case& c) { c.final_state_gradient = false; });
  if (runs_forward(from) && runs_backward(from)) {
    add([](Case& c) { c.direction = Direction::forward, c.final_state_gradient = false; });
    add([](Case& c) { c.direction = Direction::backward; });
  }
  add([](Case& c) { c.without.clear(); });
  add([](Case& c) { c.parameters.clear(); });
  for (const std::string& layout : simpler_layouts(from, op)) add([&](Case& c) { c.layout = layout; });
  add([](Case& c) { c.scale.reset(); });
  if (from.scale) add([](Case& c) { c.scale = 1; });
  add([](Case& c) { c.gate_dtype = Dtype::fp32; });
  add([](Case& c) { c.seed = 1; });
  if (from.values != "exact" && from.values != "ones") {
    add([](Case& c) { c.values = "ones"; });
    if (from.values != "powers") add([](Case& c) { c.values = "powers"; });
    if (from.values != "normal" && from.values != "powers") add([](Case& c) { c.values = "normal"; });
  }
  if (from.overrides.empty()) {
    add([](Case& c) { c.decay = "none"; });
    add([](Case& c) { c.decay = c.decay.substr(0, c.decay.find(':')); });
    for (const char* gate : {"constant:-1", "constant:-16", "constant:-128"})
      if (from.decay != "none" && from.decay.rfind("constant", 0) != 0) add([&](Case& c) { c.decay = gate; });
  }
  return rc::seq::fromContainer(candidates);
}

std::string override_text(const Tensor& tensor, int64_t flat) {
  return fmt::format("{}[{}]={}", tensor.name, fmt::join(tensor.index(flat), ","), tensor.value(flat));
}

/// No decay but in the n strongest gates, n = 1, 2, 4: those become explicit values.
Cases few_gates(const Case& from, const Operator& op) {
  std::vector<Case> candidates;
  if (from.decay == "none" || from.values == "exact" || !from.overrides.empty() || !from.blocks.empty())
    return rc::seq::fromContainer(candidates);
  const TensorMap inputs = draw_inputs(from, op);
  for (const ArgumentSpec& spec : op.inputs) {
    const auto found = inputs.find(std::string(spec.name));
    if (spec.role != Role::log_decay || found == inputs.end()) continue;
    const Tensor& gates = found->second;
    std::vector<int64_t> order(static_cast<size_t>(gates.size()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return gates.value(a) < gates.value(b); });
    for (size_t n : {1, 2, 4}) {
      if (n > order.size()) break;
      Case c = from;
      c.decay = "none";
      for (size_t i = 0; i < n; ++i) c.overrides.push_back(override_text(gates, order[i]));
      candidates.push_back(c);
    }
  }
  return rc::seq::fromContainer(candidates);
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(std::fabs(x), &exponent) == 0.5;
}

/// Simpler numbers of the same sign: 1, the powers of two on both sides, one digit, two digits, a whole
/// number, then half. Of two powers of two the one nearer to 1 is the simpler one.
std::vector<double> simpler_numbers(double x) {
  if (!std::isfinite(x) || x == 0) return {};
  std::vector<double> numbers;
  const double below = std::copysign(std::exp2(std::floor(std::log2(std::fabs(x)))), x);
  if (is_power_of_two(x)) {
    for (double y : {std::copysign(1.0, x), std::fabs(x) > 1 ? x / 2 : 2 * x})
      if (y != x && std::fabs(std::log2(std::fabs(y))) < std::fabs(std::log2(std::fabs(x))))
        numbers.push_back(y);
    return numbers;
  }
  numbers = {std::copysign(1.0, x), below, 2 * below};
  const double decade = std::pow(10.0, std::floor(std::log10(std::fabs(x))));
  for (double y : {std::trunc(x / decade) * decade, std::round(x / decade) * decade,
                   std::trunc(x / decade * 10) * decade / 10, std::round(x), x / 2}) {
    const bool simpler = std::fabs(y) < std::fabs(x) || (y == std::round(y) && x != std::round(x));
    if (y != x && y != 0 && std::signbit(y) == std::signbit(x) && simpler &&
        std::find(numbers.begin(), numbers.end(), y) == numbers.end())
      numbers.push_back(y);
  }
  return numbers;
}

std::string override_text(const Override& o) {
  return fmt::format("{}[{}]={}", o.argument, fmt::join(o.index, ","), o.value);
}

/// One override left out, moved to the first place along an axis, or with a simpler value.
Cases simpler_overrides(const Case& from) {
  std::vector<Case> candidates;
  for (size_t i = 0; i < from.overrides.size(); ++i) {
    Case without = from;
    without.overrides.erase(without.overrides.begin() + static_cast<std::ptrdiff_t>(i));
    candidates.push_back(without);
    const auto add = [&](const Override& changed) {
      Case c = from;
      c.overrides[i] = override_text(changed);
      candidates.push_back(c);
    };
    const Override parsed = parse_override(from.overrides[i]);
    for (size_t axis = 0; axis < parsed.index.size(); ++axis) {
      Override moved = parsed;
      moved.index[axis] = 0;
      if (parsed.index[axis] != 0) add(moved);
    }
    for (double value : simpler_numbers(parsed.value)) {
      Override simpler = parsed;
      simpler.value = value;
      add(simpler);
    }
  }
  return rc::seq::fromContainer(candidates);
}

/// A size may shrink below an override's index: such a candidate is no case.
bool is_case(const Case& c, const Operator& op) {
  try {
    validate(c, op);
    const Sizes sizes = sizes_of(c);
    const std::vector<ArgumentSpec> inputs = inputs_of(c, op);
    for (const std::string& text : c.overrides) {
      const Override o = parse_override(text);
      const auto spec = std::find_if(inputs.begin(), inputs.end(),
                                     [&](const ArgumentSpec& s) { return s.name == o.argument; });
      if (spec == inputs.end() || spec->axes.size() != o.index.size()) return false;
      for (size_t i = 0; i < o.index.size(); ++i)
        if (o.index[i] >= sizes.of(spec->axes[i])) return false;
    }
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

rc::Shrinkable<Case> shrinkable(const Case& from, const Operator& op) {
  return rc::shrinkable::shrinkRecur(from, [&op](const Case& c) {
    return rc::seq::filter(
        rc::seq::concat(smaller_sizes(c), simpler_kinds(c, op), few_gates(c, op), simpler_overrides(c)),
        [&op](const Case& candidate) { return is_case(candidate, op); });
  });
}

}  // namespace

Shrunk shrink(const Verification& failing, const Operator& op, int most_evaluations,
              const SameCause& same_cause) {
  Shrunk result{failing, 0, false};
  std::set<std::string> tried = {token_of(failing.case_)};
  rc::Shrinkable<Case> at = shrinkable(failing.case_, op);
  for (bool moved = true; moved;) {
    moved = false;
    auto candidates = at.shrinks();
    while (auto candidate = candidates.next()) {
      const Case c = candidate->value();
      if (!tried.insert(token_of(c)).second) continue;
      if (result.evaluations == most_evaluations) return result;
      ++result.evaluations;
      auto verification = same_cause(c);
      if (!verification) continue;
      result.smallest = std::move(*verification);
      at = *candidate;
      moved = true;
      break;
    }
  }
  result.finished = true;
  return result;
}

std::vector<Case> simpler_cases(const Case& from, const Operator& op) {
  std::vector<Case> all;
  auto candidates = shrinkable(from, op).shrinks();
  while (auto candidate = candidates.next()) all.push_back(candidate->value());
  return all;
}

}  // namespace assay
