#include "reference/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/slices.h"

namespace assay {
namespace {

bool not_negative(const ArgumentSpec& argument) {
  return argument.not_negative || argument.role == Role::positive;
}

Extremes allowed(const ArgumentSpec& argument) {
  constexpr double kMost = std::numeric_limits<double>::max();
  if (argument.role == Role::rate) return {0, kLargestRate};
  if (argument.role == Role::log_decay) return {kSmallestLogDecay, 0};
  return {not_negative(argument) ? 0 : -kMost, kMost};
}

std::string reason(const ArgumentSpec& argument) {
  if (not_negative(argument)) return "this input must be finite and not negative";
  if (argument.role == Role::rate) return fmt::format("a rate must lie in [0, {:.0f}]", kLargestRate);
  return argument.role == Role::log_decay
             ? fmt::format("a log decay must lie in [{:.0f}, 0]", kSmallestLogDecay)
             : "this input must be finite";
}

/// Of a tensor that is made on demand so many elements behind the first one outside are looked at.
constexpr int64_t kLookedAtFurther = int64_t{1} << 20;

/// Is it known without looking that all elements are inside?
bool is_made_within(const Tensor& tensor, const Extremes& allowed) {
  const auto* const known = dynamic_cast<const KnownExtremes*>(tensor.source.get());
  const auto extremes = known ? known->extremes() : std::nullopt;
  return extremes && allowed.has(extremes->least) && allowed.has(extremes->greatest);
}

}  // namespace

std::optional<DomainFault> outside(const Tensor& tensor, const Extremes& allowed, std::string reason) {
  if (is_made_within(tensor, allowed)) return std::nullopt;
  DomainFault fault{tensor.name, 0, "", 0, std::move(reason)};
  double run[256];
  int64_t end = tensor.size();
  for (int64_t i = 0; i < end; i += 256) {
    const int64_t count = std::min<int64_t>(256, end - i);
    if (tensor.is_held()) {
      decode_run(tensor, i, count, run);
      bool all = true;  // as of nearly all runs: several at once
      for (int64_t j = 0; j < count; ++j) all &= (run[j] >= allowed.least) & (run[j] <= allowed.greatest);
      if (all) continue;
    }
    for (int64_t j = 0; j < count; ++j) {
      const double x = tensor.is_held() ? run[j] : tensor.value(i + j);
      if (allowed.has(x) || fault.elements++ > 0) continue;
      fault.element = tensor.element_name(i + j), fault.value = x;
      if (!tensor.is_held()) end = std::min(end, i + j + kLookedAtFurther);
    }
  }
  fault.more = end < tensor.size();
  return fault.elements ? std::optional(fault) : std::nullopt;
}

std::vector<DomainFault> outside_domain(const Operator& op, const TensorMap& inputs) {
  std::vector<DomainFault> faults;
  std::vector<ArgumentSpec> arguments = op.inputs;
  for (const ArgumentSpec& cotangent : op.cotangents()) arguments.push_back(cotangent);
  for (const ArgumentSpec& argument : arguments) {
    const auto found = inputs.find(std::string(argument.name));
    if (found == inputs.end()) continue;
    std::optional<DomainFault> fault = outside(found->second, allowed(argument), reason(argument));
    if (!fault) continue;
    fault->input = std::string(argument.name);
    faults.push_back(*std::move(fault));
  }
  return faults;
}

namespace {

/// What makes a token's transition, or that of each of its writes, as rows [b, t, write, head] of a tensor;
/// null where it is absent.
struct TransitionRows {
  const Tensor *reader = nullptr, *writer = nullptr, *along = nullptr;
  std::vector<const Tensor*> rates;

