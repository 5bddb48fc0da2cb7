// Meanings of what is stored: right values at other places, in a narrower format, or times a constant.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "src/verification/diagnosis/meanings/propose.h"
#include "src/verification/diagnosis/schedule.h"

namespace assay {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kRoundings = 4;  // to the narrower format, on the way to what is stored
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// Of every wrong output, the indices on each axis that hold a wrong element; nothing is predicted elsewhere.
std::vector<std::set<int64_t>> wrong_indices(const OutputComparison& o, const Tensor& t) {
  std::vector<std::set<int64_t>> indices(t.axes.size());
  for (int64_t flat = 0; flat < t.size(); ++flat) {
    if (o.verdicts[static_cast<size_t>(flat)] == ElementVerdict::ok) continue;
    const std::vector<int64_t> index = t.index(flat);
    for (size_t axis = 0; axis < index.size(); ++axis) indices[axis].insert(index[axis]);
  }
  return indices;
}

/// Every wrong output made over in the block of indices that its wrong elements span.
std::optional<Prediction> made_over(
    const FailingRun& run,
    const std::function<PredictedOutput(const OutputComparison&, const PredictedOutput&)>& make) {
  Prediction p = reference_prediction(run);
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& t = run.outputs->at(o->name);
    PredictedOutput out = make(*o, p.at(o->name));
    const auto indices = wrong_indices(*o, t);
    for (int64_t flat = 0; flat < t.size(); ++flat) {
      const std::vector<int64_t> index = t.index(flat);
      bool inside = true;
      for (size_t axis = 0; axis < index.size(); ++axis) inside = inside && indices[axis].count(index[axis]);
      if (!inside) out.mid[static_cast<size_t>(flat)] = kNothing;
    }
    p[o->name] = std::move(out);
  }
  return p;
}

std::vector<Variant> times(const FailingRun& run, double factor, const char* text) {
  return {{text, [&run, factor] {
             return made_over(run, [factor](const OutputComparison&, PredictedOutput right) {
               for (double& x : right.mid) x *= factor;
               for (double& x : right.bound) x *= std::fabs(factor);
               return right;
             });
           }}};
}

/// Of a factor; "2" where it is one of those that kernels have, which `known` says.
std::string constant_text(const FailingRun& run, double c, bool& known) {
  const double s = run.problem.scale;
  const std::pair<double, const char*> constants[] = {
      {kLn2, "ln 2"},     {1 / kLn2, "1/ln 2"},          {s, "the scale"},
      {1 / s, "1/scale"}, {s * s, "the scale's square"}, {2, "2"},
      {0.5, "1/2"}};
  known = true;
  for (const auto& [value, name] : constants)
    if (std::fabs(c / value - 1) < 0x1p-8) return fmt::format("{:.6g}, {}", c, name);
  known = false;
  return fmt::format("{:.6g}", c);
}

/// Median of got / right over the wrong elements of an output.
double factor_of(const FailingRun& run, const OutputComparison& o) {
  const Tensor& got = run.outputs->at(o.name);
  const ReferenceOutput& right = *run.expected(o.name);
  std::vector<double> quotients;
  for (size_t i = 0; i < right.mid.size(); ++i)
    if (o.verdicts[i] == ElementVerdict::violation && right.mid[i] != 0)
      quotients.push_back(got.value(static_cast<int64_t>(i)) / right.mid[i]);
  if (quotients.empty()) return kNothing;
  std::nth_element(quotients.begin(), quotients.begin() + static_cast<int64_t>(quotients.size() / 2),
                   quotients.end());
  return quotients[quotients.size() / 2];
}

std::vector<Variant> scaled(const FailingRun& run) {
  std::string text;
  const auto numbers = std::make_shared<Numbers>();
  for (const OutputComparison* o : run.wrong()) {
    const double factor = factor_of(run, *o);
    bool known = false;
    text +=
        fmt::format("{}{} times {}", text.empty() ? "" : ", ", o->name, constant_text(run, factor, known));
    if (!known) numbers->emplace(o->name, factor);
  }
  Variant variant{text,
                  [&run] {
                    return made_over(run, [&](const OutputComparison& o, PredictedOutput right) {
                      const double c = factor_of(run, o);
                      for (double& x : right.mid) x *= c;
                      for (size_t i = 0; i < right.mid.size(); ++i)
                        right.bound[i] = right.bound[i] * std::max(1.0, std::fabs(c)) +
                                         left_by_fit(run, o.name, right.mid[i]);
                      return right;
                    });
                  },
                  256};
  if (!numbers->empty()) variant.numbers = numbers;
  return {std::move(variant)};
}

