// What every launch passes in an entry's parameters.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/campaign/mutate/clean_case.h"

namespace assay {

class PlanSurvey;

/// Parameters of an entry, by position, by what every launch passes in them.
struct ParameterRoles {
  std::set<int32_t> numbers;         ///< integers
  std::set<int32_t> tables;          ///< addresses of constants that the plan made from the shapes
  std::set<int32_t> sizes;           ///< those of `numbers` that are never negative
  std::set<int32_t> natural_tables;  ///< those of `tables` that never hold a negative number
  std::map<int32_t, int64_t> most;  ///< of `sizes`: what none can exceed, where a limit of the kernel says so
  std::map<int32_t, int64_t> least;  ///< of those: what none is below, where all plans say so
  std::set<int32_t> nulls, places;   ///< addresses that are null in all plans, or in none
};

/// What launches of one entry pass in one parameter.
class SeenArgument {
 public:
  void see(const Argument&, const Program&, const Case&, const KernelLimits&);
  /// `surveyed`: what a survey of the kernel's plans saw is among it; `every_width`: in plans of every width.
  void add_to(ParameterRoles&, int32_t position, bool surveyed, bool every_width) const;

 private:
  bool number_ = false, negative_ = false, table_ = false, tensor_ = false, negative_table_ = false;
  bool null_ = false, place_ = false, other_ = false;
  /// Whether it is a width of the case in all launches seen: K, V or M, in one launch this, in another that.
  bool always_width_ = true;
  std::set<int64_t> widths_;
  int64_t most_ = 0;  ///< of the limits of those that it was
};
using SeenArguments = std::vector<SeenArgument>;

void see_launch(SeenArguments&, const Launch&, const Program&, const Case&, const KernelLimits&);

/// By the launches of one function in these cases, and in a survey where there is one. A number that is a
/// width of the case in all of them, and of more than two sizes, is a width, which the kernel's limits bound;
/// with a survey the widths that launch the function.
ParameterRoles roles_of(const std::vector<CleanCase>&, const KernelLimits&, const std::string& module,
                        const std::string& function, const PlanSurvey* = nullptr);

}  // namespace assay
