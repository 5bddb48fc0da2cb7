#include "src/capsule/variation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/case/random.h"

namespace assay {
namespace {

constexpr double kSpike = 64;

struct Variation {
  const char* name;
  bool ranges, others;  ///< of tensors drawn from a range; of those drawn otherwise
  void (*apply)(Tensor&, const DrawnRange&, uint64_t seed);
};

void set_all(Tensor& tensor, double value) {
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
}
/// Some element, the same for the same seed.
int64_t some_element(const Tensor& tensor, uint64_t seed) {
  return RandomStream(seed, tensor.name).below(tensor.size(), {1, 0});
}

const Variation kVariations[] = {
    {"zeros", false, true, [](Tensor& t, const DrawnRange&, uint64_t) { set_all(t, 0); }},
    {"equal", true, true, [](Tensor& t, const DrawnRange&, uint64_t) { set_all(t, t.value(0)); }},
    {"negative", false, true,
     [](Tensor& t, const DrawnRange&, uint64_t) {
       for (int64_t i = 0; i < t.size(); ++i) t.set(i, -std::fabs(t.value(i)));
     }},
    {"spike", true, true,
     [](Tensor& t, const DrawnRange& range, uint64_t seed) {
       const int64_t at = some_element(t, seed);
       t.set(at, range.is_range ? range.high : kSpike * t.value(at));
     }},
    {"lowest", true, false, [](Tensor& t, const DrawnRange& range, uint64_t) { set_all(t, range.low); }},
    {"highest", true, false, [](Tensor& t, const DrawnRange& range, uint64_t) { set_all(t, range.high); }},
};

/// Of positive values only what keeps them so.
bool applies(const Variation& v, const DrawnRange& range) {
  const std::string name = v.name;
  if (range.is_range) return v.ranges;
  return v.others && !(range.positive && (name == "zeros" || name == "negative"));
}

}  // namespace

std::vector<std::string> variations_of(const Capsule& capsule, const std::string& tensor) {
  std::vector<std::string> names;
  const auto drawn = capsule.drawn.find(tensor);
  if (drawn == capsule.drawn.end() || capsule.inputs.at(tensor).size() == 0) return names;
  for (const Variation& v : kVariations)
    if (applies(v, drawn->second)) names.emplace_back(v.name);
  return names;
}

void vary(Capsule& capsule, const std::string& text) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string tensor = part.substr(0, equals);
    const std::string name = equals == part.npos ? "" : part.substr(equals + 1);
    const std::vector<std::string> known = variations_of(capsule, tensor);
    if (known.empty())
      throw BadInput(
          fmt::format("--vary {}: there is no tensor \"{}\" with values drawn at random", part, tensor));
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw BadInput(fmt::format("--vary {}: of {} there are: {}", part, tensor, fmt::join(known, ", ")));
    for (const Variation& v : kVariations)
      if (name == v.name) v.apply(capsule.inputs.at(tensor), capsule.drawn.at(tensor), capsule.seed);
  }
}

}  // namespace assay
