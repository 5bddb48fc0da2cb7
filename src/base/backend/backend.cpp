#include "src/base/backend/backend.h"

#include "src/base/numerics/bad_input.h"

namespace assay {

std::optional<LaunchedRun> Backend::launched(const Program&, const TensorMap&) {
  return std::nullopt;
}

std::vector<double> Backend::time(const Program& program, const TensorMap& inputs, int repeats, int warmups) {
  std::vector<double> seconds;
  for (int i = 0; i < warmups + repeats; ++i) {
    const Outcome outcome = run(program, inputs);
    if (outcome.trap) throw BadInput(program.name + " cannot be timed: " + outcome.trap->message);
    if (i >= warmups) seconds.push_back(outcome.seconds);
  }
  return seconds;
}

}  // namespace assay
