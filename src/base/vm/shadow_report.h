// What a run beside exact arithmetic found: how far each output is from what the same instructions give
// without rounding, and which source lines made the distance.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/program/outcome.h"

namespace assay {

/// Errors of one output's stored values against their own exact arithmetic: the same instructions, branches
/// and integers, from the same inputs, on real numbers.
struct ShadowOutput {
  std::string name;
  int64_t elements = 0;
  int64_t followed = 0;   ///< elements that carry a shadow; the others hold copies or integer results
  int64_t nonfinite = 0;  ///< NaN or infinite: no error is known
  double max_error = 0;   ///< largest |value - exact|
  double rms_error = 0, rms_exact = 0;     ///< root mean squares over followed elements
  std::string worst;                       ///< element of max_error: "o[b=0,t=17,h=0,v=3]"
  double value = 0, exact = 0, bound = 0;  ///< of that element; bound: its roundings, none cancelled
};
template <typename Io>
void fields(Io& io, ShadowOutput& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(followed);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(max_error);
  ASSAY_FIELD(rms_error);
  ASSAY_FIELD(rms_exact);
  ASSAY_FIELD(worst);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(bound);
}

/// One source line's part of the outputs' errors.
struct ShadowLine {
  SourceLocation where;
  std::string instruction;  ///< the opcode of the line with the largest relative rounding
  /// Percent. The error of an element is the sum of one signed part per line; per output the parts' sizes are
  /// summed over the elements and divided by the sum over all lines; then the mean over the outputs that have
  /// errors. Where an element was asked for: of its output.
  double share = 0;
  uint64_t roundings = 0;  ///< lane-instructions of the line whose own rounding was not zero
  double largest = 0;      ///< largest |own rounding| / |result| among them
};
template <typename Io>
void fields(Io& io, ShadowLine& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(share);
  ASSAY_FIELD(roundings);
  ASSAY_FIELD(largest);
}

/// A source line that makes large relative errors out of small ones.
struct ShadowAmplifier {
  SourceLocation where;
  std::string instruction;
  double error = 0;  ///< relative, of its results: the binade that an eighth of them reaches
  /// Times the largest relative error of their operands: the median's binade; or, of an instruction whose
  /// results come back to it around a loop, what it made of the error that comes back, if at once it does
  /// little.
  double growth = 0;
  double value = 0, exact = 0;  ///< the result that is furthest off
  std::array<uint32_t, 3> block{}, thread{};
};
template <typename Io>
void fields(Io& io, ShadowAmplifier& x) {
  io.type("amplifier", "a source line that makes large relative errors out of small ones");
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(error, "relative, of its results: where the binade begins that an eighth of them reaches");
  ASSAY_FIELD(growth,
              "times the largest relative error of their operands: of the median; around a loop, times the "
              "error that came back to it at the start: the median's");
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
}

/// The first instruction instance whose result is further than `threshold` from exact, relative to it.
struct ShadowParting {
  SourceLocation where;
  std::string instruction;
  std::array<uint32_t, 3> block{}, thread{};
  double value = 0, exact = 0, threshold = 0;
};
template <typename Io>
void fields(Io& io, ShadowParting& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(threshold);
}

enum class EdgeQuantity : uint8_t { argument, result };
constexpr std::array<std::string_view, 2> names_of(EdgeQuantity) {
  return {"argument", "result"};
}

/// How near an instruction came to where its format ends.
struct ShadowEdge {
  SourceLocation where;
  std::string instruction;                         ///< opcode
  EdgeQuantity quantity = EdgeQuantity::argument;  ///< what `extreme` is of
  std::string format;                              ///< "fp16": of the result
  double extreme = 0;                              ///< the value nearest to the edge
  double limit = 0;                                ///< the edge
  double distance = 0;                             ///< binades left; 0 or less: reached
  std::string text;                                ///< "saw up to -3.2: safe"
};
template <typename Io>
void fields(Io& io, ShadowEdge& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(quantity);
  ASSAY_FIELD(format);
  ASSAY_FIELD(extreme);
  ASSAY_FIELD(limit);
  ASSAY_FIELD(distance, "binades left; 0 or less: reached");
  ASSAY_FIELD(text);
}

/// One output element against its own exact arithmetic.
struct ShadowElement {
  std::string element;
  double value = 0, exact = 0, bound = 0;  ///< as in ShadowOutput
};
template <typename Io>
void fields(Io& io, ShadowElement& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(bound);
}

struct ShadowReport {
  std::vector<ShadowOutput> outputs;
  std::optional<ShadowElement> element;  ///< the one asked for, where it carries a shadow
  std::vector<ShadowEdge> edges;         ///< one per source line and opcode, nearest first
  std::vector<ShadowLine> lines;         ///< largest share first; empty where attribution was not affordable
  /// Where an output's errors are many times what the run's instructions round: those whose results are off
  /// by a share of that and have amplified, the strongest first.
  std::vector<ShadowAmplifier> amplifiers;
  /// Only where an output element is itself that far off, relative to itself or to its output's root mean
  /// square, whichever is larger: small differences of large numbers part on the way in correct programs too.
  std::optional<ShadowParting> parting;
  uint64_t ended = 0;  ///< shadows that ended at a value that is not finite
  uint64_t lane_instructions = 0;
  double seconds = 0;          ///< of the run with shadows
  double seconds_by_line = 0;  ///< of the runs that follow lines
};
template <typename Io>
void fields(Io& io, ShadowReport& x) {
  io.type("shadow", "the run beside exact arithmetic: the same instructions on real numbers");
  ASSAY_FIELD(outputs);
  ASSAY_LATER(element);
  ASSAY_LATER(edges, "how near each instruction came to where its format ends, nearest first");
  ASSAY_FIELD(lines);
  ASSAY_LATER(amplifiers, "lines that make large relative errors out of small ones, the strongest first");
  ASSAY_FIELD(parting);
  ASSAY_FIELD(ended);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(seconds_by_line);
}

}  // namespace assay
