// Runs a program on a GPU: requests to a worker process that holds the driver.
#include <fmt/format.h>

#include <new>

#include "src/base/backend/backend.h"
#include "src/base/backend/cuda_engine.h"
#include "src/base/backend/worker_process.h"
#include "src/base/fields/byte_fields.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

enum class Request : uint8_t { describe, run, run_one_at_a_time, time };
enum class Reply : uint8_t { done, bad_input };

struct GpuDescription {
  std::string name, arch;
  size_t bytes = 0;
  int version = 0;
};
template <typename Io>
void fields(Io& io, GpuDescription& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(arch);
  ASSAY_FIELD(bytes);
  ASSAY_FIELD(version);
}

/// What Request::time comes to.
struct Timing {
  std::optional<Trap> trap;
  std::vector<double> seconds;  ///< of each repeat
};
template <typename Io>
void fields(Io& io, Timing& x) {
  ASSAY_FIELD(trap);
  ASSAY_FIELD(seconds);
}

// ---- in the worker ----

GpuDescription describe() {
  const Driver driver = Driver::open();
  return {driver.device_name(), driver.arch(), driver.memory_bytes(), driver.version};
}

/// The answer to one request, after its leading Reply.
void serve(Request kind, ByteReader& in, ByteWriter& out, const std::vector<GpuBinary>& binaries,
           std::unique_ptr<CudaEngine>& engine) {
  if (kind == Request::describe) return out.put(describe());
  if (!engine) engine = std::make_unique<CudaEngine>(binaries);
  const Program program = in.get<Program>();
  const TensorMap inputs = in.get<TensorMap>();
  if (kind != Request::time) return out.put(engine->run(program, inputs, kind == Request::run_one_at_a_time));
  const auto repeats = in.get<int>(), warmups = in.get<int>();
  Timing timing;
  timing.seconds = engine->time(program, inputs, repeats, warmups, &timing.trap);
  out.put(timing);
}

std::function<Answer(const std::vector<std::byte>&)> make_service(const std::vector<GpuBinary>& binaries) {
  // Never destroyed: the process ends without tidying up, which a kernel that hangs would block.
  auto* engine = new std::unique_ptr<CudaEngine>;
  return [engine, binaries](const std::vector<std::byte>& request) {
    ByteReader in(request);
    ByteWriter out;
    const auto kind = in.get<Request>();
    out.put(Reply::done);
    const auto refuse = [&](const char* why) {
      out.bytes.clear();
      out.put(Reply::bad_input);
      out.put(std::string(why));
    };
    try {
      serve(kind, in, out, binaries, *engine);
    } catch (const BadInput& error) {
      refuse(error.what());
    } catch (const std::bad_alloc&) {
      refuse("not enough memory for this case; make it smaller");
    }
    return Answer{std::move(out.bytes), *engine && (*engine)->lost()};
  };
}

// ---- in the program ----

/// Throws the worker's BadInput; nothing where the worker died.
std::optional<std::vector<std::byte>> ask(WorkerProcess& worker, const ByteWriter& request) {
  auto answer = worker.ask(request.bytes);
  if (!answer) return answer;
  ByteReader in(*answer);
  if (in.get<Reply>() == Reply::bad_input) throw BadInput(in.get<std::string>());
  answer->erase(answer->begin());
  return answer;
}

GpuDescription describe_through(WorkerProcess& worker) {
  ByteWriter request;
  request.put(Request::describe);
  const auto answer = ask(worker, request);
  if (!answer) throw BadInput("the NVIDIA driver crashed while starting");
  return ByteReader(*answer).get<GpuDescription>();
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(std::vector<GpuBinary> binaries)
      : binaries_(std::move(binaries)),
        worker_([given = binaries_] { return make_service(given); }),
        gpu_(describe_through(worker_)) {}

  std::string name() const override {
    std::string text = fmt::format("cuda {} ({})", gpu_.name, gpu_.arch);
    for (const GpuBinary& binary : binaries_) text += ", " + binary.path;
    return text;
  }

  Outcome run(const Program& program, const TensorMap& inputs) override {
    if (!program.blocks.empty())
      throw BadInput("--blocks: a GPU runs whole launches and holds whole tensors; use --backend vm");
    Outcome outcome = run_as(Request::run, program, inputs);
    // A trap found while waiting for several launches names none: a second run, one launch at a time, finds
    // which.
    if (outcome.trap && outcome.trap->where.function.empty() && outcome.trap->kind != TrapKind::hang) {
      Outcome again = run_as(Request::run_one_at_a_time, program, inputs);
      if (again.trap) return again;
    }
    return outcome;
  }

  std::vector<double> time(const Program& program, const TensorMap& inputs, int repeats,
                           int warmups) override {
    ByteWriter request = request_for(Request::time, program, inputs);
    request.put(repeats);
    request.put(warmups);
    const auto answer = ask(worker_, request);
    if (!answer) throw BadInput(program.name + " cannot be timed: the NVIDIA driver crashed");
    const auto timing = ByteReader(*answer).get<Timing>();
    if (timing.trap) throw BadInput(program.name + " cannot be timed: " + timing.trap->message);
    return timing.seconds;
  }

 private:
  static ByteWriter request_for(Request kind, const Program& program, const TensorMap& inputs) {
    ByteWriter request;
    request.put(kind);
    request.put(program);
    request.put(inputs);
    return request;
  }

  Outcome run_as(Request kind, const Program& program, const TensorMap& inputs) {
    const auto answer = ask(worker_, request_for(kind, program, inputs));
    if (answer) return ByteReader(*answer).get<Outcome>();
    Outcome outcome;
    outcome.trap = Trap{.kind = TrapKind::launch,
                        .message = program.name + ": the NVIDIA driver crashed over this program"};
    return outcome;
  }

  std::vector<GpuBinary> binaries_;
  WorkerProcess worker_;
  GpuDescription gpu_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return make_cuda_backend(options, {});
}

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&, std::vector<GpuBinary> binaries) {
  try {
    return std::make_unique<CudaBackend>(std::move(binaries));
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("no GPU: {}; use --backend vm", error.what()));
  }
}

std::string describe_gpu() {
  try {
    WorkerProcess worker([] { return make_service({}); });
    const GpuDescription gpu = describe_through(worker);
    return fmt::format("{} ({}), {:.1f} GiB, CUDA {}.{}", gpu.name, gpu.arch,
                       static_cast<double>(gpu.bytes) / (1 << 30), gpu.version / 1000,
                       gpu.version % 1000 / 10);
  } catch (const BadInput& error) {
    return std::string("none: ") + error.what();
  }
}

bool gpu_available() {
  return !gpu_arch().empty();
}

std::string gpu_arch() {
  try {
    WorkerProcess worker([] { return make_service({}); });
    return describe_through(worker).arch;
  } catch (const BadInput&) {
    return "";
  }
}

}  // namespace assay
