// Meanings of the scale.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/diagnosis/meanings/propose.h"

namespace assay {
namespace {

std::vector<Variant> with_scale(const FailingRun& run, double scale, std::string text) {
  if (!run.op->takes_scale || scale == run.problem.scale || !std::isfinite(scale)) return {};
  return {{std::move(text), [&run, scale] {
             return evaluate_with(run, run.inputs(), [scale](Problem& p) { p.scale = scale; });
           }}};
}

/// What reaches an output within a chunk of C, or over its edges, has the scale times `factor`; what comes from the
/// final state's cotangent has no scale.
std::optional<Prediction> partly_scaled(const FailingRun& run, int64_t C, bool within, double factor) {
  const auto usual = [](const TokenPlace& p) { return Events{{p.row, p.row, p.row}}; };
  Schedule queries = schedule_of(run, usual);
  queries.final_state = false;
  Schedule chunks = schedule_of(run, [C](const TokenPlace& p) {
    Events e{{p.row, p.row, p.row}};
    if (p.t % C == 0) e.insert(e.begin(), Event{-1, -1, -1, true});  // the initial state comes over an edge too
    return e;
  });
  chunks.initial_state = chunks.final_state = false;
  const auto all = evaluate_schedule(run, queries), inside = evaluate_schedule(run, chunks);
  if (!all || !inside) return std::nullopt;
  const Prediction part = within ? *inside : combine(1, *all, -1, *inside);
  Prediction p = combine(1, reference_prediction(run), factor - 1, part);
  const Prediction right = reference_prediction(run);  // bounds: those of what is there, scaled
  for (auto& [name, output] : p)
    for (size_t i = 0; i < output.bound.size(); ++i)
      output.bound[i] = right.at(name).bound[i] * std::max(1.0, std::fabs(factor));
  return p;
}

std::vector<Variant> by_parts(const FailingRun& run, double factor, const char* what) {
  std::vector<Variant> v;
  if (!run.op->takes_scale || run.problem.scale == 1 || !is_linear(run) || !can_reset(run)) return v;
  std::vector<int64_t> sizes = chunk_sizes(run);
  for (const int64_t C : sizes)
    for (const bool within : {true, false})
      v.push_back({fmt::format("what passes {} chunks of {} {}", within ? "within" : "between", C, what),
                   [&run, C, within, factor] { return partly_scaled(run, C, within, factor); }});
  return v;
}

std::vector<Variant> of_another_size(const FailingRun& run) {
  std::vector<Variant> v;
  const Sizes& s = run.problem.sizes;
  for (const char* axis : {"V", "M", "T", "H", "K"}) {
    const auto size = static_cast<double>(s.of(axis));
    append(v, with_scale(run, 1 / std::sqrt(size), fmt::format("the scale is {}^-1/2", axis)));
    append(v, with_scale(run, 1 / size, fmt::format("the scale is 1/{}", axis)));
  }
  for (const double size : {16., 32., 64., 128., 256.})
    append(v, with_scale(run, 1 / std::sqrt(size), fmt::format("the scale is {}^-1/2", size)));
  append(v, with_scale(run, std::sqrt(run.problem.scale), "the scale is its own root"));
  append(v, with_scale(run, 1 / run.problem.scale, "the scale divides"));
  return v;
}

}  // namespace

std::vector<Meaning> scale_meanings() {
  return {{"scale-missing", "the scale is not applied", "multiply by it once",
           [](const FailingRun& run) {
             std::vector<Variant> v = with_scale(run, 1, "the scale is 1");
             append(v, by_parts(run, 1 / run.problem.scale, "lacks the scale"));
             return v;
           }},
          {"scale-squared", "the scale is applied twice", "two factors both hold it",
           [](const FailingRun& run) {
             std::vector<Variant> v =
                 with_scale(run, run.problem.scale * run.problem.scale, "the scale is its own square");
             append(v, by_parts(run, run.problem.scale, "has the scale twice"));
             return v;
           }},
          {"scale-of-another-size", "the scale is made from another size", "check which size it is made from",
           of_another_size}};
}

}  // namespace assay
