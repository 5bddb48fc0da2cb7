#include "src/verification/diagnosis/meanings/propose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace assay {
namespace {

/// First wrong token of any output, counted in its sequence; -1 where only states are wrong.
int64_t first_wrong_token(const FailingRun& run) {
  int64_t first = -1;
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& t = run.outputs->at(o->name);
    const int64_t width = token_width(t);
    if (width == 0) continue;
    for (int64_t flat = 0; flat < t.size(); ++flat) {
      if (o->verdicts[static_cast<size_t>(flat)] != ElementVerdict::violation) continue;
      const int64_t row = flat / width;
      for (const auto& [start, length] : run.spans())
        if (row >= start && row < start + length && (first < 0 || row - start < first)) first = row - start;
    }
  }
  return first;
}

int64_t longest_of(const FailingRun& run) {
  int64_t longest = 0;
  for (const auto& [first, length] : run.spans()) longest = std::max(longest, length);
  return longest;
}

}  // namespace

int64_t token_width(const Tensor& t) {
  const int axis = axis_of(t, "T");
  return axis < 0 ? 0 : t.strides()[static_cast<size_t>(axis)];
}

Variant on_input(const FailingRun& run, std::string text, const std::string& input,
                 const TensorChange& change) {
  Variant variant{std::move(text), [&run, input, change] {
                    return evaluate_with(run, input, change(run.inputs().at(input)));
                  }};
  variant.input = input, variant.change = change;
  return variant;
}

Variant on_schedule(const FailingRun& run, std::string text, const Schedule& schedule) {
  return {std::move(text), [&run, schedule] { return evaluate_schedule(run, schedule); }};
}

std::vector<IndexMap> index_maps(int64_t size) {
  std::vector<IndexMap> maps;
  if (size < 2) return maps;
  maps.push_back({"0 for all", [](int64_t) { return int64_t{0}; }});
  maps.push_back({"one further", [size](int64_t i) { return (i + 1) % size; }});
  if (size > 2) maps.push_back({"one before", [size](int64_t i) { return (i + size - 1) % size; }});
  if (size > 3) maps.push_back({"in reverse order", [size](int64_t i) { return size - 1 - i; }});
  if (size > 2) maps.push_back({"the last for all", [size](int64_t) { return size - 1; }});
  return maps;
}

int head_axis(const Tensor& t) {
  for (const char* letter : {"H", "HV", "HQ"})
    if (const int axis = axis_of(t, letter); axis >= 0) return axis;
  return -1;
}

Tensor moved_in_time(const FailingRun& run, const Tensor& t, int64_t by, bool keep_ends) {
  const int64_t width = token_width(t);
  Tensor out(t.name, Dtype::fp64, t.axes);
  for (const auto& [first, length] : run.spans())
    for (int64_t i = 0; i < length; ++i) {
      int64_t from = i - by;
      if (keep_ends) from = std::clamp<int64_t>(from, 0, length - 1);
      for (int64_t c = 0; c < width && from >= 0 && from < length; ++c)
        out.set((first + i) * width + c, t.value((first + from) * width + c));
    }
  return out;
}

Tensor moved_in_chunks(const FailingRun& run, const Tensor& t, int64_t by, int64_t C) {
  const int64_t width = token_width(t);
  Tensor out(t.name, Dtype::fp64, t.axes);
  for (const auto& [first, length] : run.spans())
    for (int64_t i = 0; i < length; ++i) {
      const int64_t start = i / C * C,
                    from = std::clamp<int64_t>(i - by, start, std::min(length, start + C) - 1);
      for (int64_t c = 0; c < width; ++c)
        out.set((first + i) * width + c, t.value((first + from) * width + c));
    }
  return out;
}

std::vector<Variant> of_one_token_of_each_block(const FailingRun& run, const std::string& input) {
  const int64_t longest = longest_of(run);
  std::vector<Variant> v;
  for (const int64_t C : {2, 4, 8, 16, 32, 64, 128}) {
    const bool whole = C >= longest;
    for (const bool first : {true, false})
      v.push_back(
          on_input(run,
                   fmt::format("{} of the {} token of {} for all of it", input, first ? "first" : "last",
                               whole ? "the sequence" : fmt::format("every {}", C)),
                   input, [&run, C, first](const Tensor& t) {
                     // as far as a block goes in either direction, which ends at its first or last token
                     return moved_in_chunks(run, t, first ? C : -C, C);
                   }));
    if (whole) break;
  }
  return v;
}

