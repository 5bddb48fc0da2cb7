#include "src/base/backend/cuda_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "src/base/backend/tile_map_encoding.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/parameters.h"
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

std::string launch_text(const Launch& launch) {
  return fmt::format("{} (grid {}x{}x{}, block {}x{}x{}, {} bytes of dynamic shared memory)", launch.function,
                     launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                     launch.block[2], launch.shared_bytes);
}

Trap launch_trap(const Launch& launch, const std::string& what) {
  Trap trap{.kind = TrapKind::launch, .message = launch_text(launch) + " cannot be launched: " + what};
  trap.where.function = launch.function;
  return trap;
}

TrapKind kind_of(CUresult error) {
  if (error == CUDA_ERROR_ILLEGAL_ADDRESS) return TrapKind::out_of_bounds;
  if (error == CUDA_ERROR_MISALIGNED_ADDRESS) return TrapKind::misaligned;
  return error == CUDA_ERROR_LAUNCH_TIMEOUT ? TrapKind::hang : TrapKind::launch;
}

/// The driver's log as one line.
std::string one_line(std::string log) {
  while (!log.empty() && std::isspace(static_cast<unsigned char>(log.back()))) log.pop_back();
  for (size_t at; (at = log.find('\n')) != std::string::npos;) log.replace(at, 1, "; ");
  return log;
}

}  // namespace

DeviceBuffers::DeviceBuffers(const Driver& driver, const Program& program, const TensorMap& inputs)
    : driver_(driver), buffers_(buffers_of(program, inputs)) {
  try {
    for (const Buffer& buffer : buffers_)
      if (buffer.storage < 0) place(buffer, program.poison);
    for (const Buffer& buffer : buffers_)
      if (buffer.storage >= 0) place(buffer, program.poison);
  } catch (...) {
    for (const CUdeviceptr pointer : allocations_) driver_.cuMemFree(pointer);
    throw;
  }
}

DeviceBuffers::~DeviceBuffers() {
  for (const CUdeviceptr pointer : allocations_) driver_.cuMemFree(pointer);
}

void DeviceBuffers::place(const Buffer& buffer, uint8_t poison) {
  CUdeviceptr pointer = 0;
  if (buffer.storage >= 0) {
    pointer = addresses_.at(buffers_[static_cast<size_t>(buffer.storage)].name) +
              static_cast<CUdeviceptr>(buffer.offset);
  } else {
    // The driver refuses 0 bytes; an empty tensor still has an address.
    const CUresult result =
        driver_.cuMemAlloc(&pointer, buffer.bytes > 0 ? static_cast<size_t>(buffer.bytes) : 1);
    driver_.check(result, fmt::format("allocating {} bytes for {} on the GPU", buffer.bytes, buffer.name));
    allocations_.push_back(pointer);
  }
  if (buffer.contents)
    upload(buffer, pointer);
  else if (buffer.storage < 0 && buffer.bytes > 0)
    driver_.check(driver_.cuMemsetD8(pointer, poison, static_cast<size_t>(buffer.bytes)),
                  "filling " + buffer.name);
  const int64_t before = buffer.layout ? buffer.layout->offset * format(buffer.shape.dtype).bytes : 0;
  addresses_[buffer.name] = pointer + static_cast<CUdeviceptr>(before);
}

void DeviceBuffers::upload(const Buffer& buffer, CUdeviceptr to) const {
  const auto send = [&](const std::vector<std::byte>& bytes) {
    if (!bytes.empty())
      driver_.check(driver_.cuMemcpyHtoD(to, bytes.data(), bytes.size()), "uploading " + buffer.name);
  };
  if (buffer.layout)
    send(strided_memory(*buffer.contents, *buffer.layout));
  else
    send(buffer.contents->data);
}

CUdeviceptr DeviceBuffers::at(const std::string& name) const {
  const auto found = addresses_.find(name);
  if (found == addresses_.end())
    throw BadInput(fmt::format("a launch names {}, which is no tensor of the program", name));
  return found->second;
}

Tensor DeviceBuffers::read(const Buffer& buffer) const {
  Tensor tensor(buffer.shape.name, buffer.shape.dtype, buffer.shape.axes);
  if (tensor.bytes() > 0)
    driver_.check(driver_.cuMemcpyDtoH(tensor.data.data(), at(buffer.name), tensor.data.size()),
                  "reading " + buffer.name);
  return tensor;
}

TensorMap DeviceBuffers::read_outputs() const {
  TensorMap outputs;
  for (const Buffer& buffer : buffers_)
    if (buffer.is_read_back()) outputs.emplace(buffer.name, read(buffer));
  return outputs;
}

