// Do the declared roundings explain the errors? A statistical verdict, beside the proved bound, and what
// either would have seen.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"

namespace assay {

/// Errors of one part of an output: a block of 64 tokens of one head, a quarter of a sequence, all of it.
/// RMS are relative to the root mean square of the exact values there.
struct RoundingPart {
  std::string where;  ///< "o of tokens 64 to 127, head 1, sequence 0"
  int64_t elements = 0;
  double error = 0;      ///< RMS of the errors
  double predicted = 0;  ///< that of the declared roundings
  double ratio = 0;      ///< of the two
  double allowed_ratio = 0;
  double slope = 1;  ///< of the values on the exact ones
  double allowed_slope = 0;
  double bias = 0;  ///< mean error
  double allowed_bias = 0;
  /// Of errors that a state carries from block to block: how far above their mean, in standard deviations.
  double carried = 0, allowed_carried = 0;
  double excess = 0;  ///< the largest of all over what is allowed of it: above 1 it is unlikely
};
/// "o of tokens 12288 to 16383, head 0, sequence 0 has 41 times the error that the declared roundings
/// explain, where 1.3 times may be; slope 0.97".
std::string sentence_of(const RoundingPart&);
template <typename Io>
void fields(Io& io, RoundingPart& x) {
  io.type("rounding_part",
          "errors of one part of an output, relative to the root mean square of the exact values there");
  ASSAY_FIELD(where);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(error, "root mean square of the errors");
  ASSAY_FIELD(predicted, "that of the declared roundings");
  ASSAY_FIELD(ratio, "error / predicted");
  ASSAY_FIELD(allowed_ratio);
  ASSAY_FIELD(slope, "of the values on the exact ones");
  ASSAY_FIELD(allowed_slope, "how far from 1 it may be");
  ASSAY_FIELD(bias, "mean error");
  ASSAY_FIELD(allowed_bias);
  ASSAY_FIELD(carried,
              "errors alike from block to block, as a state carries them: standard deviations above what the "
              "declared roundings explain");
  ASSAY_FIELD(allowed_carried);
  ASSAY_FIELD(excess, "the largest of all over what is allowed of it; above 1 it is unlikely");
}

struct RoundingOutput {
  std::string name;
  int64_t parts = 0, unlikely = 0;
  RoundingPart worst;   ///< of the largest excess
  RoundingPart all;     ///< the whole output
  std::string skipped;  ///< why the model says nothing of it
};
template <typename Io>
void fields(Io& io, RoundingOutput& x) {
  io.type("rounding_output");
  ASSAY_FIELD(name);
  ASSAY_FIELD(parts, "parts that were judged");
  ASSAY_FIELD(unlikely, "of those, how many the declared roundings do not explain");
  ASSAY_FIELD(worst, "the part of the largest excess");
  ASSAY_FIELD(all, "the whole output");
  ASSAY_FIELD(skipped, "why the model says nothing of this output; empty where it does");
}

/// The smallest uniform relative error of an output that would have been seen, infinite where none would; by
/// which verdict. Above 1 zeros would have passed, above 2 a flipped sign.
struct PowerOutput {
  std::string name;
  double smallest = 0;
  std::string by;            ///< "bound", "statistic" or "formula"
  double smallest_late = 0;  ///< of an error in the last quarter of the tokens only
  std::string by_late;
  double error = 0;  ///< RMS of the errors, relative to that of the exact values
  bool zeros = false, flipped = false;
  bool inconclusive =
      false;  ///< zeros would have passed, here or in the last quarter, where the exact values are not
};
template <typename Io>
void fields(Io& io, PowerOutput& x) {
  io.type("power_output", "the smallest uniform relative error of an output that would have been seen");
  ASSAY_FIELD(name);
  ASSAY_FIELD(smallest);
  ASSAY_FIELD(by, "the verdict that would have seen it: bound, statistic or formula");
  ASSAY_FIELD(smallest_late, "of an error in the last quarter of the tokens only");
  ASSAY_FIELD(by_late);
  ASSAY_FIELD(error, "root mean square of the errors over that of the exact values");
  ASSAY_FIELD(zeros, "zeros in place of the output would have passed");
  ASSAY_FIELD(flipped, "the output with the other sign would have passed");
  ASSAY_FIELD(inconclusive, "zeros would have passed, where the exact values are not zero");
}

struct RoundingReport {
  std::vector<RoundingOutput> outputs, expected;  ///< the kernel's; those that the inputs' file holds
  double false_alarms = 0;                        ///< probability of one in the whole run, under the model
  double seconds = 0;
  bool unlikely() const {
    for (const RoundingOutput& output : outputs)
      if (output.unlikely > 0) return true;
    return false;
  }
};
template <typename Io>
void fields(Io& io, RoundingReport& x) {
  io.type("rounding", "whether the declared roundings explain the errors: a statistical verdict");
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(expected, "outputs that the inputs' file holds");
  ASSAY_FIELD(false_alarms, "probability of one in the whole run, under the model");
  ASSAY_FIELD(seconds);
}

struct PowerReport {
  std::vector<PowerOutput> outputs, expected;
  bool inconclusive() const {
    for (const auto* all : {&outputs, &expected})
      for (const PowerOutput& output : *all)
        if (output.inconclusive) return true;
    return false;
  }
};
template <typename Io>
void fields(Io& io, PowerReport& x) {
  io.type("power", "what the verdicts would have seen");
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(expected, "outputs that the inputs' file holds");
}

}  // namespace assay
