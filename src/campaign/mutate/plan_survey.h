// What a kernel's plans pass to their entries, of many cases: nothing runs.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/campaign/mutate/parameter_roles.h"

namespace assay {

/// Plans of every key width beside some value widths and the other way round, in the formats of
/// `format_pairs`, these directions, without every set of optional inputs; states, shared keys, batches,
/// packing and lengths (none among them) take turns. Where launches depend on the number of heads, with many
/// heads as well, the absent inputs taking turns.
class PlanSurvey {
 public:
  PlanSurvey() = default;
  PlanSurvey(const Kernel&, const std::vector<Direction>&, int threads);

  int64_t plans() const { return plans_; }
  /// False where there are too many widths. Of slots every number is among them, each beside several widths.
  bool has_every_width() const { return has_every_width_; }
  /// Null where no plan launches it.
  const SeenArguments* arguments(const std::string& module, const std::string& function) const;

 private:
  int64_t plans_ = 0;
  bool has_every_width_ = false;
  std::map<std::pair<std::string, std::string>, SeenArguments> seen_;
};

}  // namespace assay