TensorMap DeviceBuffers::changed() const {
  TensorMap changed;
  for (const Buffer& buffer : buffers_) {
    if (buffer.use != Buffer::Use::in || buffer.layout || is_shared(buffers_, buffer)) continue;
    Tensor now = read(buffer);
    if (now.data != buffer.contents->data) changed.emplace(buffer.name, std::move(now));
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
  for (ptx::Function& function : ptx::parse_functions(*module.ptx, module.path).functions) {
    if (!function.entry) continue;
    function.body.clear();
    loaded.entries.emplace(function.name, std::move(function));
  }
  const std::string text = in_its_place ? in_its_place->bytes : ptx::make_rounding_explicit(*module.ptx);
  std::string log(8192, '\0');
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  const CUresult result = driver_.cuModuleLoadDataEx(&loaded.module, text.c_str(), 2, options, values);
  if (result != CUDA_SUCCESS)
    throw BadInput(
        fmt::format("{}: the driver refuses this {}: {}: {}", in_its_place ? in_its_place->path : module.path,
                    in_its_place ? "binary" : "PTX", driver_.error_text(result), one_line(log.c_str())));
  return modules_.emplace(*module.ptx, std::move(loaded)).first->second;
}

std::vector<PreparedLaunch> CudaContext::prepare(const Program& program, const DeviceBuffers& buffers) {
  std::vector<PreparedLaunch> prepared;
  for (const Launch& launch : program.launches) {
    const auto module = std::find_if(program.modules.begin(), program.modules.end(),
                                     [&](const Module& m) { return m.name == launch.module; });
    if (module == program.modules.end())
      throw BadInput(fmt::format("{}: no module is called {}", launch.function, launch.module));
    const Loaded& loaded = load(*module, binary_for(binaries_, program, module->name));
    const auto entry = loaded.entries.find(launch.function);
    if (entry == loaded.entries.end())
      throw BadInput(fmt::format("{} has no entry {}", module->path, launch.function));
    require_arguments(launch, entry->second, fmt::format("{}: launch of {}", program.name, launch.function));
    PreparedLaunch ready{&launch, nullptr, {}};
    driver_.check(driver_.cuModuleGetFunction(&ready.function, loaded.module, launch.function.c_str()),
                  launch.function);
    for (const Argument& argument : launch.arguments)
      ready.arguments.push_back(filled(
          argument,
          [&](const PointerArgument& to) { return buffers.at(to.buffer) + static_cast<uint64_t>(to.offset); },
          [&](const TileMap& map, uint64_t address, std::byte* to) {
            encode_tile_map(driver_, launch.function, map, address, to);
          }));
    prepared.push_back(std::move(ready));
  }
  return prepared;
}

namespace {

CUresult launch_with_attribute(const Driver& driver, const Launch& launch, CUfunction function,
                               void** parameters) {
  if (!driver.cuLaunchKernelEx)
    throw BadInput(launch.function +
                   ": the NVIDIA driver launches neither clusters nor whole grids together; one for CUDA 12 "
                   "or newer is needed");
  constexpr uint32_t portable = 8;
  const auto [x, y, z] = launch.cluster;
  if (x * y * z > portable)
    driver.check(driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                 launch.function);
  CUlaunchAttribute attribute{CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 0, {x, y, z}};
  if (launch.cooperative) attribute = {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0, {1}};
  const CUlaunchConfig config{{launch.grid[0], launch.grid[1], launch.grid[2]},
                              {launch.block[0], launch.block[1], launch.block[2]},
                              launch.shared_bytes,
                              nullptr,
                              &attribute,
                              1};
  return driver.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

}  // namespace

std::optional<Trap> CudaContext::enqueue(const PreparedLaunch& prepared) {
  const Launch& launch = *prepared.launch;
  if (launch.shared_bytes > kDefaultSharedBytes) {
    const CUresult result =
        driver_.cuFuncSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(launch.shared_bytes));
    if (result != CUDA_SUCCESS) return launch_trap(launch, driver_.error_text(result));
  }
  std::vector<void*> parameters;
  for (const auto& bytes : prepared.arguments) parameters.push_back(const_cast<std::byte*>(bytes.data()));
  const CUresult result =
      launch.cluster[0] != 0 || launch.cooperative
          ? launch_with_attribute(driver_, launch, prepared.function, parameters.data())
          : driver_.cuLaunchKernel(prepared.function, launch.grid[0], launch.grid[1], launch.grid[2],
                                   launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
                                   nullptr, parameters.data(), nullptr);
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
      return Trap{.kind = TrapKind::hang,
                  .message = fmt::format("the GPU did not finish in {} s", limit.count())};
    }
    // Short waits spin, long ones leave the processor to others.
    if (waited > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace assay