Tensor times_at(const FailingRun& run, const Tensor& t, double factor,
                const std::function<bool(const TokenPlace&)>& at) {
  const int64_t width = token_width(t);
  Tensor out = mapped(t, [](double x, int64_t) { return x; });
  int64_t n = 0;
  for (const auto& [first, length] : run.spans()) {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t c = 0; c < width && at({i, length, first + i, n}); ++c)
        out.set((first + i) * width + c, factor * t.value((first + i) * width + c));
    ++n;
  }
  return out;
}

Tensor of_sequences(const FailingRun& run, const Tensor& t, const std::function<int64_t(int64_t)>& from) {
  const int64_t width = token_width(t);
  if (width == 0) return moved(t, axis_of(t, "N"), from);
  Tensor out(t.name, Dtype::fp64, t.axes);
  const auto spans = run.spans();
  for (size_t n = 0; n < spans.size(); ++n) {
    const auto& other = spans[static_cast<size_t>(from(static_cast<int64_t>(n)))];
    for (int64_t i = 0; i < std::min(spans[n].second, t.size() / width - other.first);
         ++i)  // past its end: what follows
      for (int64_t c = 0; c < width; ++c)
        out.set((spans[n].first + i) * width + c, t.value((other.first + i) * width + c));
  }
  return out;
}

double narrowed(Dtype dtype, double x, Narrowing how) {
  const double near = round_to(dtype, x);
  if (how == Narrowing::nearest || !(std::fabs(near) > std::fabs(x))) return near;
  return std::copysign(std::fabs(near) - ulp(dtype, x), x);
}

std::string text_of(Narrowing how, Dtype dtype) {
  return fmt::format("{} to {}", how == Narrowing::nearest ? "rounded" : "cut off", format(dtype).name);
}

Tensor rounded_to(const Tensor& t, Dtype dtype, Narrowing how) {
  return mapped(t, [dtype, how](double x, int64_t) { return narrowed(dtype, x, how); });
}

