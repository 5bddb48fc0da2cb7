#include "src/campaign/mutate/parameter_roles.h"

#include <algorithm>
#include <optional>

#include "src/campaign/mutate/plan_survey.h"

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

}  // namespace

void SeenArgument::see(const Argument& argument, const Program& plan, const Case& c,
                       const KernelLimits& limits) {
  if (const auto number = integer_of(argument)) {
    number_ = true;
    negative_ = negative_ || *number < 0;
    widths_.insert(*number);
    bool is_one = false;
    for (const auto& [width, limit] :
         {std::pair{c.K, limits.max_K}, {c.V, limits.max_V}, {c.M, limits.max_M}})
      if (*number == width) is_one = true, most_ = std::max(most_, limit);
    always_width_ = always_width_ && is_one;
  } else if (const auto pointer = pointer_of(argument)) {
    const Tensor* table = table_of(plan, *pointer);
    (table ? table_ : tensor_) = true;
    negative_table_ = negative_table_ || (table && has_negative(*table));
    (argument.is_null_pointer() ? null_ : place_) = true;
  } else {
    other_ = true;
  }
}

void SeenArgument::add_to(ParameterRoles& roles, int32_t position, bool surveyed, bool every_width) const {
  if (number_) roles.numbers.insert(position);
  if (table_ && !tensor_) roles.tables.insert(position);
  if (table_ && !tensor_ && !negative_table_) roles.natural_tables.insert(position);
  if (surveyed && !number_ && !other_ && null_ != place_)
    (null_ ? roles.nulls : roles.places).insert(position);
  if (!number_ || negative_) return;
  roles.sizes.insert(position);
  if (!always_width_ || widths_.size() <= 2) return;
  roles.most[position] = most_;
  if (!surveyed || !every_width) return;
  roles.most[position] = *widths_.rbegin();
  roles.least[position] = *widths_.begin();
}

void see_launch(SeenArguments& seen, const Launch& launch, const Program& plan, const Case& c,
                const KernelLimits& limits) {
  seen.resize(std::max(seen.size(), launch.arguments.size()));
  for (size_t i = 0; i < launch.arguments.size(); ++i) seen[i].see(launch.arguments[i], plan, c, limits);
}

ParameterRoles roles_of(const std::vector<CleanCase>& cases, const KernelLimits& limits,
                        const std::string& module, const std::string& function, const PlanSurvey* survey) {
  const SeenArguments* const surveyed = survey ? survey->arguments(module, function) : nullptr;
  SeenArguments seen = surveyed ? *surveyed : SeenArguments{};
  for (const CleanCase& clean : cases)
    for (const Launch& launch : clean.plan.launches)
      if (launch.module == module && launch.function == function)
        see_launch(seen, launch, clean.plan, clean.case_, limits);
  ParameterRoles roles;
  for (size_t i = 0; i < seen.size(); ++i)
    seen[i].add_to(roles, static_cast<int32_t>(i), surveyed != nullptr, survey && survey->has_every_width());
  return roles;
}

}  // namespace assay