/// Element at index i of `axis` has the value of index `from`.
double at_other(const PredictedOutput& right, const std::vector<double> PredictedOutput::*part, int64_t flat,
                int64_t stride, int64_t i, int64_t from) {
  return (right.*part)[static_cast<size_t>(flat + (from - i) * stride)];
}

/// Each slab across `axis` that holds wrong elements gets the right values of the slab that agrees best.
PredictedOutput from_best_slabs(const FailingRun& run, const OutputComparison& o,
                                const PredictedOutput& right, size_t axis) {
  const Tensor& got = run.outputs->at(o.name);
  const int64_t stride = got.strides()[axis], size = got.axes[axis].size;
  std::vector<std::vector<int64_t>> agreeing(static_cast<size_t>(size),
                                             std::vector<int64_t>(static_cast<size_t>(size)));
  for (int64_t flat = 0; flat < got.size(); ++flat) {
    if (o.verdicts[static_cast<size_t>(flat)] != ElementVerdict::violation) continue;
    const int64_t i = flat / stride % size;
    for (int64_t j = 0; j < size; ++j) {
      const double mid = at_other(right, &PredictedOutput::mid, flat, stride, i, j);
      double bound = at_other(right, &PredictedOutput::bound, flat, stride, i, j);
      if (run.is_on_reals(o.name)) bound += run.expected(o.name)->bound[static_cast<size_t>(flat)];
      agreeing[static_cast<size_t>(i)][static_cast<size_t>(j)] += std::fabs(got.value(flat) - mid) <= bound;
    }
  }
  std::vector<int64_t> from(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    const auto& row = agreeing[static_cast<size_t>(i)];
    const auto best = std::max_element(row.begin(), row.end());
    from[static_cast<size_t>(i)] = *best > 0 ? best - row.begin() : i;
  }
  PredictedOutput out = right;
  for (int64_t flat = 0; flat < got.size(); ++flat) {
    const int64_t i = flat / stride % size, j = from[static_cast<size_t>(i)];
    const auto to = static_cast<size_t>(flat);
    out.mid[to] = at_other(right, &PredictedOutput::mid, flat, stride, i, j);
    out.bound[to] = at_other(right, &PredictedOutput::bound, flat, stride, i, j);
  }
  return out;
}

/// The right values as they lie in memory with two axes exchanged.
PredictedOutput with_axes_exchanged(const Tensor& t, const PredictedOutput& right, size_t a, size_t b) {
  std::vector<size_t> order(t.axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::swap(order[a], order[b]);
  PredictedOutput out = right;
  for (int64_t flat = 0; flat < t.size(); ++flat) {
    const std::vector<int64_t> index = t.index(flat);
    int64_t to = 0;
    for (const size_t axis : order) to = to * t.axes[axis].size + index[axis];
    out.mid[static_cast<size_t>(to)] = right.mid[static_cast<size_t>(flat)];
    out.bound[static_cast<size_t>(to)] = right.bound[static_cast<size_t>(flat)];
  }
  return out;
}

std::vector<Variant> elsewhere(const FailingRun& run) {
  std::vector<Variant> v;
  std::set<std::string> axes, pairs;
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& t = run.outputs->at(o->name);
    for (size_t a = 0; a < t.axes.size(); ++a) {
      if (t.axes[a].size < 2) continue;
      const std::string& letter = t.axes[a].name;
      if (t.axes[a].size <= 512 && axes.insert(letter).second)
        v.push_back(
            {fmt::format("values of other indices along {}", letter),
             [&run, letter] {
               return made_over(run, [&](const OutputComparison& output, const PredictedOutput& right) {
                 const int axis = axis_of(run.outputs->at(output.name), letter);
                 return axis < 0 ? right : from_best_slabs(run, output, right, static_cast<size_t>(axis));
               });
             },
             static_cast<double>(t.axes[a].size * t.axes[a].size)});
      for (size_t b = a + 1; b < t.axes.size(); ++b) {
        const std::string& other = t.axes[b].name;
        if (t.axes[b].size < 2 || !pairs.insert(letter + other).second) continue;
        v.push_back(
            {fmt::format("stored as if {} and {} were exchanged in memory", letter, other),
             [&run, letter, other] {
               return made_over(run, [&](const OutputComparison& output, const PredictedOutput& right) {
                 const Tensor& got = run.outputs->at(output.name);
                 const int x = axis_of(got, letter), y = axis_of(got, other);
                 return x < 0 || y < 0
                            ? right
                            : with_axes_exchanged(got, right, static_cast<size_t>(x), static_cast<size_t>(y));
               });
             }});
      }
    }
  }
  return v;
}

