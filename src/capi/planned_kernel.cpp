#include "src/capi/planned_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/views/gather_plan.h"
#include "src/base/backend/tile_map_encoding.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

constexpr int64_t kAlignment = 256;                 // of a workspace
constexpr uint64_t kTensorAlignment = 16;           // the widest load
constexpr uint32_t kDefaultSharedBytes = 48 << 10;  // without asking for more

Dtype dtype_of(assay_format format) {
  switch (format) {
    case ASSAY_BF16:
      return Dtype::bf16;
    case ASSAY_FP16:
      return Dtype::fp16;
    case ASSAY_FP32:
      return Dtype::fp32;
  }
  throw BadInput(
      fmt::format("format {}: use ASSAY_BF16, ASSAY_FP16 or ASSAY_FP32", static_cast<int>(format)));
}
assay_format format_of(Dtype dtype) {
  return dtype == Dtype::bf16 ? ASSAY_BF16 : dtype == Dtype::fp16 ? ASSAY_FP16 : ASSAY_FP32;
}

Direction direction_of(assay_direction direction) {
  switch (direction) {
    case ASSAY_FORWARD:
      return Direction::forward;
    case ASSAY_BACKWARD:
      return Direction::backward;
    case ASSAY_BOTH:
      return Direction::both;
  }
  throw BadInput(fmt::format("direction {}: use ASSAY_FORWARD, ASSAY_BACKWARD or ASSAY_BOTH",
                             static_cast<int>(direction)));
}

/// Throws BadInput where a caller's struct does not say how long it is, or is shorter than ever.
template <typename Struct>
void require_size(const Struct& given, const char* name) {
  if (given.struct_bytes < sizeof(Struct))
    throw BadInput(fmt::format("{0}: struct_bytes = {1}: set it to sizeof({0}), which is {2}", name,
                               given.struct_bytes, sizeof(Struct)));
}

/// The next of a list whose structs may be longer than they are here.
template <typename Struct>
const Struct* next_of(const Struct* each) {
  return reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(each) + each->struct_bytes);
}

/// Case::layout of the strides given, "q=4096:64:64:1,..".
std::string layout_of_problem(const assay_problem& p, const Case& c, const Operator& op) {
  std::vector<LayoutEntry> entries;
  for (const assay_strides* each = p.strides; each && each->name; each = next_of(each)) {
    require_size(*each, "assay_strides");
    LayoutEntry entry{each->name, nullptr, {}};
    for (const ArgumentSpec& spec : inputs_of(c, op))
      if (spec.name == entry.input) entry.strides.assign(each->strides, each->strides + spec.axes.size());
    if (entry.strides.empty()) entry.strides = {0};  // of no input: validate() names it
    entries.push_back(std::move(entry));
  }
  return layout_text(parse_layout(layout_text(entries)));  // throws where one is given twice
}

Case case_of(const std::string& kernel, const assay_problem& p, const Operator& op) {
  require_size(p, "assay_problem");
  const auto size = [](int64_t n) { return n == 0 ? 1 : n; };
  Case c;
  c.kernel = kernel;
  c.B = size(p.B), c.T = p.T, c.H = size(p.H), c.HV = p.HV, c.K = size(p.K), c.V = size(p.V), c.M = p.M;
  if (p.cu_seqlens) c.cu_seqlens.assign(p.cu_seqlens, p.cu_seqlens + p.sequences + 1);
  c.dtype = dtype_of(p.format), c.gate_dtype = dtype_of(p.gate_format);
  c.direction = direction_of(p.direction);
  if (p.scale != 0) c.scale = p.scale;
  for (const assay_parameter* each = p.parameters; each && each->name; each = next_of(each)) {
    require_size(*each, "assay_parameter");
    c.parameters[each->name] = each->value;
  }
  std::set<std::string> absent;
  for (const char* const* name = p.absent; name && *name; ++name) absent.insert(*name);
  c.initial_state = absent.erase("initial_state") == 0;
  bool no_cotangent = false;
  for (const ArgumentSpec& spec : op.cotangents())
    if (spec.optional) no_cotangent |= absent.erase(std::string(spec.name)) > 0;
  c.final_state_gradient = runs_backward(c) && !no_cotangent;
  c.without = std::move(absent);
  c.layout = layout_of_problem(p, c, op);
  return c;
}

void require_direction(const Kernel& kernel, const ResolvedCase& c) {
  const auto directions = directions_of(kernel);
  if (std::find(directions.begin(), directions.end(), c.direction) == directions.end())
    throw BadInput(fmt::format("{}: no entry point for direction {}", kernel.name, name_of(c.direction)));
  if (kernel.refuses)
    if (const std::string why = kernel.refuses(c); !why.empty()) throw BadInput(why);
}

}  // namespace

