// Runs a plan on a GPU, through the driver API alone.
#include <fmt/format.h>

#include <deque>

#include "src/backend/backend.h"
#include "src/backend/cuda_context.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

class CudaBackend : public Backend {
 public:
  CudaBackend() : driver_(Driver::open()), context_(std::make_unique<CudaContext>(driver_)) {}

  ~CudaBackend() override {
    if (context_->hung()) context_.release();
  }

  std::string name() const override {
    return fmt::format("cuda {} ({})", driver_.device_name(), driver_.arch());
  }

  Outcome run(const Plan& plan, const TensorMap& inputs) override {
    Outcome outcome = attempt(plan, inputs, false);
    // An error found while waiting names no launch: a second run, one launch at a time, finds which.
    if (outcome.trap && outcome.trap->where.function.empty() && !context_->hung() &&
        plan.launches.size() > 1) {
      Outcome again = attempt(plan, inputs, true);
      if (again.trap) return again;
    }
    return outcome;
  }

  std::vector<double> time(const Plan& plan, const TensorMap& inputs, int repeats, int warmups) override {
    std::deque<Event> marks;  // marks[i] stands before run i
    if (const auto trap = enqueue_repeats(plan, inputs, warmups + repeats, marks)) {
      marks.clear();
      replace_context();
      throw BadInput(plan.kernel + " cannot be timed: " + trap->message);
    }
    std::vector<double> seconds;
    for (size_t i = static_cast<size_t>(warmups); i + 1 < marks.size(); ++i)
      seconds.push_back(between(marks[i], marks[i + 1]));
    return seconds;
  }

 private:
  void make_current() {
    if (context_->hung())
      throw BadInput("the GPU still runs a kernel that does not end; end this process and start again");
    // The backend may be used from any thread.
    context_->make_current();
  }

  /// A context in which a kernel failed stays unusable.
  void replace_context() {
    if (!context_->hung()) context_ = std::make_unique<CudaContext>(driver_);
  }

  std::optional<Trap> enqueue_repeats(const Plan& plan, const TensorMap& inputs, int runs,
                                      std::deque<Event>& marks) {
    make_current();
    DeviceBuffers buffers(driver_, plan, inputs);
    const auto launches = context_->prepare(plan, buffers);
    for (int i = 0; i < runs; ++i) {
      // An error of an earlier launch may show here first; finish() reports it.
      if (driver_.cuEventRecord(marks.emplace_back(driver_), nullptr) != CUDA_SUCCESS) break;
      for (const PreparedLaunch& launch : launches)
        if (const auto trap = context_->enqueue(launch)) return trap;
    }
    const auto trap = context_->finish(marks.emplace_back(driver_));
    if (context_->hung()) buffers.abandon();
    return trap;
  }

  double between(CUevent start, CUevent end) const {
    float milliseconds = 0;
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, start, end), "cuEventElapsedTime");
    return milliseconds * 1e-3;
  }

  Outcome attempt(const Plan& plan, const TensorMap& inputs, bool one_at_a_time) {
    Outcome outcome;
    {
      make_current();
      DeviceBuffers buffers(driver_, plan, inputs);
      const auto launches = context_->prepare(plan, buffers);
      const Event start(driver_), end(driver_);
      driver_.check(driver_.cuEventRecord(start, nullptr), "cuEventRecord");
      for (const PreparedLaunch& launch : launches) {
        outcome.trap = context_->enqueue(launch);
        if (!outcome.trap && one_at_a_time) outcome.trap = finish(end, launch.launch->function);
        if (outcome.trap) break;
      }
      if (!outcome.trap)
        outcome.trap = finish(end, plan.launches.size() == 1 ? plan.launches[0].function : "");
      if (!outcome.trap) {
        outcome.seconds = between(start, end);
        outcome.outputs = buffers.read_outputs(plan);
        return outcome;
      }
      if (context_->hung()) buffers.abandon();
    }
    replace_context();
    return outcome;
  }

  std::optional<Trap> finish(const Event& end, const std::string& function) {
    auto trap = context_->finish(end);
    if (trap) {
      trap->where.function = function;
      if (!function.empty()) trap->message = function + ": " + trap->message;
    }
    return trap;
  }

  Driver driver_;
  std::unique_ptr<CudaContext> context_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&) {
  return std::make_unique<CudaBackend>();
}

std::string describe_gpu() {
  try {
    const Driver driver = Driver::open();
    return fmt::format("{} ({}), {:.1f} GiB, CUDA {}.{}", driver.device_name(), driver.arch(),
                       static_cast<double>(driver.memory_bytes()) / (1 << 30), driver.version / 1000,
                       driver.version % 1000 / 10);
  } catch (const BadInput& error) {
    return error.what();
  }
}

bool gpu_available() {
  return !gpu_arch().empty();
}

std::string gpu_arch() {
  try {
    return Driver::open().arch();
  } catch (const BadInput&) {
    return "";
  }
}

}  // namespace assay
