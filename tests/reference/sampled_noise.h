// Root mean squares of samples of rounding noise, by output.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "reference/operator.h"
#include "reference/rounding_noise.h"
#include "reference/slices.h"

namespace assay {

struct SampledNoise {
  double squares = 0, elements = 0;
  int blocks = 0;
  bool bounded = true;  ///< what the rest moves is finite everywhere

  double rms() const { return std::sqrt(squares / elements); }
};

/// Of all slices of a problem, near and far together.
inline std::map<std::string, SampledNoise> sampled_noise(const Problem& p,
                                                         void (*sample)(const Problem&, const Slice&,
                                                                        const NoiseVisit&)) {
  std::map<std::string, SampledNoise> found;
  for (const Slice& slice : slices_of(p))
    sample(p, slice, [&](const NoiseBlock& b) {
      SampledNoise& to = found[std::string(b.output)];
      ++to.blocks, to.elements += static_cast<double>(b.rows * b.columns);
      for (int64_t i = 0; i < b.rows * b.columns; ++i) {
        to.bounded = to.bounded && (!b.moved || std::isfinite(b.moved[i]));
        for (int64_t s = i * kNoiseSamples; s < (i + 1) * kNoiseSamples; ++s) {
          const double e = (b.near ? b.near[s] : 0) + (b.far ? b.far[s] : 0);
          to.squares += e * e / kNoiseSamples;
        }
      }
    });
  return found;
}

}  // namespace assay
