// A softmax without its maximum, a softplus of a large logit, a sum of exponentials: what overflows is no decay.
#include <algorithm>

#include "src/diagnosis/diagnose.h"

namespace assay {
namespace {

/// Whether the operator knows decays as tensors, and none of them is behind the exponential.
bool is_no_decay(const Evidence& e) {
  const auto decays = [](const ArgumentSpec& a) { return a.role == Role::log_decay; };
  if (!e.op || e.trace->input_elements.empty()) return false;
  if (std::none_of(e.op->inputs.begin(), e.op->inputs.end(), decays) &&
      std::none_of(e.op->outputs.begin(), e.op->outputs.end(), decays))
    return false;
  for (const auto& [name, flat] : e.trace->input_elements)
    for (const ArgumentSpec& a : e.op->inputs)
      if (a.name == name && decays(a)) return false;
  return true;
}

}  // namespace

Cause exponential_overflow() {
  return {"exponential-overflow", "an exponential of something that is no log decay overflowed",
          [](const Evidence& e) {
            Diagnosis d;
            if (!e.trace || e.trace->origin.kind != "exp-overflow" || !is_no_decay(e)) return d;
            d.score = 0.8;
            d.evidence.push_back(e.trace->origin.sentence);
            d.explanation = "subtract the largest argument first, or use a form that stays in range for large arguments";
            return d;
          }};
}

}  // namespace assay
