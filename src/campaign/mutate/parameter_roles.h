// What every launch passes in an entry's parameters.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/campaign/mutate/clean_case.h"

namespace assay {

/// Parameters of an entry, by position, by what every launch passes in them.
struct ParameterRoles {
  std::set<int32_t> numbers;         ///< integers
  std::set<int32_t> tables;          ///< addresses of constants that the plan made from the shapes
  std::set<int32_t> sizes;           ///< those of `numbers` that are never negative
  std::set<int32_t> natural_tables;  ///< those of `tables` that never hold a negative number
  std::map<int32_t, int64_t> most;  ///< of `sizes`: what none can exceed, where a limit of the kernel says so
};

/// By the launches of one function in these cases. A number that is a width of the case in all of them, and
/// of more than two sizes, is a width, which the kernel's limits bound.
ParameterRoles roles_of(const std::vector<CleanCase>&, const KernelLimits&, const std::string& module,
                        const std::string& function);

}  // namespace assay
