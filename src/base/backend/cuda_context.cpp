#include "src/base/backend/cuda_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/program.h"
#include "src/base/ptx/rewrite.h"

namespace assay {
namespace {

/// How long a run may take before it counts as a hang: ASSAY_GPU_TIMEOUT, or 60 s.
std::chrono::duration<double> hang_limit() {
  const char* chosen = std::getenv("ASSAY_GPU_TIMEOUT");
  const double seconds = chosen ? std::atof(chosen) : 0;
  return std::chrono::duration<double>(seconds > 0 ? seconds : 60);
}

/// Beyond this a kernel must opt in to dynamic shared memory (CUDA C++ Programming Guide, "Shared Memory").
constexpr uint32_t kDefaultSharedBytes = 48 * 1024;

uint64_t word_of(const Argument& argument, const DeviceBuffers& buffers) {
  if (const auto* pointer = std::get_if<PointerArgument>(&argument))
    return pointer->buffer.empty() ? 0 : buffers.at(pointer->buffer) + static_cast<uint64_t>(pointer->offset);
  uint64_t word = 0;
  std::visit(
      [&](const auto& value) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, PointerArgument>)
          std::memcpy(&word, &value, sizeof value);
      },
      argument);
  return word;
}

std::string launch_text(const Launch& launch) {
  return fmt::format("{} (grid {}x{}x{}, block {}x{}x{}, {} bytes of dynamic shared memory)", launch.function,
                     launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                     launch.block[2], launch.shared_bytes);
}

Trap launch_trap(const Launch& launch, const std::string& what) {
  Trap trap{.kind = "launch", .message = launch_text(launch) + " cannot be launched: " + what};
  trap.where.function = launch.function;
  return trap;
}

std::string kind_of(CUresult error) {
  if (error == CUDA_ERROR_ILLEGAL_ADDRESS) return "out-of-bounds";
  if (error == CUDA_ERROR_MISALIGNED_ADDRESS) return "misaligned";
  return error == CUDA_ERROR_LAUNCH_TIMEOUT ? "hang" : "launch";
}

/// The driver's log as one line.
std::string one_line(std::string log) {
  while (!log.empty() && std::isspace(static_cast<unsigned char>(log.back()))) log.pop_back();
  for (size_t at; (at = log.find('\n')) != std::string::npos;) log.replace(at, 1, "; ");
  return log;
}

}  // namespace

DeviceBuffers::DeviceBuffers(const Driver& driver, const Plan& plan, const TensorMap& inputs)
    : driver_(driver) {
  try {
    const auto upload_bytes = [&](const std::string& name, const std::vector<std::byte>& bytes) {
      const CUdeviceptr pointer = allocate(name, static_cast<int64_t>(bytes.size()));
      if (!bytes.empty())
        driver_.check(driver_.cuMemcpyHtoD(pointer, bytes.data(), bytes.size()), "uploading " + name);
    };
    const auto upload = [&](const std::string& name, const Tensor& tensor) {
      const auto layout = plan.layouts.find(name);
      if (layout == plan.layouts.end()) return upload_bytes(name, tensor.data);
      upload_bytes(name, strided_memory(tensor, layout->second));
      first_[name] = static_cast<CUdeviceptr>(layout->second.offset * format(tensor.dtype).bytes);
    };
    const auto poison = [&](const std::string& name, int64_t bytes) {
      const CUdeviceptr pointer = allocate(name, bytes);
      if (bytes > 0)
        driver_.check(driver_.cuMemsetD8(pointer, plan.poison, static_cast<size_t>(bytes)), "filling " + name);
    };
    for (const auto& [name, tensor] : inputs) upload(name, tensor);
    for (const Tensor& constant : plan.constants) upload(constant.name, constant);
    for (const Workspace& workspace : plan.workspaces) poison(workspace.name, workspace.bytes);
    for (const PlanOutput& output : plan.outputs)
      poison(output.name, Tensor(output.name, output.dtype, output.axes).bytes());
  } catch (...) {
    for (const auto& [name, pointer] : buffers_) driver_.cuMemFree(pointer);
    throw;
  }
}

DeviceBuffers::~DeviceBuffers() {
  for (const auto& [name, pointer] : buffers_) driver_.cuMemFree(pointer);
}

CUdeviceptr DeviceBuffers::allocate(const std::string& name, int64_t bytes) {
  CUdeviceptr pointer = 0;
  // The driver refuses 0 bytes; an empty tensor still has an address.
  const CUresult result = driver_.cuMemAlloc(&pointer, bytes > 0 ? static_cast<size_t>(bytes) : 1);
  driver_.check(result, fmt::format("allocating {} bytes for {} on the GPU", bytes, name));
  if (!buffers_.emplace(name, pointer).second) {
    driver_.cuMemFree(pointer);
    throw BadInput(fmt::format("two tensors or workspaces of the plan are called {}", name));
  }
  return pointer;
}

CUdeviceptr DeviceBuffers::at(const std::string& name) const {
  const auto found = buffers_.find(name);
  if (found == buffers_.end())
    throw BadInput(fmt::format("a launch names {}, which is no tensor of the plan", name));
  const auto first = first_.find(name);
  return found->second + (first == first_.end() ? 0 : first->second);
}

