// What an operator takes: its domain, and whether it has a scale.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/operator.h"
#include "src/base/tensor/extremes.h"

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
  bool more = false;   ///< there may be: of a tensor that is not held not all were looked at
};

/// Elements that do not lie in `allowed`. A tensor that is not held is looked through only where what makes
/// it does not say that all of it is inside.
std::optional<DomainFault> outside(const Tensor&, const Extremes& allowed, std::string reason);

/// Inputs that are not finite, log decays outside [-1e4, 0], rates outside [0, 2]. Arguments the
/// operator does not have are ignored.
std::vector<DomainFault> outside_domain(const Operator&, const TensorMap& inputs);

/// By how much the transitions of one sequence, taken together, may lengthen what a delta rule's state holds.
inline constexpr double kLongestGrowth = 0x1p10;
/// A sequence of a head whose transitions together lengthen a state by more than that.
struct Lengthening {
  int64_t sequence = 0, head = 0, heads = 0;  ///< the head is one of so many
  /// Counted over all batches: by whose transition it is lengthened so, from the first one on, and by whose
  /// what a gradient carries back is, from the last one on.
  int64_t token = 0, back = 0;
  DomainFault fault;  ///< its `elements`: tokens from the first one on
};

/// Of an operator that reads its state by a unit row, by heads and their sequences: those that transitions
/// lengthen, decays aside and along what they replace: by |1 - beta |k|^2| or |1 + a . b| each, where that is
/// above 1. Bounds follow such growth as far as they are finite. `cu_seqlens`: empty where each batch is a
/// sequence.
std::vector<Lengthening> lengthenings(const Operator&, const std::vector<int64_t>& cu_seqlens,
                                      const TensorMap& inputs);
/// The first of them.
std::optional<DomainFault> lengthening(const Operator&, const std::vector<int64_t>& cu_seqlens,
                                       const TensorMap& inputs);
/// One line: "g[b=0,t=3,h=0,k=1] = 0.5 (12 elements): a log decay must lie in [-10000, 0]".
std::string describe(const DomainFault&);

}  // namespace assay
