#include "src/verification/diagnosis/meanings/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace assay {
namespace {

/// Each has an evaluation of its own, or each pair of them.
constexpr int64_t kMostChunks = 8, kMostPairedChunks = 5;

/// Which decays are changed on the way from a write to what reads it: where both are of one chunk; else in
/// the write's chunk, in the chunks between, and in the reader's.
struct Ways {
  bool within, to_end, between, from_start;
  /// What enters a chunk is read with the reader's own decay where it should be without, or the reverse; what
  /// leaves it has decayed by the write's own gate.
  bool other_read = false, other_write = false;

  /// What a kernel does to states it does to their gradients, from the last chunk to the first.
  Ways mirrored() const { return {within, from_start, between, to_end, other_write, other_read}; }
  /// Neither all writes of a chunk nor all reads of one can be followed at once.
  bool of_pairs() const { return to_end != between && between != from_start; }
  bool operator==(const Ways&) const = default;
};
struct Path {
  const char* text;
  Ways ways;
};
constexpr Path kPaths[] = {
    {"inside a chunk of {}", {true, false, false, false}},
    {"from the state before a chunk of {} to its tokens", {false, false, false, true}},
    {"in the states before chunks of {} and the final one", {false, true, true, false}},
    {"of what crosses the edge of a chunk of {}", {false, true, true, true}},
    {"in the chunks of {} between a write and what reads it", {false, false, true, false}}};

int64_t tokens_of(const FailingRun& run) {
  return run.problem.sizes.B * run.problem.sizes.T;
}

/// The given gates, and behind them the changed ones: row tokens_of(run) + r is the changed row r.
FailingRun with_both_gates(const FailingRun& run, const TensorChange& change) {
  FailingRun both = run;
  TensorMap inputs = run.inputs();
  for (const std::string& name : run.gates()) {
    const Tensor& given = run.inputs().at(name);
    const Tensor changed = change(given);
    std::vector<Axis> axes = given.axes;
    axes[static_cast<size_t>(axis_of(given, "B"))].size *= 2;
    Tensor joined(name, Dtype::fp64, axes);
    for (int64_t i = 0; i < given.size(); ++i) {
      joined.set(i, given.value(i));
      joined.set(given.size() + i, changed.value(i));
    }
    inputs[name] = std::move(joined);
  }
  both.owned = std::make_shared<const TensorMap>(std::move(inputs));
  both.problem.inputs = both.owned.get();
  return both;
}

/// The parts of a recurrence with chunks of C tokens, added up.
class Parts {
 public:
  Parts(const FailingRun& given, const FailingRun& both, int64_t C) : given_(given), both_(both), C_(C) {
    for (const auto& [first, length] : given.spans()) chunks_ = std::max(chunks_, (length + C - 1) / C);
  }
  std::optional<Prediction> sum(const Ways& w) const {
    std::optional<Prediction> all = part(false, true, [&](const TokenPlace& p) {
      Events e{{row(p, w.within), p.row, p.row}};
      if (p.t % C_ == 0) e.insert(e.begin(), kCleared);
      return e;
    });
    if (w.other_read) return by_readers(w, std::move(all));
    if (w.other_write) return by_writers(w, std::move(all));
    if (w.of_pairs()) return by_pairs(w, std::move(all));
    return w.to_end == w.between ? by_readers(w, std::move(all)) : by_writers(w, std::move(all));
  }

 private:
  static constexpr Event kCleared{-1, -1, -1, true};

  std::optional<Prediction> by_readers(const Ways& w, std::optional<Prediction> sum) const {
    for (int64_t c = 0; c < chunks_; ++c)
      sum = sum_of(sum, part(false, true, [&](const TokenPlace& p) {
                     if (p.t / C_ < c) return Events{{row(p, w.between), p.row, -1}};
                     return p.t / C_ == c ? entering(w, p) : Events{};
                   }));
    return sum_of(sum, part(true, true, [&](const TokenPlace& p) {
                    return Events{{row(p, w.between), p.row, -1}};
                  }));
  }
  std::optional<Prediction> by_writers(const Ways& w, std::optional<Prediction> sum) const {
    sum = sum_of(sum, part(true, true, [&](const TokenPlace& p) {
                   return Events{{row(p, w.between), -1, p.row}};
                 }));
    for (int64_t c = 0; c < chunks_; ++c)
      sum = sum_of(sum, part(true, false, [&](const TokenPlace& p) {
                     if (p.t / C_ < c) return Events{};
                     return p.t / C_ == c ? leaving(w, p) : Events{{row(p, w.between), -1, p.row}};
                   }));
    return sum;
  }
  /// Writer -1 is the initial state, reader chunks_ the final one.
  std::optional<Prediction> by_pairs(const Ways& w, std::optional<Prediction> sum) const {
    for (int64_t writer = -1; writer < chunks_; ++writer)
      for (int64_t reader = writer + 1; reader <= chunks_; ++reader)
        sum = sum_of(sum, part(reader == chunks_, writer < 0, [&](const TokenPlace& p) {
                       const int64_t c = p.t / C_;
                       if (c == writer) return Events{{row(p, w.to_end), p.row, -1}};
                       if (c == reader) return Events{{row(p, w.from_start), -1, p.row}};
                       return c > writer && c < reader ? Events{{row(p, w.between), -1, -1}} : Events{};
                     }));
    return sum;
  }
  std::optional<Prediction> part(bool final_state, bool initial_state,
                                 const std::function<Events(const TokenPlace&)>& events) const {
    Schedule schedule = schedule_of(given_, events);
    schedule.final_state = final_state, schedule.initial_state = initial_state;
    std::optional<Prediction> result = evaluate_schedule(both_, schedule);
    for (auto& [name, output] : result ? *result : Prediction{})
      for (size_t i = 0; i < output.mid.size(); ++i)
        if (std::isnan(output.mid[i])) result->at(name).mid[i] = 0;  // not read in this part
    if (!initial_state && result)  // it takes no part: neither does its gradient
      for (const std::string& name : given_.states())
        if (const auto found = result->find("d" + name); found != result->end())
          std::fill(found->second.mid.begin(), found->second.mid.end(), 0.0);
    return result;
  }
  Events entering(const Ways& w, const TokenPlace& p) const {
    const int64_t decay = row(p, w.from_start);
    if (!w.other_read) return {{decay, -1, p.row}};
    if (reads_before_write(given_)) return {{decay, -1, -1}, {-1, -1, p.row}};
    return {{-1, -1, p.row}, {decay, -1, -1}};
  }
  Events leaving(const Ways& w, const TokenPlace& p) const {
    const int64_t decay = row(p, w.to_end);
    if (!w.other_write) return {{decay, p.row, -1}};
    return {{-1, p.row, -1}, {decay, -1, -1}};
  }
  int64_t row(const TokenPlace& p, bool changed) const { return p.row + (changed ? tokens_of(given_) : 0); }

