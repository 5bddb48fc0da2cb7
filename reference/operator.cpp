#include "reference/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "src/base/numerics/bad_input.h"

namespace assay {

#define ASSAY_OPERATOR(Type, file) Operator operator_##file();
#include "reference/operators.def"
#undef ASSAY_OPERATOR

namespace {

/// "d" + name, kept for the life of the program. Each thread asks the others once for a name.
std::string_view derivative_name(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  thread_local std::vector<std::string_view> known;
  for (const std::string_view made : known)
    if (made.substr(1) == name) return made;
  const std::scoped_lock lock(mutex);
  return known.emplace_back(*names.insert("d" + std::string(name)).first);
}

}  // namespace

std::vector<ArgumentSpec> Operator::cotangents() const {
  std::vector<ArgumentSpec> result;
  for (ArgumentSpec spec : outputs) {
    spec.name = derivative_name(spec.name);
    spec.optional = spec.role == Role::state;
    if (spec.role == Role::output || spec.role == Role::log_decay) spec.role = Role::value;
    result.push_back(spec);
  }
  return result;
}

std::vector<ArgumentSpec> Operator::gradients() const {
  std::vector<ArgumentSpec> result;
  for (ArgumentSpec spec : inputs) {
    spec.name = derivative_name(spec.name);
    if (is_plain(spec.role)) spec.role = Role::output;
    spec.not_negative = false;
    result.push_back(spec);
  }
  return result;
}

bool removes_from_state(const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [](const ArgumentSpec& input) {
    return input.role == Role::opposed || input.role == Role::rate;
  });
}

int64_t Sizes::of(std::string_view axis) const {
  const struct {
    std::string_view name;
    int64_t size;
  } table[] = {{"B", B}, {"T", T}, {"H", H}, {"HV", HV}, {"HQ", HV},
               {"K", K}, {"V", V}, {"D", V}, {"M", M},   {"N", N}};
  for (const auto& row : table)
    if (row.name == axis) return row.size;
  if (const size_t times = axis.find('*'); times != std::string_view::npos)
    return of(axis.substr(0, times)) * of(axis.substr(times + 1));
  throw BadInput(fmt::format("unknown axis '{}': use one of B, T, H, HV, HQ, K, V, D, M, N", axis));
}

const std::vector<Operator>& operators() {
#define ASSAY_OPERATOR(Type, file) operator_##file(),
  static const std::vector<Operator> table = {
#include "reference/operators.def"
  };
#undef ASSAY_OPERATOR
  return table;
}

const Operator& find_operator(std::string_view name) {
  for (const Operator& op : operators())
    if (op.name == name) return op;
  std::string known;
  for (const Operator& op : operators()) known += (known.empty() ? "" : ", ") + std::string(op.name);
  throw BadInput(fmt::format("unknown operator '{}': use one of {}", name, known));
}

}  // namespace assay