PlannedKernel::PlannedKernel(const char* name, const assay_problem& problem) {
  const Kernel& kernel = find_kernel(name);
  const Operator& op = find_operator(kernel.operator_name);
  const ResolvedCase c = resolve(case_of(kernel.name, problem, op), op);
  require_direction(kernel, c);
  TensorMap inputs;  // shapes only: plans ask which are there
  for (const SizedArgument& input : c.inputs) {
    list(input.shape, false, input.layout);
    inputs.emplace(input.shape.name, input.shape);
  }
  plan_ = program_with_views(kernel, c, inputs);
  for (const ProgramOutput& output : plan_.outputs) {
    Tensor tensor;
    tensor.name = output.name, tensor.dtype = output.dtype, tensor.axes = output.axes;
    list(tensor, true, std::nullopt);
  }
  for (const Workspace& workspace : plan_.workspaces) {
    workspace_offsets_[workspace.name] = workspace_bytes_;
    workspace_bytes_ += (workspace.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

PlannedKernel::~PlannedKernel() {
  for (const auto& [name, pointer] : constants_) driver_->cuMemFree(pointer);
}

void PlannedKernel::list(const Tensor& shape, bool is_output, const std::optional<TensorLayout>& layout) {
  assay_tensor tensor{};
  tensor.struct_bytes = sizeof tensor;
  tensor.name = names_.emplace_back(shape.name).c_str();
  tensor.is_output = is_output;
  tensor.format = format_of(shape.dtype);
  tensor.bytes = layout ? layout->elements * format(shape.dtype).bytes : shape.bytes();
  const std::vector<int64_t> strides = layout ? layout->strides : shape.strides();
  for (const Axis& axis : shape.axes) {
    tensor.strides[tensor.rank] = strides[static_cast<size_t>(tensor.rank)];
    tensor.shape[tensor.rank++] = axis.size;
  }
  tensors_.push_back(tensor);
  alignments_.push_back(layout ? static_cast<uint64_t>(format(shape.dtype).bytes) : kTensorAlignment);
}

/// Modules and constants of the plan. Kernels of ours say how they round: the driver may contract nothing.
void PlannedKernel::load() {
  auto driver = std::make_unique<Driver>(Driver::open());
  std::map<std::string, CUmodule> modules;
  for (const Module& module : plan_.modules)
    driver->check(driver->cuModuleLoadDataEx(&modules[module.name], module.ptx->c_str(), 0, nullptr, nullptr),
                  "loading " + module.path);
  std::vector<Ready> launches;
  for (const Launch& launch : plan_.launches) {
    Ready ready{&launch, nullptr};
    driver->check(
        driver->cuModuleGetFunction(&ready.function, modules.at(launch.module), launch.function.c_str()),
        launch.function);
    if (launch.shared_bytes > kDefaultSharedBytes)
      driver->check(
          driver->cuFuncSetAttribute(ready.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(launch.shared_bytes)),
          launch.function);
    launches.push_back(ready);
  }
  std::map<std::string, CUdeviceptr> constants;
  try {
    for (const Tensor& constant : plan_.constants) {
      CUdeviceptr pointer = 0;
      driver->check(driver->cuMemAlloc(&pointer, std::max<size_t>(1, constant.data.size())), constant.name);
      constants[constant.name] = pointer;
      if (!constant.data.empty())
        driver->check(driver->cuMemcpyHtoD(pointer, constant.data.data(), constant.data.size()),
                      constant.name);
    }
  } catch (...) {
    for (const auto& [name, pointer] : constants) driver->cuMemFree(pointer);
    throw;
  }
  driver_ = std::move(driver), constants_ = std::move(constants), launches_ = std::move(launches);
}

void PlannedKernel::run(void* const* tensors, void* workspace, void* stream) {
  std::map<std::string, CUdeviceptr> addresses;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto address = reinterpret_cast<CUdeviceptr>(tensors[i]);
    if (tensors_[i].bytes > 0 && address == 0)
      throw BadInput(fmt::format("{}: its pointer {:#x} is missing", tensors_[i].name, address));
    if (tensors_[i].bytes > 0 && address % alignments_[i] != 0)
      throw BadInput(fmt::format("{}: its pointer {:#x} is not aligned to {} bytes", tensors_[i].name,
                                 address, alignments_[i]));
    addresses[tensors_[i].name] = address;
  }
  const auto base = reinterpret_cast<CUdeviceptr>(workspace);
  if (workspace_bytes_ > 0 && (base == 0 || base % kAlignment != 0))
    throw BadInput(fmt::format("workspace: {} bytes aligned to 256 are needed", workspace_bytes_));
  for (const auto& [name, offset] : workspace_offsets_)
    addresses[name] = base + static_cast<uint64_t>(offset);
  for (const Alias& alias : plan_.aliases)
    addresses[alias.name] = addresses.at(alias.storage) + static_cast<uint64_t>(alias.offset);
  if (!driver_) load();
  addresses.insert(constants_.begin(), constants_.end());
  for (const auto& [launch, function] : launches_) {
    std::vector<std::vector<std::byte>> arguments;
    for (const Argument& argument : launch->arguments)
      arguments.push_back(filled(
          argument,
          [&](const PointerArgument& to) {
            return addresses.at(to.buffer) + static_cast<uint64_t>(to.offset);
          },
          [&](const TileMap& map, uint64_t address, std::byte* to) {
            encode_tile_map(*driver_, launch->function, map, address, to);
          }));
    std::vector<void*> parameters;
    for (auto& bytes : arguments) parameters.push_back(bytes.data());
    driver_->check(
        driver_->cuLaunchKernel(function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                                launch->block[1], launch->block[2], launch->shared_bytes,
                                static_cast<CUstream>(stream), parameters.data(), nullptr),
        launch->function);
  }
}

}  // namespace assay
