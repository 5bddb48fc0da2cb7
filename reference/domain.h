// What an operator takes: its domain, and whether it has a scale.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reference/operator.h"

namespace assay {

inline constexpr double kSmallestLogDecay = -1e4;
/// Of what a delta rule replaces; beyond it the transition would lengthen every state along the key.
inline constexpr double kLargestRate = 2;

/// One input with elements outside the domain; the first of them is shown.
struct DomainFault {
  std::string input;     ///< "g"
  int64_t elements = 0;  ///< how many
  std::string element;   ///< "g[b=0,t=3,h=0,k=1]"
  double value = 0;
  std::string reason;  ///< "a log decay must lie in [-10000, 0]"
};

/// Inputs that are not finite, log decays outside [-1e4, 0], rates outside [0, 2]. Arguments the
/// operator does not have are ignored.
std::vector<DomainFault> outside_domain(const Operator&, const TensorMap& inputs);
/// One line: "g[b=0,t=3,h=0,k=1] = 0.5 (12 elements): a log decay must lie in [-10000, 0]".
std::string describe(const DomainFault&);

}  // namespace assay
