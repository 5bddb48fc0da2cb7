#include "src/campaign/mutate/parameter_roles.h"

#include <algorithm>
#include <optional>

namespace assay {
namespace {

const Tensor* table_of(const Program& plan, const PointerArgument& pointer) {
  for (const Tensor& constant : plan.constants)
    if (constant.name == pointer.buffer && constant.dtype == Dtype::i64) return &constant;
  return nullptr;
}

bool has_negative(const Tensor& table) {
  const auto entries = table.as<int64_t>();
  return std::any_of(entries.begin(), entries.end(), [](int64_t entry) { return entry < 0; });
}

/// Whether a parameter is a width of the case in all launches seen: K, V or M, in one launch this, in another
/// that.
struct Width {
  bool always = true;
  std::set<int64_t> values;
  int64_t most = 0;  ///< of the limits of those that it was

  void see(int64_t argument, const Case& c, const KernelLimits& limits) {
    values.insert(argument);
    bool is_one = false;
    for (const auto& [width, limit] :
         {std::pair{c.K, limits.max_K}, {c.V, limits.max_V}, {c.M, limits.max_M}})
      if (argument == width) is_one = true, most = std::max(most, limit);
    always = always && is_one;
  }
  bool is_it() const { return always && values.size() > 2; }
};

}  // namespace

ParameterRoles roles_of(const std::vector<CleanCase>& cases, const KernelLimits& limits,
                        const std::string& module, const std::string& function) {
  ParameterRoles roles;
  std::set<int32_t> negative, tensors, negative_tables;
  std::map<int32_t, Width> widths;
  for (const CleanCase& clean : cases)
    for (const Launch& launch : clean.plan.launches) {
      if (launch.module != module || launch.function != function) continue;
      for (size_t i = 0; i < launch.arguments.size(); ++i) {
        const auto at = static_cast<int32_t>(i);
        if (const auto number = integer_of(launch.arguments[i])) {
          roles.numbers.insert(at);
          if (*number < 0) negative.insert(at);
          widths[at].see(*number, clean.case_, limits);
        } else if (const auto pointer = pointer_of(launch.arguments[i])) {
          const Tensor* table = table_of(clean.plan, *pointer);
          (table ? roles.tables : tensors).insert(at);
          if (table && has_negative(*table)) negative_tables.insert(at);
        }
      }
    }
  roles.sizes = roles.numbers;
  for (const int32_t at : negative) roles.sizes.erase(at);
  for (const int32_t at : tensors) roles.tables.erase(at);
  roles.natural_tables = roles.tables;
  for (const int32_t at : negative_tables) roles.natural_tables.erase(at);
  for (const int32_t at : roles.sizes)
    if (const Width& width = widths[at]; width.is_it()) roles.most[at] = width.most;
  return roles;
}

}  // namespace assay
