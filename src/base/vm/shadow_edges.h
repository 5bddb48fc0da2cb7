// How near each instruction came to where its format ends: overflow of results and conversions, poles of
// reciprocals and logarithms, negative arguments of roots.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "src/base/vm/instruction_row.h"
#include "src/base/vm/shadow_report.h"

namespace assay::vm {

/// What of an instruction may leave its range.
enum class EdgeKind : uint8_t {
  none,
  exponent,    ///< ex2: the argument, against the exponent of the first power of two that overflows
  magnitude,   ///< sums, products, quotients, tensor-core sums: |result| against the largest finite number
  conversion,  ///< to a narrower float: |argument| against the largest finite number of the result's format
  reciprocal,  ///< rcp: |argument| against the largest one whose reciprocal overflows
  positive     ///< sqrt, rsqrt, lg2: the argument against 0
};

struct Edge {
  EdgeKind kind = EdgeKind::none;
  double limit = 0;
  std::string_view format;  ///< of the result: "fp32"
};

/// Of an arithmetic row or a tensor-core sum.
Edge edge_of(const ptx::Form&, ptx::Type result);

/// The smallest and largest values of an instruction that count: arguments, or |results| (see EdgeKind).
struct EdgeSeen {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  bool is_seen() const { return smallest <= largest; }
  void merge(const EdgeSeen& other) {
    if (other.smallest < smallest) smallest = other.smallest;
    if (other.largest > largest) largest = other.largest;
  }
};

/// Distance to the edge in binades (0 or less: reached or passed), and in words: "saw up to -3.2: safe".
ShadowEdge describe_edge(const Edge&, const EdgeSeen&);

}  // namespace assay::vm