Tensor with_axes_exchanged(const Tensor& x, size_t a, size_t b) {
  std::vector<size_t> order(x.axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::swap(order[a], order[b]);
  return mapped(x, [&](double, int64_t flat) {
    const std::vector<int64_t> index = x.index(flat);
    int64_t from = 0;
    for (const size_t axis : order) from = from * x.axes[axis].size + index[axis];
    return x.value(from);
  });
}

Tensor zeros(const Tensor& t) {
  return Tensor(t.name, Dtype::fp64, t.axes);
}

std::vector<int64_t> chunk_sizes(const FailingRun& run) {
  std::vector<int64_t> sizes;
  for (int64_t size : {64, 16, 32, 128, 8})
    if (size < longest_of(run)) sizes.push_back(size);
  return sizes;
}

std::vector<Pattern> common_patterns(const FailingRun& run) {
  std::vector<Pattern> list{{"at every token", [](const TokenPlace&) { return true; }}};
  for (const int64_t C : chunk_sizes(run)) {
    list.push_back({fmt::format("at the first token of every {} but the first", C),
                    [C](const TokenPlace& p) { return p.t > 0 && p.t % C == 0; }});
    list.push_back({fmt::format("at the last token of every {}", C),
                    [C](const TokenPlace& p) { return p.t % C == C - 1; }});
    list.push_back({fmt::format("in the last, partial chunk of {}", C),
                    [C](const TokenPlace& p) { return p.length % C != 0 && p.t >= p.length / C * C; }});
    list.push_back({fmt::format("in the last chunk of {}", C),
                    [C](const TokenPlace& p) { return p.t >= (p.length - 1) / C * C; }});
    list.push_back(
        {fmt::format("from the second chunk of {} on", C), [C](const TokenPlace& p) { return p.t >= C; }});
    list.push_back(
        {fmt::format("in the first chunk of {}", C), [C](const TokenPlace& p) { return p.t < C; }});
  }
  list.push_back({"at the first token", [](const TokenPlace& p) { return p.t == 0; }});
  list.push_back({"at the last token", [](const TokenPlace& p) { return p.t == p.length - 1; }});
  return list;
}

std::vector<Slab> slabs_of(int64_t size) {
  std::vector<Slab> slabs;
  if (size > 1) {
    slabs.push_back({"the first", [](int64_t i) { return i == 0; }});
    slabs.push_back({"the last", [size](int64_t i) { return i == size - 1; }});
    slabs.push_back({"all but the first", [](int64_t i) { return i > 0; }});
    slabs.push_back({"all but the last", [size](int64_t i) { return i < size - 1; }});
  }
  for (const int64_t tile : {2, 4, 8, 16, 32, 64, 128})
    if (tile < size) {
      slabs.push_back({fmt::format("the first {}", tile), [tile](int64_t i) { return i < tile; }});
      slabs.push_back({fmt::format("those from {} on", tile), [tile](int64_t i) { return i >= tile; }});
      const int64_t last = (size - 1) / tile * tile;
      slabs.push_back({fmt::format("those from {} on", last), [last](int64_t i) { return i >= last; }});
      slabs.push_back({fmt::format("the first {}", last), [last](int64_t i) { return i < last; }});
      slabs.push_back(
          {fmt::format("the first of every {}", tile), [tile](int64_t i) { return i % tile == 0; }});
      slabs.push_back(
          {fmt::format("all but the first of every {}", tile), [tile](int64_t i) { return i % tile != 0; }});
      slabs.push_back({fmt::format("all but the last of every {}", tile),
                       [tile](int64_t i) { return i % tile != tile - 1; }});
      slabs.push_back(
          {fmt::format("the last of every {}", tile), [tile](int64_t i) { return i % tile == tile - 1; }});
    }
  return slabs;
}

bool only_sums_are_wrong(const FailingRun& run) {
  for (const OutputComparison* o : run.wrong()) {
    const Tensor& t = run.outputs->at(o->name);
    if (token_width(t) > 0 || axis_of(t, "N") >= 0) return false;
  }
  return true;
}

std::vector<Pattern> single_tokens(const FailingRun& run, size_t most) {
  const int64_t longest = longest_of(run), wrong = first_wrong_token(run);
  std::vector<int64_t> tokens;
  for (int64_t t = 0; t < longest; ++t) tokens.push_back(t);
  // A token's fault shows from that token on, or from the end of its chunk on.
  std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) {
    const auto distance = [&](int64_t t) {
      return wrong < 0 ? longest - t : t <= wrong ? wrong - t : longest + t - wrong;
    };
    return distance(a) < distance(b);
  });
  if (tokens.size() > most) tokens.resize(most);
  std::vector<Pattern> list;
  for (const int64_t t : tokens)
    list.push_back({fmt::format("at token {}", t), [t](const TokenPlace& p) { return p.t == t; },
                    static_cast<double>(longest)});
  return list;
}

std::vector<Variant> at_patterns(const FailingRun& run, const std::vector<Pattern>& patterns,
                                 const std::string& text,
                                 const std::function<Events(const TokenPlace&)>& events) {
  std::vector<Variant> variants;
  if (!is_schedulable(run)) return variants;
  for (const Pattern& pattern : patterns) {
    const auto predict = [&run, pattern, events] {
      return evaluate_schedule(run, schedule_of(run, [&](const TokenPlace& p) {
                                 return pattern.holds(p) ? events(p) : Events{{p.row, p.row, p.row}};
                               }));
    };
    variants.push_back({fmt::format("{} {}", text, pattern.text), predict, pattern.choices});
    variants.back().sweep = pattern.choices > 1;
  }
  return variants;
}

double left_by_fit(const FailingRun& run, const std::string& output, double value) {
  return run.is_on_reals(output) ? 0x1p-20 * std::fabs(value) : 0;
}

void append(std::vector<Variant>& to, std::vector<Variant> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace assay
