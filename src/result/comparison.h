// Outputs compared with the reference, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

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

/// max of error/bound over the elements that share an index value along one axis.
struct FoldedField {
  std::string axis;  ///< "t", "t mod 64", "t mod 16", "h", "v", ...
  std::vector<double> max_ratio;
};

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
  std::string undecided_reason;         ///< the reference's, where it could not narrow an enclosure
  double max_relative_bound = 0;        ///< bound without output rounding and underflow / companion, largest
  double max_enclosure = 0;             ///< radius / bound, largest
  std::array<int64_t, 64> histogram{};  ///< counts by floor(log2 ratio) + 60; exact elements in [0]
  std::vector<FoldedField> fields;
  std::vector<ElementVerdict> verdicts;  ///< per element; not written to JSON
  bool pass() const { return violation + nonfinite + wrong_class + undecided == 0; }
};

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

}  // namespace assay
