#include "reference/operator.h"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

/// A row of the gated family: text and mathematics from the operator's type, evaluation from the blocked
/// evaluators with the type's literal transcription as their last rung.
template <typename Op>
Operator gated_operator() {
  return {Op::name,
          Op::summary,
          Op::formula,
          Op::citation,
          Op::inputs(),
          Op::outputs(),
          &Op::default_scale,
          [](const Problem& p) { return gated_forward(p, {&literal_column<Op>}); },
          [](const Problem& p) { return gated_adjoint(p, {&literal_adjoint<Op>}); }};
}

/// "d" + name, kept for the life of the program.
std::string_view derivative_name(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::scoped_lock lock(mutex);
  return *names.insert("d" + std::string(name)).first;
}

}  // namespace

std::vector<ArgumentSpec> Operator::cotangents() const {
  std::vector<ArgumentSpec> result;
  for (ArgumentSpec spec : outputs) {
    spec.name = derivative_name(spec.name);
    spec.optional = spec.role == Role::state;
    if (spec.role == Role::output) spec.role = Role::value;
    result.push_back(spec);
  }
  return result;
}

std::vector<ArgumentSpec> Operator::gradients() const {
  std::vector<ArgumentSpec> result;
  for (ArgumentSpec spec : inputs) {
    spec.name = derivative_name(spec.name);
    if (spec.role == Role::value) spec.role = Role::output;
    result.push_back(spec);
  }
  return result;
}

int64_t Sizes::of(std::string_view axis) const {
  const struct {
    std::string_view name;
    int64_t size;
  } table[] = {{"B", B}, {"T", T}, {"H", H}, {"HV", HV}, {"K", K}, {"V", V}, {"M", M}, {"N", N}};
  for (const auto& row : table)
    if (row.name == axis) return row.size;
  throw BadInput(fmt::format("unknown axis '{}': use one of B, T, H, HV, K, V, M, N", axis));
}

const std::vector<Operator>& operators() {
#define ASSAY_GATED_OPERATOR(Op) gated_operator<Op>(),
  static const std::vector<Operator> table = {
#include "reference/operators.def"
  };
#undef ASSAY_GATED_OPERATOR
  return table;
}

const Operator& find_operator(std::string_view name) {
  std::string known;
  for (const Operator& op : operators()) {
    if (op.name == name) return op;
    known += (known.empty() ? "" : ", ") + std::string(op.name);
  }
  throw BadInput(fmt::format("unknown operator '{}': use one of {}", name, known));
}

}  // namespace assay
