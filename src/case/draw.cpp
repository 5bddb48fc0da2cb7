#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/case/case.h"
#include "src/case/decay_profiles.h"
#include "src/case/override.h"
#include "src/case/values.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

/// One token's place: its sequence, its position there and the sequence's length.
struct Place {
  int64_t sequence, position, length;
};

std::vector<Place> places(const Case& c) {
  std::vector<Place> all(static_cast<size_t>(c.T));
  for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n) {
    for (int64_t t = c.cu_seqlens[n]; t < c.cu_seqlens[n + 1]; ++t) {
      all[t] = {static_cast<int64_t>(n), t - c.cu_seqlens[n], c.cu_seqlens[n + 1] - c.cu_seqlens[n]};
    }
  }
  if (c.cu_seqlens.empty()) {
    for (int64_t t = 0; t < c.T; ++t) all[t] = {0, t, c.T};
  }
  return all;
}

/// Sizes of the tensor seen as [b][t][h][c]: an axis the argument lacks has size 1; every axis but B, N, T,
/// H, HV and the last is folded into the channel.
struct Extent {
  int64_t b = 1, t = 1, h = 1, c = 1;
  bool has_time = false;
};

Extent extent_of(const Tensor& tensor) {
  Extent e;
  for (const auto& axis : tensor.axes) {
    if (axis.name == "B" || axis.name == "N")
      e.b *= axis.size;
    else if (axis.name == "T")
      e.t = axis.size, e.has_time = true;
    else if (axis.name == "H" || axis.name == "HV")
      e.h *= axis.size;
    else
      e.c *= axis.size;
  }
  return e;
}

template <typename DrawElement>
void fill(Tensor& tensor, const std::vector<Place>& tokens, DrawElement draw) {
  const Extent e = extent_of(tensor);
  int64_t flat = 0;
  for (int64_t b = 0; b < e.b; ++b) {
    for (int64_t t = 0; t < e.t; ++t) {
      const Place place = e.has_time ? tokens[t] : Place{0, 0, 1};
      for (int64_t h = 0; h < e.h; ++h) {
        for (int64_t c = 0; c < e.c; ++c) {
          const Coordinates at{b + place.sequence, place.position, h, c};
          tensor.set(flat++, draw(at, place.length, e.c));
        }
      }
    }
  }
}

Tensor draw_argument(const ArgumentSpec& spec, const Case& c, const std::vector<Place>& tokens) {
  const Sizes sizes = sizes_of(c);
  std::vector<Axis> axes;
  for (const auto axis : spec.axes) axes.push_back({std::string(axis), sizes.of(axis)});
  Tensor tensor(std::string(spec.name), dtype_of(c, spec), axes);
  const RandomStream random(c.seed, spec.name);
  if (spec.role == Role::log_decay) {
    const ParsedDecay decay = parse_decay(c.decay);
    fill(tensor, tokens, [&](const Coordinates& at, int64_t length, int64_t) {
      return decay.profile->draw({random, decay.arguments, at, length});
    });
  } else {
    const ValueKind& kind = find_values(c.values);
    fill(tensor, tokens, [&](const Coordinates& at, int64_t, int64_t channels) {
      const double value = kind.draw({random, c, spec.name, at, channels});
      return spec.role == Role::positive ? std::fabs(value) : value;
    });
  }
  return tensor;
}

}  // namespace

TensorMap draw_inputs(const Case& c, const Operator& op) {
  const std::vector<Place> tokens = places(c);
  TensorMap inputs;
  for (const auto& spec : inputs_of(c, op)) {
    if (is_present(c, spec)) inputs.emplace(spec.name, draw_argument(spec, c, tokens));
  }
  for (const auto& text : c.overrides) apply_override(parse_override(text), inputs);
  return inputs;
}

}  // namespace assay
