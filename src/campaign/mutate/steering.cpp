#include "src/campaign/mutate/steering.h"

#include <algorithm>
#include <vector>

#include "src/base/vm/signature.h"

namespace assay {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Operation;

/// Makes a predicate, of integers or of predicates: what it compares may stand for more than a way.
bool decides(const Instruction& in) {
  const bool logic = vm::signature_of(in).flow() == vm::Flow::logic && in.form.type() == ptx::Type::pred;
  return is_integer_arithmetic(in) && (in.form.operation == Operation::setp || logic);
}

class Steering {
 public:
  Steering(const ptx::Function& f, const ValueRanges& ranges, const ParameterRoles& roles)
      : f_(f), ranges_(ranges), roles_(roles) {}

  bool holds(int32_t instruction) {
    const Instruction& in = at(instruction);
    if (in.form.operation == Operation::bra) {
      if (in.predicate < 0) return false;
      guards_.insert(in.predicate);
    } else if (!decides(in) || !reaches_guards_only(instruction)) {
      return false;
    }
    return std::all_of(guards_.begin(), guards_.end(), [&](int32_t guard) {
      std::set<int32_t> seen;
      return follows_from_sizes(guard, seen, false);
    });
  }

 private:
  const Instruction& at(int32_t i) const { return f_.body[static_cast<size_t>(i)]; }

  bool reaches_guards_only(int32_t instruction) {
    std::vector<int32_t> work = written_registers(at(instruction));
    std::set<int32_t> seen(work.begin(), work.end());
    while (!work.empty()) {
      const int32_t reg = work.back();
      work.pop_back();
      for (const int32_t use : ranges_.uses(reg)) {
        const Instruction& in = at(use);
        if (in.predicate == reg) guards_.insert(reg);
        if (!reads(in, reg)) continue;
        if (!is_integer_arithmetic(in)) return false;
        for (const int32_t made : written_registers(in))
          if (seen.insert(made).second) work.push_back(made);
      }
    }
    return !guards_.empty();
  }

  /// Other than as its guard.
  static bool reads(const Instruction& in, int32_t reg) {
    Instruction unguarded = in;
    unguarded.predicate = -1;
    const std::vector<int32_t> read = read_registers(unguarded);
    return std::find(read.begin(), read.end(), reg) != read.end();
  }

  /// `address`: of a load from a table, so that no tensor's address may be in it.
  bool follows_from_sizes(int32_t reg, std::set<int32_t>& seen, bool address) {
    if (!seen.insert(reg).second) return true;
    const std::vector<int32_t>& made = ranges_.definitions(reg);
    return !made.empty() && std::all_of(made.begin(), made.end(), [&](int32_t i) {
      const Instruction& in = at(i);
      if (in.form.operation == Operation::ld) return loads_size(in, address);
      if (!is_integer_arithmetic(in)) return false;
      const std::vector<int32_t> read = read_registers(in);
      return std::all_of(read.begin(), read.end(),
                         [&](int32_t each) { return follows_from_sizes(each, seen, address); });
    });
  }

  bool loads_size(const Instruction& in, bool address) {
    const Operand& from = in.operands.at(1);
    if (in.predicate >= 0) return false;
    if (from.parameter >= 0)
      return !address || roles_.numbers.contains(from.parameter) || roles_.tables.contains(from.parameter);
    if (in.form.space != ptx::Space::global || from.reg < 0) return false;
    std::set<int32_t> seen;  // a register may serve as size and as address: each way is looked at
    return follows_from_sizes(from.reg, seen, true);
  }

  const ptx::Function& f_;
  const ValueRanges& ranges_;
  const ParameterRoles& roles_;
  std::set<int32_t> guards_;
};

}  // namespace

bool only_steers(const ptx::Function& f, const ValueRanges& ranges, int32_t instruction,
                 const ParameterRoles& roles) {
  return Steering(f, ranges, roles).holds(instruction);
}

}  // namespace assay
