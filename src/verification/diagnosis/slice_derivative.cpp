#include "src/verification/diagnosis/slice_derivative.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/base/vm/event_log.h"
#include "src/base/vm/literals.h"

namespace assay {
namespace {

using ptx::Operation;

/// x + 1.5 * 2^23 chooses an integer: a step, whose derivative is 0.
bool chooses_integer(Operation operation, ptx::Type type, const std::vector<double>& x) {
  const bool adds = operation == Operation::add || operation == Operation::fma;
  return adds && x.size() > 1 &&
         std::any_of(x.begin() + (operation == Operation::fma ? 2 : 0), x.end(),
                     [&](double value) { return vm::rounds_to_integer(value, type == ptx::Type::f64); });
}

double value_of(ptx::Type type, uint64_t bits) {
  return ptx::is_float(type) ? vm::value_of(type, bits) : 0;
}

/// By operand of an instance, halves that repeat one left at 0.
void set_slopes(const vm::ValueSlice& s, const vm::SliceInstance& i, std::vector<double>& x,
                std::vector<double>& slopes) {
  x.clear();
  for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
    if (const vm::SliceOperand& from = s.operands[o]; !from.other_half)
      x.push_back(value_of(from.type, from.bits));
  slopes.assign(x.size(), 1.0);
  if (i.function < 0 || i.instruction < 0 || x.empty()) return;
  const Operation operation = s.modules[static_cast<size_t>(i.module)]
                                  ->functions[static_cast<size_t>(i.function)]
                                  .body[static_cast<size_t>(i.instruction)]
                                  .form.operation;
  const double y = value_of(i.type, i.bits);
  if (i.flow == vm::Flow::matrix) {
    for (size_t k = 0; k + 1 < x.size(); k += 2) slopes[k] = x[k + 1], slopes[k + 1] = x[k];
    return;
  }
  if (i.flow != vm::Flow::arithmetic || !ptx::is_float(i.type)) return;
  if (chooses_integer(operation, i.type, x)) return slopes.assign(x.size(), 0.0);
  switch (operation) {
    case Operation::sub:
      if (x.size() > 1) slopes[1] = -1;
      break;
    case Operation::mul:
    case Operation::fma:
    case Operation::mad:
      if (x.size() > 1) slopes[0] = x[1], slopes[1] = x[0];
      break;
    case Operation::div:
      if (x.size() > 1) slopes[0] = 1 / x[1], slopes[1] = -y / x[1];
      break;
    case Operation::neg:
      slopes[0] = -1;
      break;
    case Operation::abs:
      slopes[0] = x[0] < 0 ? -1 : 1;
      break;
    case Operation::max:
    case Operation::min:
      for (size_t k = 0; k < x.size(); ++k) slopes[k] = x[k] == y ? 1 : 0;
      break;
    case Operation::ex2:
      slopes[0] = std::numbers::ln2 * y;
      break;
    case Operation::lg2:
      slopes[0] = 1 / (std::numbers::ln2 * x[0]);
      break;
    case Operation::rcp:
      slopes[0] = -y * y;
      break;
    case Operation::sqrt:
      slopes[0] = 0.5 / y;
      break;
    case Operation::rsqrt:
      slopes[0] = -0.5 * y * y * y;
      break;
    case Operation::tanh:
      slopes[0] = 1 - y * y;
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<double> operand_slopes(const vm::ValueSlice& s) {
  std::vector<double> all(s.operands.size()), values, slopes;
  for (const vm::SliceInstance& i : s.instances) {
    set_slopes(s, i, values, slopes);
    size_t k = 0;
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (const double slope = s.operands[o].other_half ? 0 : slopes[k++]; std::isfinite(slope))
        all[o] = slope;
  }
  return all;
}

}  // namespace assay
