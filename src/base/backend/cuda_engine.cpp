#include "src/base/backend/cuda_engine.h"

namespace assay {

double CudaEngine::seconds_between(CUevent start, CUevent end) const {
  float milliseconds = 0;
  driver_.check(driver_.cuEventElapsedTime(&milliseconds, start, end), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

std::optional<Trap> CudaEngine::finish(const Event& end, const std::string& function) {
  auto trap = context_.finish(end);
  if (trap) {
    lost_ = true;
    trap->where.function = function;
    if (!function.empty()) trap->message = function + ": " + trap->message;
  }
  return trap;
}

Outcome CudaEngine::run(const Program& program, const TensorMap& inputs, bool one_at_a_time) {
  Outcome outcome;
  DeviceBuffers buffers(driver_, program, inputs);
  const auto launches = context_.prepare(program, buffers);
  const Event start(driver_), end(driver_);
  driver_.check(driver_.cuEventRecord(start, nullptr), "cuEventRecord");
  for (const PreparedLaunch& launch : launches) {
    outcome.trap = context_.enqueue(launch);
    if (!outcome.trap && one_at_a_time) outcome.trap = finish(end, launch.launch->function);
    if (outcome.trap) break;
  }
  const auto late = finish(end, program.launches.size() == 1 ? program.launches[0].function : "");
  if (!outcome.trap) outcome.trap = late;
  if (context_.hung()) buffers.abandon();
  if (outcome.trap) return outcome;
  outcome.seconds = seconds_between(start, end);
  outcome.outputs = buffers.read_outputs();
  outcome.changed_inputs = buffers.changed();
  return outcome;
}

std::vector<double> CudaEngine::time(const Program& program, const TensorMap& inputs, int repeats,
                                     int warmups, std::optional<Trap>* trap) {
  DeviceBuffers buffers(driver_, program, inputs);
  const auto launches = context_.prepare(program, buffers);
  std::deque<Event> marks;  // marks[i] stands before run i
  for (int i = 0; i < warmups + repeats && !*trap; ++i) {
    // An error of an earlier launch may show here first; finish() reports it.
    if (driver_.cuEventRecord(marks.emplace_back(driver_), nullptr) != CUDA_SUCCESS) break;
    for (const PreparedLaunch& launch : launches)
      if (!*trap) *trap = context_.enqueue(launch);
  }
  const auto late = finish(marks.emplace_back(driver_), "");
  if (!*trap) *trap = late;
  if (context_.hung()) buffers.abandon();
  std::vector<double> seconds;
  if (*trap) return seconds;
  for (size_t i = static_cast<size_t>(warmups); i + 1 < marks.size(); ++i)
    seconds.push_back(seconds_between(marks[i], marks[i + 1]));
  return seconds;
}

}  // namespace assay
