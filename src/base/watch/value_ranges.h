// Where floats of a program's text can lie at all: intervals of registers, without regard to the order of a
// function's instructions. What cannot make a NaN or an infinity of finite values needs no watch.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::watch {

/// Every value that a register may hold lies in [least, most], infinities included, or is NaN.
struct Range {
  double least = 1, most = -1;  ///< least > most: nothing was found to write it
  bool nan = false;
  bool is_empty() const { return least > most && !nan; }
};

/// What an instruction may make of operands that are nothing of the kind.
struct Births {
  bool nan = true;       ///< of operands none of which is NaN
  bool infinity = true;  ///< of finite ones
  bool any() const { return nan || infinity; }
};

class ValueRanges {
 public:
  explicit ValueRanges(const ptx::Function&);

  /// Of an instruction that computes floats. By what PTX says of each operation; where the ranges of its
  /// operands are not known, by the operation alone.
  Births births_of(const ptx::Instruction&) const;

 private:
  /// Of both halves of a packed type together.
  struct Fact {
    ptx::Type type = ptx::Type::none;
    Range range;
    int changes = 0;
  };

  Range read(const ptx::Operand&, ptx::Type) const;
  Range made_by(const ptx::Instruction&, ptx::Type* type) const;
  bool meet(int32_t reg, ptx::Type, Range);

  std::vector<Fact> facts_;  ///< by register
};

}  // namespace assay::watch