  const FailingRun &given_, &both_;
  const int64_t C_;
  int64_t chunks_ = 0;
};

std::optional<Prediction> on_path(const FailingRun& given, const TensorChange& change, int64_t C,
                                  const Path& path, bool mirrors) {
  const FailingRun both = with_both_gates(given, change);
  const Parts parts(given, both, C);
  std::optional<Prediction> p = parts.sum(path.ways);
  if (!p) return p;
  if (given.backward && mirrors && !(path.ways.mirrored() == path.ways)) {
    const std::optional<Prediction> mirrored = parts.sum(path.ways.mirrored());
    for (const auto& [name, output] : mirrored ? *mirrored : Prediction{})
      if (given.argument(name.substr(1)) && name.starts_with("d") && name != "dq" && name != "dr")
        p->at(name) = output;
  }
  std::vector<std::string> silent = given.gates();
  if (given.sums_gate_gradient) silent.push_back("g_gamma");
  for (const std::string& name : silent)
    if (const ReferenceOutput* right = given.expected("d" + name))
      (*p)["d" + name] = {std::vector<double>(right->mid.size(), std::numeric_limits<double>::quiet_NaN()),
                          right->bound};
  return p;
}

/// `change` of the gates on each path through chunks of C; `mirrors`: gradients of what is written on the
/// mirrored one.
std::vector<Variant> on_paths(const FailingRun& run, const std::string& text, std::span<const Path> paths,
                              const std::function<TensorChange(int64_t C)>& change, bool mirrors) {
  std::vector<Variant> v;
  if (run.gates().empty() || !can_reset(run) || !is_linear(run)) return v;
  for (const std::string& name : run.gates())
    if (axis_of(run.inputs().at(name), "B") < 0) return v;
  int64_t longest = 0;
  for (const auto& [first, length] : run.spans()) longest = std::max(longest, length);
  for (const int64_t C : chunk_sizes(run))
    for (const Path& path : paths) {
      if (longest > (path.ways.of_pairs() ? kMostPairedChunks : kMostChunks) * C) continue;
      v.push_back(
          {fmt::format("{} {}", text, fmt::format(fmt::runtime(path.text), C)),
           [&run, change = change(C), C, path, mirrors] { return on_path(run, change, C, path, mirrors); }});
      v.back().sweep = true;
    }
  return v;
}

}  // namespace

std::vector<Variant> gates_changed_on_a_path(const FailingRun& run, const std::string& text,
                                             const TensorChange& change) {
  return on_paths(
      run, text, kPaths, [change](int64_t) { return change; }, true);
}

std::vector<Variant> entering_read_otherwise(const FailingRun& run) {
  constexpr Path kEntering[] = {
      {"the chunk of {} that it enters", {false, false, false, false, true, false}}};
  const bool early = !reads_before_write(run);
  return on_paths(
      run,
      early ? "what is read lacks the reader's own decay in" : "what is read has the reader's own decay in",
      kEntering, [](int64_t) { return [](const Tensor& g) { return g; }; }, false);
}

std::vector<Variant> leaving_decayed_by_own_gate(const FailingRun& run) {
  constexpr Path kLeaving[] = {{"the chunk of {} that it leaves", {false, false, false, false, false, true}}};
  return on_paths(
      run, "a write has decayed by its own gate in", kLeaving,
      [](int64_t) { return [](const Tensor& g) { return g; }; }, false);
}

std::vector<Variant> edge_gates_changed_on_a_path(const FailingRun& run, double factor) {
  const std::span<const Path> crossing = std::span(kPaths).subspan(1);
  std::vector<Variant> v;
  for (const bool first : {true, false})
    append(v, on_paths(
                  run,
                  fmt::format("the chunk's {} token {}", first ? "first" : "last",
                              factor == 0 ? "does not decay" : "decays twice"),
                  crossing,
                  [&run, factor, first](int64_t C) {
                    return [&run, factor, first, C](const Tensor& g) {
                      return times_at(run, g, factor, [=](const TokenPlace& p) {
                        return first ? p.t % C == 0 : p.t % C == C - 1 || p.t == p.length - 1;
                      });
                    };
                  },
                  false));
  return v;
}

}  // namespace assay
