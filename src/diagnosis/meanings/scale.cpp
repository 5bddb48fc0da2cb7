// Meanings of the scale.
#include <fmt/format.h>

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
           [](const FailingRun& run) { return with_scale(run, 1, "the scale is 1"); }},
          {"scale-squared", "the scale is applied twice", "two factors both hold it",
           [](const FailingRun& run) {
             return with_scale(run, run.problem.scale * run.problem.scale, "the scale is its own square");
           }},
          {"scale-of-another-size", "the scale is made from another size", "check which size it is made from",
           of_another_size}};
}

}  // namespace assay
