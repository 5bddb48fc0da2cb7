#include "src/result/rounding.h"

#include <fmt/format.h>

#include <cmath>

namespace assay {

std::string sentence_of(const RoundingPart& p) {
  std::string text = p.where;
  if (p.carried > p.allowed_carried)
    return text +
           fmt::format(
               " has errors that are carried from block to block, as by a state that is rounded: {:.3g} "
               "standard deviations more than the declared roundings explain, where {:.3g} may be",
               p.carried, p.allowed_carried);
  const bool slope = std::fabs(p.slope - 1) > p.allowed_slope, bias = std::fabs(p.bias) > p.allowed_bias;
  if (p.ratio > p.allowed_ratio)
    text += fmt::format(
        " has {:.3g} times the error that the declared roundings explain, where {:.3g} times may be; slope "
        "{:.3g}",
        p.ratio, p.allowed_ratio, p.slope);
  else if (slope)
    text += fmt::format(
        " has slope {:.5g} on the exact values, where the declared roundings explain {:.2g} from 1", p.slope,
        p.allowed_slope);
  if (bias)
    text += fmt::format("{} mean error is {:.2g} of its root mean square, where they explain {:.2g}",
                        p.ratio > p.allowed_ratio || slope ? ";" : "'s", p.bias, p.allowed_bias);
  return text;
}

}  // namespace assay