  TransitionRows(const Operator& op, const TensorMap& inputs) {
    for (const ArgumentSpec& argument : op.inputs) {
      const auto found = inputs.find(std::string(argument.name));
      if (found == inputs.end() || !found->second.is_held()) continue;
      if (argument.role == Role::unit) reader = &found->second;
      if (argument.role == Role::opposed) writer = &found->second;
      if (argument.role == Role::along) along = &found->second;
      if (argument.role == Role::rate) rates.push_back(&found->second);
    }
  }
  /// The axis of heads: behind B, T and what else a token has before them.
  static size_t head_axis(const Tensor& x) {
    size_t at = 2;
    while (!x.axes[at].name.starts_with("H")) ++at;
    return at;
  }
  static int64_t heads(const Tensor& x) { return x.axes[head_axis(x)].size; }
  int64_t writes() const { return head_axis(*reader) > 2 ? reader->axes[2].size : 1; }
  static int64_t width(const Tensor& x) {
    const size_t channels = head_axis(x) + 1;
    return x.axes.size() > channels ? x.axes[channels].size : 1;
  }
  /// First element of a head's row; `of`: heads of whom it is one.
  static int64_t first(const Tensor& x, int64_t write, int64_t head, int64_t of) {
    return (write * heads(x) + head / (of / heads(x))) * width(x);
  }
  /// visit(x) of a head's elements at a write.
  template <typename Visit>
  static void each(const Tensor& x, int64_t write, int64_t head, int64_t of, const Visit& visit) {
    const int64_t row = first(x, write, head, of);
    for (int64_t c = 0; c < width(x); ++c) visit(x.value(row + c), c);
  }
  int64_t all_heads() const {
    int64_t most = heads(*reader);
    for (const Tensor* x : rates) most = std::max(most, heads(*x));
    return most;
  }

  /// log of the factor along what is replaced, at least 1.
  double growth(int64_t write, int64_t head, int64_t of) const {
    double taken = 0;
    std::vector<double> row;
    each(*reader, write, head, of, [&](double x, int64_t) { row.push_back(x); });
    if (writer)
      each(*writer, write, head, of, [&](double x, int64_t c) { taken -= x * row[static_cast<size_t>(c)]; });
    else
      each(along ? *along : *reader, write, head, of,
           [&](double x, int64_t c) { taken += x * row[static_cast<size_t>(c)]; });
    double rate = rates.empty() ? 1 : 0;
    for (const Tensor* x : rates)
      each(*x, write, head, of, [&](double each_rate, int64_t) { rate = std::fmax(rate, each_rate); });
    return std::log(std::fmax(1, std::fabs(1 - rate * taken)));
  }
};

/// Of the writes from `first` to `end`, taken in their order or from the last one on: the one with which they
/// lengthen a state too much; -1: none.
int64_t too_long_at(const TransitionRows& rows, int64_t first, int64_t end, int64_t head, int64_t of,
                    bool back) {
  double nats = 0;
  for (int64_t i = 0; i < end - first; ++i) {
    const int64_t at = back ? end - 1 - i : first + i;
    nats += rows.growth(at, head, of);
    if (nats > std::log(kLongestGrowth)) return at;
  }
  return -1;
}

}  // namespace

std::vector<Lengthening> lengthenings(const Operator& op, const std::vector<int64_t>& cu_seqlens,
                                      const TensorMap& inputs) {
  std::vector<Lengthening> all;
  const TransitionRows rows(op, inputs);
  if (!rows.reader) return all;
  const Tensor& x = *rows.reader;
  const int64_t batches = x.axes[0].size, T = x.axes[1].size, of = rows.all_heads(), writes = rows.writes();
  std::vector<int64_t> ends = cu_seqlens;
  for (int64_t b = 0; cu_seqlens.empty() && b <= batches; ++b) ends.push_back(b * T);
  for (int64_t head = 0; head < of; ++head)
    for (size_t n = 0; n + 1 < ends.size(); ++n) {
      const int64_t first = ends[n] * writes, end = ends[n + 1] * writes;
      const int64_t at = too_long_at(rows, first, end, head, of, false);
      if (at < 0) continue;
      const int64_t i = TransitionRows::first(x, first, head, of), tokens = (at - first) / writes + 1;
      // Sums in another order: what just passes the limit may not pass it from behind.
      const int64_t back = std::max(first, too_long_at(rows, first, end, head, of, true));
      const std::string reason = fmt::format(
          "the transitions of the {} tokens from this one on, decays aside, lengthen a state by more than "
          "{:.0f}",
          tokens, kLongestGrowth);
      all.push_back({static_cast<int64_t>(n), head, of, at / writes, back / writes,
                     DomainFault{x.name, tokens, x.element_name(i), x.value(i), reason}});
    }
  return all;
}

std::optional<DomainFault> lengthening(const Operator& op, const std::vector<int64_t>& cu_seqlens,
                                       const TensorMap& inputs) {
  const std::vector<Lengthening> all = lengthenings(op, cu_seqlens, inputs);
  return all.empty() ? std::nullopt : std::optional(all.front().fault);
}

std::string describe(const DomainFault& fault) {
  return fmt::format("{} = {} ({}{} element{}): {}", fault.element, fault.value,
                     fault.more ? "at least " : "", fault.elements, fault.elements == 1 ? "" : "s",
                     fault.reason);
}

}  // namespace assay
