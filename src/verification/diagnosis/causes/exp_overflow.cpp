// A softmax without its maximum, a softplus of a large logit, a sum of exponentials: what overflows is no
// decay.
#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/diagnose.h"

namespace assay {
namespace {

/// How many of the inputs behind the exponential are decays, where the operator has decays as tensors.
struct Behind {
  int64_t decays = 0, others = 0;
};
std::optional<Behind> inputs_behind(const Evidence& e) {
  const auto decays = [](const ArgumentSpec& a) { return a.role == Role::log_decay; };
  if (!e.op || e.trace->input_elements.empty()) return std::nullopt;
  if (std::none_of(e.op->inputs.begin(), e.op->inputs.end(), decays) &&
      std::none_of(e.op->outputs.begin(), e.op->outputs.end(), decays))
    return std::nullopt;
  Behind behind;
  for (const auto& [name, flat] : e.trace->input_elements) {
    const bool decay =
        std::any_of(e.op->inputs.begin(), e.op->inputs.end(),
                    [&, &name = name](const ArgumentSpec& a) { return a.name == name && decays(a); });
    ++(decay ? behind.decays : behind.others);
  }
  return behind;
}

}  // namespace

Cause exp_overflow() {
  return {"exp-overflow", "an exponential of something that is no log decay overflowed",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != OriginKind::exp_overflow) return d;
            const std::optional<Behind> behind = inputs_behind(e);
            if (!behind || behind->others == 0) return d;
            // The argument of a decay is a sum of gates; a logit may contain decayed values beside others.
            d.score = behind->decays == 0 ? 0.8 : 0.7;
            d.evidence.push_back(e.trace->origin.sentence);
            if (behind->decays > 0)
              d.evidence.push_back(
                  fmt::format("its argument depends on {} elements that are no decays", behind->others));
            d.explanation =
                "subtract the largest argument first, or use a form that stays in range for large arguments";
            return d;
          }};
}

}  // namespace assay
