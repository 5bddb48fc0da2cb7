// What integer registers can hold, from a function's text: intervals along definitions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/campaign/mutate/parameter_roles.h"

namespace assay {

/// Closed, of the signed interpretation of the register's width.
struct ValueRange {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool single() const { return low == high; }
  bool operator==(const ValueRange&) const = default;
};

/// Registers that an instruction writes, and those that it reads (its guard, addresses and the elements of
/// vectors too).
std::vector<int32_t> written_registers(const ptx::Instruction&);
std::vector<int32_t> read_registers(const ptx::Instruction&);

/// Of integers, bits or predicates, each lane for itself: no memory, no other lane, no float.
bool is_integer_arithmetic(const ptx::Instruction&);

class ValueRanges {
 public:
  /// Sizes are numbers of things in tensors, so neither negative nor above 2^40; so is what a table of them
  /// holds. Addresses of memory are below 2^63, and what is reached from one by an offset is not null.
  ValueRanges(const ptx::Function&, ParameterRoles);

  /// Of a register, over all its definitions; of a predicate 0 and 1.
  ValueRange of(int32_t reg);
  /// Of what an instruction computes where its first register is its only result.
  ValueRange result(const ptx::Instruction&);
  const std::vector<int32_t>& definitions(int32_t reg) const {
    return definitions_[static_cast<size_t>(reg)];
  }
  const std::vector<int32_t>& uses(int32_t reg) const { return uses_[static_cast<size_t>(reg)]; }
  const ptx::Function& function() const { return function_; }

 private:
  ValueRange operand(const ptx::Operand&);
  ValueRange loaded(const ptx::Instruction&, ptx::Type, const ValueRange& most) const;
  bool is_place(int32_t reg, int depth);
  std::optional<bool> equals_null(const ptx::Instruction&);
  bool reads_natural_table(const ptx::Instruction&, std::set<int32_t>& within) const;
  bool comes_from_natural_table(int32_t reg, std::set<int32_t>& within, std::set<int32_t>& seen,
                                bool& table) const;

  const ptx::Function& function_;
  ParameterRoles roles_;
  std::vector<std::vector<int32_t>> definitions_, uses_;
  std::map<int32_t, ValueRange> known_;
  std::set<int32_t> open_;  ///< being computed: a loop gives no interval
};

}  // namespace assay
