// Error fields against the bound: one verdict per element, one summary per output.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/operator.h"
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

/// Judges `got` against the reference. Axes must agree. `judged`: the elements to judge, by flat number; null:
/// all.
OutputComparison compare_output(const Tensor& got, const ReferenceOutput& reference,
                                const std::vector<uint8_t>* judged = nullptr);

/// Number of elements whose bits differ, all NaN taken as equal; the first such element in `first`.
int64_t differing_elements(const Tensor& a, const Tensor& b, int64_t* first = nullptr);

}  // namespace assay
