// Which input elements a value depends on, as a graph of unions over the most recent instructions. A
// dependence is one 32-bit id per value; the elements are collected only when asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::vm {

using Dependence = uint32_t;
inline constexpr Dependence kNothing = 0;    ///< no input element
inline constexpr Dependence kForgotten = 1;  ///< elements no longer known
inline constexpr Dependence kUnwritten = 2;  ///< memory or a register that nothing wrote
inline constexpr Dependence kFirstNode = 3;
inline constexpr Dependence kLeaf = 0x80000000u;  ///< set: an input element, by its leaf number

class Provenance {
 public:
  /// Keeps the `capacity` newest unions (a power of two); what is older counts as forgotten. 8 bytes each.
  explicit Provenance(uint32_t capacity = 1u << 26) : capacity_(capacity) {}

  Dependence unite(Dependence a, Dependence b) {
    if (a == b || b == kNothing) return a;
    if (a == kNothing) return b;
    if (a == last_a_ && b == last_b_) return last_;
    return add(a, b);
  }

  struct Elements {
    std::vector<uint32_t> leaves;  ///< sorted, at most `limit`
    bool truncated = false;        ///< more than `limit`, or something forgotten
    bool unwritten = false;        ///< an unwritten value takes part
  };
  /// Newest dependences first, so that a truncated set holds the nearest ones.
  Elements collect(Dependence, size_t limit) const;

 private:
  struct Node {
    Dependence a, b;
  };
  Dependence add(Dependence a, Dependence b);

  uint32_t capacity_;
  std::vector<Node> nodes_;  ///< by (id - kFirstNode) mod capacity
  Dependence next_ = kFirstNode;
  Dependence last_a_ = 0, last_b_ = 0, last_ = 0;
};

}  // namespace assay::vm
