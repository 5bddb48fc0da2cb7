// What integer registers can hold, from a function's text: intervals along definitions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  /// Of what an instruction of the function reads in a register: over those definitions that can reach it.
  ValueRange read_by(int32_t instruction, int32_t reg);
  /// Of what an instruction computes where its first register is its only result; `at`: it is none of the
  /// function's, and takes that one's place.
  ValueRange result(const ptx::Instruction&, int32_t at = -1);
  const std::vector<int32_t>& definitions(int32_t reg) const {
    return definitions_[static_cast<size_t>(reg)];
  }
  const std::vector<int32_t>& uses(int32_t reg) const { return uses_[static_cast<size_t>(reg)]; }
  const ptx::Function& function() const { return function_; }
  /// What can run right after, and right before, each instruction (ways.h).
  const std::vector<std::vector<int32_t>>& successors();
  const std::vector<std::vector<int32_t>>& predecessors();
  /// Is there no other way from the one to the other than through all between them?
  bool is_straight(int32_t from, int32_t to);

 private:
  ValueRange operand(const ptx::Operand&, int32_t read_by = -1);
  ValueRange loaded(const ptx::Instruction&, ptx::Type, const ValueRange& most) const;
  int low_zeros(const ptx::Operand&, int depth) const;
  bool apart(const ptx::Operand&, const ValueRange& other);
  bool is_place(int32_t reg, int depth);
  const ptx::Instruction* only_maker(const ptx::Operand&) const;
  std::optional<ValueRange> rest_of_blocks(const ptx::Instruction&);
  std::optional<bool> equals_null(const ptx::Instruction&);
  bool reads_natural_table(const ptx::Instruction&, std::set<int32_t>& within) const;
  bool comes_from_natural_table(int32_t reg, std::set<int32_t>& within, std::set<int32_t>& seen,
                                bool& table) const;

  const ptx::Function& function_;
  ParameterRoles roles_;
  std::vector<std::vector<int32_t>> definitions_, uses_;
  std::vector<std::vector<int32_t>> successors_, predecessors_;  ///< empty: not asked for yet
  std::map<int32_t, ValueRange> known_;
  std::map<int32_t, std::optional<ValueRange>> counted_;    ///< of registers with several definitions
  std::map<std::pair<int32_t, int32_t>, ValueRange> read_;  ///< by instruction and register
  std::set<std::pair<int32_t, int32_t>> reading_;           ///< of these, being computed
  std::set<int32_t> open_;                                  ///< being computed: a loop gives no interval
};

}  // namespace assay