/// Which heads a head's element is the sum of.
struct HeadSum {
  const char* text;
  bool (*has)(int64_t own, int64_t other, int64_t heads);
};
constexpr HeadSum kHeadSums[] = {
    {"all heads", [](int64_t, int64_t, int64_t) { return true; }},
    {"its own head and those before", [](int64_t own, int64_t other, int64_t) { return other <= own; }},
    {"its own head and those behind", [](int64_t own, int64_t other, int64_t) { return other >= own; }},
    {"all other heads", [](int64_t own, int64_t other, int64_t) { return other != own; }},
    {"its own head and the next",
     [](int64_t own, int64_t other, int64_t heads) { return other == own || other == (own + 1) % heads; }}};

PredictedOutput summed_over_heads(const Tensor& got, const PredictedOutput& right, const HeadSum& sum) {
  const int axis = head_axis(got);
  if (axis < 0) return right;
  const int64_t stride = got.strides()[static_cast<size_t>(axis)],
                heads = got.axes[static_cast<size_t>(axis)].size;
  PredictedOutput out{std::vector<double>(right.mid.size()), std::vector<double>(right.mid.size())};
  for (int64_t flat = 0; flat < got.size(); ++flat) {
    const int64_t own = flat / stride % heads;
    const auto to = static_cast<size_t>(flat);
    for (int64_t other = 0; other < heads; ++other) {
      if (!sum.has(own, other, heads)) continue;
      out.mid[to] += at_other(right, &PredictedOutput::mid, flat, stride, own, other);
      out.bound[to] += at_other(right, &PredictedOutput::bound, flat, stride, own, other);
    }
  }
  return out;
}

std::vector<Variant> over_heads(const FailingRun& run) {
  std::vector<Variant> v;
  if (run.problem.sizes.H < 2 && run.problem.sizes.HV < 2) return v;
  for (const HeadSum& sum : kHeadSums)
    v.push_back({fmt::format("the sum over {}", sum.text), [&run, &sum] {
                   return made_over(run, [&](const OutputComparison& o, const PredictedOutput& right) {
                     return summed_over_heads(run.outputs->at(o.name), right, sum);
                   });
                 }});
  return v;
}

/// Wrong elements other than 0 that lie in a narrower format; all others too, or none.
int64_t narrow_elements(const FailingRun& run, Dtype dtype) {
  int64_t narrow = 0;
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& got = run.outputs->at(o->name);
    if (format(got.dtype).precision <= format(dtype).precision) return 0;
    for (int64_t flat = 0; flat < got.size(); ++flat) {
      const double x = got.value(flat);
      if (o->verdicts[static_cast<size_t>(flat)] != ElementVerdict::violation || x == 0) continue;
      if (round_to(dtype, x) != x) return 0;
      ++narrow;
    }
  }
  return narrow;
}

/// Elements of the wrong outputs that lie nearer to zero than the right value's nearest number, as the number
/// next to it does; 0 where one lies on the other side, as of values that are not cut off.
int64_t cut_elements(const FailingRun& run) {
  int64_t cut = 0;
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& got = run.outputs->at(o->name);
    const ReferenceOutput& right = *run.expected(o->name);
    for (size_t i = 0; i < right.mid.size(); ++i) {
      const double x = right.mid[i], value = got.value(static_cast<int64_t>(i));
      if (x == 0 || o->verdicts[i] == ElementVerdict::nonfinite) continue;
      const double near = round_to(got.dtype, x),
                   towards_zero = narrowed(got.dtype, x, Narrowing::towards_zero);
      if (near == towards_zero) continue;
      if (value != towards_zero) return 0;
      ++cut;
    }
  }
  return cut;
}

