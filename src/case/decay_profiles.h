// Decay profiles: how log decays are drawn. One row each in decay_profiles.def; the row carries the
// behaviour.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/numerics/format.h"
#include "src/base/tensor/extremes.h"
#include "src/case/random.h"

namespace assay {

/// What one gate element is drawn from.
struct DecayDraw {
  const RandomStream& random;
  std::span<const double> arguments;  ///< the profile's, defaults filled in
  Coordinates at;                     ///< t counts from the start of the element's own sequence
  int64_t length = 1;                 ///< tokens of that sequence
};

struct DecayProfile {
  std::string_view name;
  std::string_view arguments;  ///< names of the arguments, "" if none
  std::string_view summary;    ///< one line
  std::vector<double> defaults;
  bool in_domain = true;  ///< false: draws values outside [-1e4, 0] on purpose
  /// Arguments worth trying in fuzzing, as written after the colon.
  std::vector<std::string_view> variants;
  /// Between what its decays lie, whatever the seed and the place: no wider than arguments and lengths need.
  Extremes (*extremes)(std::span<const double> arguments) = nullptr;
  double (*draw)(const DecayDraw&) = nullptr;  ///< natural logarithm of the decay
  /// `count` channels from `at` on at once, the same bits; null where channels are drawn one by one.
  void (*draw_row)(const DecayDraw&, int64_t count, double* out) = nullptr;
};

/// All profiles, in the order of decay_profiles.def.
const std::vector<DecayProfile>& decay_profiles();

/// "ladder:8" taken apart. Throws BadInput for an unknown profile (with the nearest name) or bad arguments.
struct ParsedDecay {
  const DecayProfile* profile;
  std::vector<double> arguments;

  /// Rounded to the format of the gates.
  Extremes extremes(Dtype) const;
};
ParsedDecay parse_decay(std::string_view text);

}  // namespace assay
