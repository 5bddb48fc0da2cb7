// Outputs compared with the reference, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/numerics/format.h"
#include "src/base/tensor/tensor.h"

namespace assay {

enum class ElementVerdict : uint8_t { ok, violation, nonfinite, wrong_class, undecided };

/// One element, as shown to a person.
struct WorstElement {
  std::string element;  ///< "o[b=0,t=17,h=3,v=64]"
  int64_t flat = -1;
  double got = 0, expected = 0, expected_rounded = 0;
  uint64_t got_bits = 0, expected_bits = 0;
  double absolute = 0, relative = 0, ulp = 0, bound = 0, ratio = 0;
};
template <typename Io>
void fields(Io& io, WorstElement& x) {
  io.type("worst", "the first element of a wrong class, else the one of the largest error/bound");
  ASSAY_FIELD(element);
  ASSAY_FIELD(flat);
  ASSAY_FIELD(got);
  ASSAY_FIELD(expected);
  ASSAY_FIELD(expected_rounded);
  io("got_bits", Bits{x.got_bits});
  io("expected_bits", Bits{x.expected_bits});
  ASSAY_FIELD(absolute);
  ASSAY_FIELD(relative);
  ASSAY_FIELD(ulp);
  ASSAY_FIELD(bound);
  ASSAY_FIELD(ratio);
}

/// max of error/bound over the elements that share an index value along one axis.
struct FoldedField {
  std::string axis;  ///< "t", "t mod 64", "t mod 16", "h", "v", ...
  std::vector<double> max_ratio;
};
template <typename Io>
void fields(Io& io, FoldedField& x) {
  io.type("field", "largest error/bound of the elements that share an index along one axis");
  ASSAY_FIELD(axis);
  ASSAY_FIELD(max_ratio);
}

struct OutputComparison {
  std::string name;
  std::vector<Axis> axes;
  Dtype dtype;
  int64_t elements = 0;
  int64_t ok = 0, violation = 0, nonfinite = 0, wrong_class = 0, undecided = 0;
  WorstElement worst;    ///< first nonfinite / wrong_class if any, else the largest ratio
  double max_ratio = 0;  ///< error / bound
  /// Tightness: the output's own rounding removed from error and bound.
  double max_tightness = 0;
  /// Of `ok`: no bound follows these, and the formula decided (verify.cpp); in no maximum, nor the histogram.
  int64_t by_formula = 0;
  std::string undecided_reason;         ///< the reference's, where it could not narrow an enclosure
  double max_relative_bound = 0;        ///< bound without output rounding and underflow / companion, largest
  double max_enclosure = 0;             ///< radius / bound, largest
  std::array<int64_t, 64> histogram{};  ///< counts by floor(log2 ratio) + 60; exact elements in [0]
  std::vector<FoldedField> fields;
  std::vector<ElementVerdict> verdicts;  ///< per element; not written to JSON
  bool pass() const { return violation + nonfinite + wrong_class + undecided == 0; }
};
template <typename Io>
void fields(Io& io, OutputComparison& x) {
  io.type("output");
  ASSAY_FIELD(name);
  ASSAY_FIELD(axes);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(ok);
  ASSAY_FIELD(violation);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(wrong_class);
  ASSAY_FIELD(undecided);
  ASSAY_LATER(by_formula,
              "of ok: elements whose bound is infinite, so that the formula alone decided; in no maximum");
  ASSAY_FIELD(undecided_reason, "why an enclosure stayed wide");
  ASSAY_FIELD(worst);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(max_tightness);
  ASSAY_FIELD(max_relative_bound);
  ASSAY_FIELD(max_enclosure);
  ASSAY_FIELD(histogram,
              "elements by floor(log2(error/bound)) + 60; exact ones in bin 0, infinite ratios in bin 63");
  io("fields", x.fields);
}

/// Errors are |got - mid|, absolute and in the unit of the output. Elements where the kernel or the reference
/// is not finite take no part; the counts of the comparison say how many those are. An exact element has
/// ratio 0. p99: the smallest value that 99 % of the elements do not exceed.
struct ErrorStatistics {
  std::string output;
  int64_t elements = 0;  ///< that take part
  double max_error = 0, p99_error = 0;
  double max_bound = 0, p99_bound = 0;  ///< of finite bounds
  double max_ratio = 0, p99_ratio = 0;  ///< error / bound
  double max_ulp = 0, p99_ulp = 0;      ///< error in units in the last place of the exact value rounded
  double rms_error = 0, rms_exact = 0;
  double bias = 0;       ///< mean of got - mid: 0 where roundings cancel
  double shrinkage = 0;  ///< mean of (got - mid) * sign(mid): negative where results come out too small
};

/// Where the errors of a tensor of log decays, summed from the start of a sequence, are largest.
struct AccumulatedDecay {
  std::string element;  ///< the last one summed: "w[b=0,t=4095,h=0,k=3]"
  int64_t steps = 0;    ///< tokens summed
  double decay = 0;     ///< the exact log decays' sum, in nats
  double error = 0;  ///< sum of kernel - exact, in nats: a state decayed by it is off by the factor e^error
  double bound = 0;  ///< sum of the elements' bounds, in nats
};
template <typename Io>
void fields(Io& io, AccumulatedDecay& x) {
  io.type("accumulated_decay",
          "where the errors of log decays, summed from the start of a sequence, are largest; in nats");
  ASSAY_FIELD(element, "the last element summed");
  ASSAY_FIELD(steps);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(error, "sum of kernel - exact");
  ASSAY_FIELD(bound);
}

}  // namespace assay
