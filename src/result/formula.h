// Is the formula right? The program's outputs in exact arithmetic against the reference: roundings, however
// many the kernel declares, have no part in it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"

namespace assay {

struct FormulaElement {
  std::string element;  ///< "dg[b=0,t=17,h=3,k=64]"
  int64_t flat = -1;
  double exact = 0;       ///< what the program's instructions give on real numbers
  double expected = 0;    ///< the reference
  double difference = 0;  ///< |exact - expected|
  /// What may lie between them though the formula is right: the reference's radius, the shadow's own
  /// rounding, the rounding of the kernel's constants as far as it reaches this element.
  double allowed = 0;
};
template <typename Io>
void fields(Io& io, FormulaElement& x) {
  io.type("formula_element", "the element of the largest difference / allowed");
  ASSAY_FIELD(element);
  ASSAY_FIELD(flat);
  ASSAY_FIELD(exact, "what the program's instructions give on real numbers");
  ASSAY_FIELD(expected, "the reference");
  ASSAY_FIELD(difference);
  ASSAY_FIELD(allowed);
}

struct FormulaOutput {
  std::string name;
  int64_t elements = 0;
  int64_t judged = 0;     ///< the others are not finite, or no shadow follows them
  int64_t violation = 0;  ///< difference > allowed
  FormulaElement worst;
  /// Relative to the root mean square of the output's reference; 0 where that is 0.
  double max_difference = 0;
  double max_allowed = 0;  ///< what a fault of the formula must exceed to be seen, wherever it is
};
template <typename Io>
void fields(Io& io, FormulaOutput& x) {
  io.type("formula_output");
  ASSAY_FIELD(name);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(judged, "the others are not finite, or no shadow follows them");
  ASSAY_FIELD(violation);
  ASSAY_FIELD(worst);
  ASSAY_FIELD(max_difference, "relative to the root mean square of the output's reference");
  ASSAY_FIELD(max_allowed, "likewise: what a fault of the formula must exceed to be seen");
}

struct FormulaReport {
  std::vector<FormulaOutput> outputs;
  std::string skipped;  ///< why nothing is judged; empty where it is
  uint64_t turned = 0;  ///< comparisons that exact operands would have decided the other way
  std::string loss;     ///< "atom.add.f32 at chunk.cu:12": behind it no shadow followed first
  double seconds = 0;
  /// Null where it was not judged.
  const FormulaOutput* output(const std::string& name) const {
    for (const FormulaOutput& output : outputs)
      if (output.name == name) return &output;
    return nullptr;
  }
  /// Elements that nothing is said of; of these outputs some are finite.
  int64_t unjudged() const {
    int64_t count = 0;
    for (const FormulaOutput& output : outputs) count += output.elements - output.judged;
    return count;
  }
  bool violated() const {
    for (const FormulaOutput& output : outputs)
      if (output.violation > 0) return true;
    return false;
  }
};
template <typename Io>
void fields(Io& io, FormulaReport& x) {
  io.type("formula", "the program's outputs in exact arithmetic against the reference");
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(skipped, "why nothing is judged");
  ASSAY_FIELD(turned, "comparisons that exact operands would have decided the other way");
  ASSAY_FIELD(loss, "the first instruction behind which nothing is judged");
  ASSAY_FIELD(seconds);
}

}  // namespace assay
