// Which functions of a module can lead to which. A function's registers, variables and parameters have one
// place; those that lead to themselves keep theirs in frames of a stack (decode_recursion.cpp).
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::vm {

/// The operands of a call: (returns), target, (arguments), prototype.
struct CallSite {
  const ptx::Operand *target = nullptr, *arguments = nullptr, *returns = nullptr;
};
CallSite call_site(const ptx::Instruction&);
/// The function has as many parameters and results as the call.
bool fits(const CallSite&, const ptx::Function&);

class CallGraph {
 public:
  explicit CallGraph(const ptx::Module&);
  int32_t function_named(const std::string& name) const;  ///< -1: none
  /// Functions whose address the module takes: in an initialiser or as a source operand.
  const std::vector<int32_t>& with_an_address() const { return with_an_address_; }
  /// A call of `callee` by `caller` may come back to `caller`; calls through addresses lead to every function
  /// that fits.
  bool is_recursive(int32_t caller, int32_t callee) const;
  /// Some chain of calls may lead from the function back to it.
  bool leads_to_itself(int32_t function) const {
    return leads_to_itself_[static_cast<size_t>(function)] != 0;
  }
  /// A function and those that it may call, by their calls' order in the text.
  std::vector<int32_t> reached_from(int32_t function) const;

 private:
  void find_addresses(const ptx::Module&);
  void find_cycles();

  std::unordered_map<std::string, int32_t> by_name_;
  std::vector<int32_t> with_an_address_;
  std::vector<std::vector<int32_t>> callees_;  ///< by function
  std::vector<int32_t> component_;             ///< functions that lead to each other have the same
  std::vector<char> leads_to_itself_;          ///< by function
};

}  // namespace assay::vm