TensorMap DeviceBuffers::read_outputs(const Plan& plan) const {
  TensorMap outputs;
  for (const PlanOutput& output : plan.outputs) {
    Tensor tensor(output.name, output.dtype, output.axes);
    if (tensor.bytes() > 0)
      driver_.check(driver_.cuMemcpyDtoH(tensor.data.data(), at(output.name), tensor.data.size()),
                    "reading " + output.name);
    outputs.emplace(output.name, std::move(tensor));
  }
  return outputs;
}

TensorMap DeviceBuffers::changed(const Plan& plan, const TensorMap& inputs) const {
  TensorMap changed;
  for (const auto& [name, given] : inputs) {
    Tensor now(given.name, given.dtype, given.axes);
    if (now.bytes() == 0 || plan.layouts.contains(name)) continue;
    driver_.check(driver_.cuMemcpyDtoH(now.data.data(), at(name), now.data.size()), "reading " + name);
    if (now.data != given.data) changed.emplace(name, std::move(now));
  }
  return changed;
}

CudaContext::CudaContext(const Driver& driver, std::vector<GpuBinary> binaries)
    : driver_(driver), binaries_(std::move(binaries)) {
  driver_.check(driver_.cuCtxCreate(&context_, 0, driver_.device), "no context on the GPU");
}

CudaContext::~CudaContext() {
  if (!hung_) driver_.cuCtxDestroy(context_);
}

const CudaContext::Loaded& CudaContext::load(const Module& module, const GpuBinary* in_its_place) {
  const auto found = modules_.find(*module.ptx);
  if (found != modules_.end()) return found->second;
  Loaded loaded;
  for (const ptx::Function& function : ptx::parse(*module.ptx, module.path).functions)
    if (function.entry) loaded.parameters[function.name] = function.parameters.size();
  const std::string text = in_its_place ? in_its_place->bytes : ptx::make_rounding_explicit(*module.ptx);
  std::string log(8192, '\0');
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  const CUresult result = driver_.cuModuleLoadDataEx(&loaded.module, text.c_str(), 2, options, values);
  if (result != CUDA_SUCCESS)
    throw BadInput(fmt::format("{}: the driver refuses this {}: {}: {}",
                               in_its_place ? in_its_place->path : module.path, in_its_place ? "binary" : "PTX",
                               driver_.error_text(result), one_line(log.c_str())));
  return modules_.emplace(*module.ptx, std::move(loaded)).first->second;
}

std::vector<PreparedLaunch> CudaContext::prepare(const Plan& plan, const DeviceBuffers& buffers) {
  std::vector<PreparedLaunch> prepared;
  for (const Launch& launch : plan.launches) {
    const auto module = std::find_if(plan.modules.begin(), plan.modules.end(),
                                     [&](const Module& m) { return m.name == launch.module; });
    if (module == plan.modules.end())
      throw BadInput(fmt::format("{}: no module is called {}", launch.function, launch.module));
    const Loaded& loaded = load(*module, binary_for(binaries_, plan, module->name));
    const auto entry = loaded.parameters.find(launch.function);
    if (entry == loaded.parameters.end())
      throw BadInput(fmt::format("{} has no entry {}", module->path, launch.function));
    if (entry->second != launch.arguments.size())
      throw BadInput(fmt::format("{}: {} arguments for {} parameters ({})", launch.function,
                                 launch.arguments.size(), entry->second, module->path));
    PreparedLaunch ready{.launch = &launch};
    driver_.check(driver_.cuModuleGetFunction(&ready.function, loaded.module, launch.function.c_str()),
                  launch.function);
    for (const Argument& argument : launch.arguments) ready.values.push_back(word_of(argument, buffers));
    prepared.push_back(std::move(ready));
  }
  return prepared;
}

std::optional<Trap> CudaContext::enqueue(const PreparedLaunch& prepared) {
  const Launch& launch = *prepared.launch;
  if (launch.shared_bytes > kDefaultSharedBytes) {
    const CUresult result =
        driver_.cuFuncSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(launch.shared_bytes));
    if (result != CUDA_SUCCESS) return launch_trap(launch, driver_.error_text(result));
  }
  std::vector<void*> parameters;
  for (const uint64_t& value : prepared.values) parameters.push_back(const_cast<uint64_t*>(&value));
  const CUresult result = driver_.cuLaunchKernel(
      prepared.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
      launch.block[2], launch.shared_bytes, nullptr, parameters.data(), nullptr);
  if (result != CUDA_SUCCESS) return launch_trap(launch, driver_.error_text(result));
  return std::nullopt;
}

std::optional<Trap> CudaContext::finish(const Event& event) {
  const auto failed = [&](CUresult result) {
    return Trap{.kind = kind_of(result), .message = "the GPU reports " + driver_.error_text(result)};
  };
  if (const CUresult result = driver_.cuEventRecord(event, nullptr); result != CUDA_SUCCESS)
    return failed(result);
  const auto start = std::chrono::steady_clock::now();
  const auto limit = hang_limit();
  for (;;) {
    const CUresult result = driver_.cuEventQuery(event);
    if (result == CUDA_SUCCESS) return std::nullopt;
    if (result != CUDA_ERROR_NOT_READY) return failed(result);
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > limit) {
      hung_ = true;
      return Trap{.kind = "hang", .message = fmt::format("the GPU did not finish in {} s", limit.count())};
    }
    // Short waits spin, long ones leave the processor to others.
    if (waited > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace assay
