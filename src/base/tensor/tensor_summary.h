// What a tensor's values are, without looking at each.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Values of one class: how many, and the flat element that is the first.
struct ValueClass {
  int64_t count = 0, first = -1;
};

struct TensorSummary {
  int64_t elements = 0;
  std::optional<double> min, max;  ///< of the finite values; absent where there is none
  int64_t zeros = 0, subnormals = 0;
  ValueClass nan, plus_infinity, minus_infinity;
  /// Of finite values other than zero: how many have the binary exponent e, 2^e <= |x| < 2^(e+1). Empty for
  /// integers.
  std::map<int, int64_t> exponents;
};

TensorSummary summary_of(const Tensor&);

/// The exponents in at most `groups` groups of as many exponents each, with their share in percent:
/// "2^-8..-5 12 %, 2^-4..-1 88 %".
std::string exponents_text(const TensorSummary&, int groups);

}  // namespace assay