/// The output's own format, reached by leaving bits out.
void append_cut(const FailingRun& run, std::vector<Variant>& v) {
  const int64_t cut = cut_elements(run);
  if (cut == 0) return;
  Variant variant{
      fmt::format("cut off instead of rounded: all {} elements that should be rounded up are rounded "
                  "towards zero",
                  cut),
      [&run] {
        return made_over(run, [&run](const OutputComparison& o, PredictedOutput right) {
          const Tensor& got = run.outputs->at(o.name);
          for (double& x : right.mid) x = narrowed(got.dtype, x, Narrowing::towards_zero);
          return right;
        });
      }};
  variant.bits = static_cast<double>(cut);
  v.push_back(std::move(variant));
}

std::vector<Variant> rounded(const FailingRun& run) {
  std::vector<Variant> v;
  append_cut(run, v);
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32}) {
    const int64_t narrow = narrow_elements(run, dtype);
    if (narrow == 0) continue;
    Variant variant{fmt::format("stored as {}: all {} wrong elements are numbers of that format",
                                format(dtype).name, narrow),
                    [&run, dtype] {
                      return made_over(run, [&run, dtype](const OutputComparison& o, PredictedOutput right) {
                        const Tensor& got = run.outputs->at(o.name);
                        for (size_t i = 0; i < right.mid.size(); ++i) {
                          const double value = got.value(static_cast<int64_t>(i));
                          const double near = kRoundings * 0.5 * ulp(dtype, right.mid[i]) + right.bound[i];
                          if (std::fabs(value - right.mid[i]) <= near) right.mid[i] = value;
                        }
                        return right;
                      });
                    }};
    variant.bits = 8 * static_cast<double>(narrow);
    v.push_back(std::move(variant));
  }
  return v;
}

/// Functions of an input that gradients of gates have for factors.
struct Factor {
  const char* text;
  double (*of)(double);
};
constexpr Factor kFactors[] = {{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
                               {"(1 - sigmoid)", [](double x) { return 1 / (1 + std::exp(x)); }},
                               {"exp", [](double x) { return std::exp(x); }},
                               {"the identity", [](double x) { return x; }}};

/// Outputs with an element for each of `input`'s, times its function, or divided by it.
std::optional<Prediction> times_function(const FailingRun& run, const Tensor& input, const Factor& factor,
                                         bool divided) {
  bool any = false;
  std::optional<Prediction> p = made_over(run, [&](const OutputComparison&, PredictedOutput right) {
    if (right.mid.size() != static_cast<size_t>(input.size())) return right;
    any = true;
    for (size_t i = 0; i < right.mid.size(); ++i) {
      const double f = factor.of(input.value(static_cast<int64_t>(i))), c = divided ? 1 / f : f;
      if (!std::isfinite(c))
        right.mid[i] = kNothing;
      else
        right.mid[i] *= c, right.bound[i] *= std::max(1.0, std::fabs(c));
    }
    return right;
  });
  return any ? p : std::nullopt;
}

/// Of operators that work element by element.
std::vector<Variant> factor_of_input(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.states().empty() || is_schedulable(run)) return v;
  for (const std::string& name : run.operands())
    for (const Factor& factor : kFactors)
      for (const bool divided : {true, false})
        v.push_back({fmt::format("{} the factor {} of {}", divided ? "without" : "with one more of",
                                 factor.text, name),
                     [&run, name, &factor, divided] {
                       return times_function(run, run.inputs().at(name), factor, divided);
                     }});
  return v;
}

}  // namespace

std::vector<Meaning> output_meanings() {
  return {{"output-zero", "elements are zero that should not be", "check that what is stored was accumulated",
           [](const FailingRun& run) { return times(run, 0, "zero is stored"); }, 0.94},
          {"output-sign", "right magnitude, other sign", "check the sign",
           [](const FailingRun& run) { return times(run, -1, "the other sign is stored"); }},
          {"heads-summed", "an element is a sum over heads that should be one head's",
           "check what is added up, and the accumulator of each head", over_heads, 0.96},
          {"output-rounded", "stored in a narrower format than its own, or cut off instead of rounded",
           "round once, to the output's own format", rounded, 0.94, false, true},
          {"output-stored-elsewhere", "right values at other indices", "check the offset of the store",
           elsewhere, 0.94},
          {"factor-of-input", "a factor that is a function of an input is missing, or there twice",
           "compare the derivative with the formula", factor_of_input, 0.965},
          {"output-scaled", "off by a constant factor", "check what multiplies the output", scaled, 0.9}};
}

}  // namespace assay
