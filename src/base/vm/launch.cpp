#include "src/base/vm/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/block_choice.h"
#include "src/base/program/parameters.h"
#include "src/base/program/tile_map_bytes.h"
#include "src/base/vm/compiled/compiled_code.h"
#include "src/base/vm/device_heap.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/paged_tensor.h"

namespace assay::vm {
namespace {

constexpr uint64_t most_held = uint64_t{1} << 30;        // bytes of decoded entries
constexpr uint64_t default_budget = uint64_t{1} << 29;   // warp instructions; half a minute of endless loop
constexpr int64_t largest_variables = int64_t{1} << 29;  // bytes of .global and .const variables
constexpr uint64_t grid_workspace_bytes = 256;
constexpr uint64_t largest_together = uint64_t{1} << 30;  // bytes of the blocks of a launch that run together
constexpr uint32_t largest_cluster = 16;  // blocks, with cudaFuncAttributeNonPortableClusterSizeAllowed
constexpr uint32_t largest_shared = 227 * 1024;  // bytes per block, the most an sm_90 block may have

uint32_t architecture_of(const std::string& arch) {
  uint32_t number = 0;
  for (const char c : arch)
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<uint32_t>(c - '0');
  return number;
}

/// Tensor-core forms that came with a later architecture.
void refuse_missing_forms(const Code& code, const TensorCoreModel& model) {
  for (const Op& op : code.ops) {
    if (!op.row || op.row->flow != Flow::matrix) continue;
    const int first = first_architecture(MatrixForm::of(op.immediate));
    if (first <= model.number) continue;
    const SourceLocation at = where(code, op);
    throw BadInput(
        fmt::format("{}:{}: {} in {}: {} has no such instruction, sm_{} is the first that has it; choose "
                    "another with --arch",
                    code.module->path, at.ptx_line, opcode_of(code, op), at.function, model.arch, first));
  }
}

/// As the launch says, or the entry; a launch that says another is refused.
std::array<uint32_t, 3> cluster_of(const Launch& launch, const ptx::Function& entry, const std::string& who) {
  const auto& required = entry.required_cluster;
  std::array<uint32_t, 3> cluster = launch.cluster;
  if (cluster[0] == 0)
    for (size_t i = 0; i < 3; ++i) cluster[i] = static_cast<uint32_t>(std::max(required[i], 1));
  for (size_t i = 0; i < 3; ++i)
    if (cluster[i] == 0 || (required[0] != 0 && cluster[i] != static_cast<uint32_t>(required[i])))
      throw BadInput(
          fmt::format("{} has clusters of {} x {} x {} blocks, the entry is compiled for {} x {} x {} "
                      "(.reqnctapercluster)",
                      who, cluster[0], cluster[1], cluster[2], required[0], required[1], required[2]));
  return cluster;
}

template <class T>
void put(std::vector<std::byte>& block, int64_t offset, T value) {
  std::memcpy(block.data() + offset, &value, sizeof value);
}

}  // namespace

PreparedProgram::PreparedProgram(const Program& program, const TensorMap& inputs,
                                 const MachineOptions& options, std::span<const LiveStorage> storages)
    : program_(program), options_(options) {
  context_.tensor_core = &tensor_core_model(options.arch);
  context_.architecture = architecture_of(options.arch);
  context_.poison = program.poison;
  context_.order = options.order;
  context_.abandoned = abandon_flag;
  if (options.most_lane_instructions) context_.most_lane_instructions = options.most_lane_instructions;
  context_.instruction_budget = options.instruction_budget ? options.instruction_budget : default_budget;
  for (const Launch& launch : program.launches) {
    const Module* source = nullptr;
    for (const Module& module : program.modules)
      if (module.name == launch.module) source = &module;
    if (!source)
      throw BadInput(program.name + ": launch of " + launch.function + " names module " + launch.module +
                     ", which the program lacks");
    codes_.push_back(decoded(*source, launch.function));
    refuse_missing_forms(*codes_.back(), *context_.tensor_core);
  }
  allocate(inputs);
  place(storages);
  for (const auto& code : codes_) {
    const HeapOfProcess* const process = HeapOfProcess::current();
    const DeviceHeap* const kept = process ? process->before() : nullptr;
    if ((!code->heap && !kept) || !calls_.heap.bytes.empty()) continue;
    if (kept)
      calls_.heap = *kept;
    else
      calls_.heap.bytes.assign(DeviceHeap::size, std::byte{program.poison}),
          calls_.heap.written.assign(DeviceHeap::size, 0);
    memory_.place_heap(calls_);
  }
  context_.calls = &calls_;
  if (std::any_of(program.launches.begin(), program.launches.end(),
                  [](const Launch& l) { return l.cooperative; })) {
    auto& workspace = bytes_["grid workspace"];
    workspace.assign(grid_workspace_bytes, std::byte{0});
    grid_workspace_ = memory_.add("grid workspace", workspace.data(), workspace.size(), nullptr);
  }
  for (size_t i = 0; i < program.launches.size(); ++i) lay_out_parameters(i);
}

void PreparedProgram::allocate(const TensorMap& inputs) {
  buffers_ = buffers_of(program_, inputs);
  for (const Buffer& buffer : buffers_)
    if (buffer.storage < 0) allocate(buffer);
  for (const Buffer& buffer : buffers_)
    if (buffer.storage >= 0) place_in_storage(buffer);
}

void PreparedProgram::allocate(const Buffer& buffer) {
  const bool too_large = !program_.blocks.empty() && buffer.bytes > kLargestHeld;
  std::byte* data = nullptr;
  std::shared_ptr<PagedBytes> pages;
  const Tensor* shape = nullptr;
  const auto hold = [&](std::vector<std::byte> bytes) {
    data = (bytes_[buffer.name] = std::move(bytes)).data();
  };
  if (buffer.use == Buffer::Use::workspace) {
    if (const auto copied = tensors_.find(buffer.shape.name); copied != tensors_.end())
      shape = copied->second.axes == buffer.shape.axes ? &copied->second : &buffer.shape;
    if (too_large)
      pages = poisoned_pages(program_.poison);
    else
      hold(std::vector<std::byte>(static_cast<size_t>(buffer.bytes), std::byte{program_.poison}));
  } else {
    Tensor& kept = tensors_[buffer.name] =
        buffer.contents && !buffer.layout ? *buffer.contents : buffer.shape;
    shape = &kept;
    if (buffer.layout) {  // names elements; what they hold is in the memory behind the view
      hold(strided_memory(*buffer.contents, *buffer.layout));
    } else if (buffer.contents) {
      if (!kept.is_held()) pages = pages_of(kept);
    } else if (too_large) {
      kept.source = poisoned_elements(kept.dtype, program_.poison);
      pages = poisoned_pages(program_.poison);
    } else {
      kept.data.assign(static_cast<size_t>(buffer.bytes), std::byte{program_.poison});
    }
    if (!data && !pages) data = kept.data.data();
  }
  uint64_t& address = addresses_[buffer.name];
  if (const auto placed = program_.places.find(buffer.name); placed != program_.places.end()) {
    address = placed->second;
    memory_.place(address, buffer.name, data, static_cast<uint64_t>(buffer.bytes), shape, std::move(pages),
                  buffer.layout);
  } else {
    address = memory_.add(buffer.name, data, static_cast<uint64_t>(buffer.bytes), shape, std::move(pages),
                          buffer.layout);
  }
  if (buffer.layout)
    address += static_cast<uint64_t>(buffer.layout->offset * format(buffer.shape.dtype).bytes);
}

void PreparedProgram::place(std::span<const LiveStorage> storages) {
  for (const LiveStorage& storage : storages)
    memory_.place(storage.address, storage.name, storage.data, storage.bytes, storage.tensor, nullptr,
                  storage.layout);
}

void PreparedProgram::place_in_storage(const Buffer& buffer) {
  const std::string& storage = buffers_[static_cast<size_t>(buffer.storage)].name;
  const Place whole = *memory_.find(storage);
  if (!whole.allocation->data || (buffer.contents && !buffer.contents->is_held()))
    throw BadInput(fmt::format("{}: {} cannot lie in {}: one of them is too large to be held", program_.name,
                               buffer.name, storage));
  const Tensor* shape = nullptr;
  if (buffer.use != Buffer::Use::workspace) shape = &(tensors_[buffer.name] = buffer.shape);
  if (buffer.contents)
    std::copy(buffer.contents->data.begin(), buffer.contents->data.end(),
              whole.allocation->data + buffer.offset);
  addresses_[buffer.name] =
      memory_.add_part(whole.allocation->base, buffer.name, static_cast<uint64_t>(buffer.offset),
                       static_cast<uint64_t>(buffer.bytes), shape);
}

std::optional<Trap> PreparedProgram::refused_launch() const {
  for (const Launch& launch : program_.launches)
    for (size_t axis = 1; axis < 3; ++axis) {
      if (launch.grid[axis] <= 65535) continue;
      Trap trap;
      trap.kind = TrapKind::launch;
      trap.where.function = launch.function;
      trap.message = fmt::format(
          "{}: the launch of {} has a grid of {} blocks in {}; no GPU takes more than 65535 there",
          program_.name, launch.function, launch.grid[axis], axis == 1 ? 'y' : 'z');
      return trap;
    }
  return std::nullopt;
}

bool PreparedProgram::has_pages() const {
  return std::any_of(memory_.allocations().begin(), memory_.allocations().end(),
                     [](const Allocation& a) { return a.pages != nullptr; });
}

uint64_t first_of_cluster(uint64_t block, const std::array<uint32_t, 3>& grid,
                          const std::array<uint32_t, 3>& cluster) {
  std::array<uint32_t, 3> at = unfold(block, grid);
  for (size_t i = 0; i < 3; ++i) at[i] -= at[i] % cluster[i];
  return (uint64_t{at[2]} * grid[1] + at[1]) * grid[0] + at[0];
}

BlockList PreparedProgram::blocks(size_t index) const {
  const auto& grid = program_.launches[index].grid;
  const uint64_t all = uint64_t{grid[0]} * grid[1] * grid[2];
  const std::array<uint32_t, 3>& cluster = clusters_[index];
  const bool whole = program_.blocks.empty();
  if (whole && count_of(cluster) == 1) return {all, {}, Permutation(options_.order, all)};
  std::vector<uint64_t> chosen = whole ? std::vector<uint64_t>(all) : chosen_blocks(program_.blocks, all);
  if (whole) std::iota(chosen.begin(), chosen.end(), uint64_t{0});
  for (uint64_t& block : chosen) block = first_of_cluster(block, grid, cluster);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  const uint64_t count = chosen.size();
  return {count, std::move(chosen), Permutation(options_.order, count)};
}

/// A cooperative launch, or one of blocks that wait for each other, as far as there is memory for all of
/// them.
bool PreparedProgram::runs_together(size_t index) const {
  const Launch& launch = program_.launches[index];
  const Code& code = *codes_[index];
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (!launch.cooperative && !(options_.together && code.spins)) return false;
  if (!program_.blocks.empty() ||
      code.module->functions[static_cast<size_t>(code.entry)].required_cluster[0] > 0 ||
      launch.cluster[0] > 0) {
    if (!launch.cooperative) return false;
    throw BadInput(fmt::format("{}: the cooperative launch of {} cannot have clusters, nor some blocks alone",
                               program_.name, launch.function));
  }
  const uint64_t block =
      code.shared_bytes + uint64_t{launch.shared_bytes} +
      warps_of(launch, {1, 1, 1}) * (uint64_t{code.file_bytes} + 32 * uint64_t{code.local_bytes} + 2048);
  if (blocks <= largest_together / block) return true;
  if (!launch.cooperative) return false;
  throw BadInput(
      fmt::format("{}: the {} blocks of the cooperative launch of {} need {} MiB, too much to run together",
                  program_.name, blocks, launch.function, (blocks * block) >> 20));
}

/// Arguments in the order of the entry's parameters; sizes must agree.
void PreparedProgram::lay_out_parameters(size_t index) {
  const Launch& launch = program_.launches[index];
  const Code& code = *codes_[index];
  const ptx::Function& entry = code.module->functions[static_cast<size_t>(code.entry)];
  const std::string who = program_.name + ": launch of " + launch.function;
  require_arguments(launch, entry, who);
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || threads > 1024)
    throw BadInput(fmt::format("{} has a block of {} threads; 1 to 1024 are possible", who, threads));
  if (uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] == 0)
    throw BadInput(who + " has an empty grid");
  if (entry.max_threads > 0 && threads > static_cast<uint64_t>(entry.max_threads))
    throw BadInput(
        fmt::format("{} has a block of {} threads, the entry allows {}", who, threads, entry.max_threads));
  const auto& [x, y, z] = entry.required_block;
  if (x > 0 && (launch.block != std::array{uint32_t(x), uint32_t(y), uint32_t(z)}))
    throw BadInput(fmt::format(
        "{} has a block of {} x {} x {} threads, the entry is compiled for {} x {} x {} (.reqntid)", who,
        launch.block[0], launch.block[1], launch.block[2], x, y, z));
  if (uint64_t{code.shared_bytes} + launch.shared_bytes > largest_shared)
    throw BadInput(fmt::format("{} needs {} bytes of shared memory, a block has {}", who,
                               uint64_t{code.shared_bytes} + launch.shared_bytes, largest_shared));

  if (runs_together(index)) {
    clusters_.push_back(launch.grid);
  } else {
    clusters_.push_back(cluster_of(launch, entry, who));
  }
  const std::array<uint32_t, 3>& cluster = clusters_.back();
  if (!runs_together(index) && uint64_t{count_of(cluster)} > largest_cluster)
    throw BadInput(fmt::format("{} has clusters of {} blocks, at most {} are possible", who,
                               count_of(cluster), largest_cluster));
  for (size_t i = 0; i < 3; ++i)
    if (launch.grid[i] % cluster[i] != 0)
      throw BadInput(
          fmt::format("{} has a grid of {} x {} x {} blocks, which clusters of {} x {} x {} do not fill", who,
                      launch.grid[0], launch.grid[1], launch.grid[2], cluster[0], cluster[1], cluster[2]));

  std::vector<std::byte> block(entry.parameters.empty() ? 0
                                                        : static_cast<size_t>(entry.parameters.back().offset +
                                                                              entry.parameters.back().bytes));
  const auto address = [&](const PointerArgument& to) {
    const auto found = addresses_.find(to.buffer);
    if (found == addresses_.end())
      throw BadInput(fmt::format("{} names {}, which is no buffer of the program", who, to.buffer));
    return found->second + static_cast<uint64_t>(to.offset);
  };
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const ptx::Parameter& parameter = entry.parameters[i];
    const auto encode = [&](const TileMap& map, uint64_t at, std::byte* to) {
      if (const std::string fault = fault_of(map, at); !fault.empty())
        throw BadInput(
            fmt::format("{}: argument {} ({}) holds a tensor map with {}", who, i, parameter.name, fault));
      encode_tile_map(map, at, to);
    };
    const std::vector<std::byte> bytes = filled(launch.arguments[i], address, encode);
    std::copy(bytes.begin(), bytes.end(), block.begin() + parameter.offset);
  }
  parameters_.push_back(std::move(block));
}

std::vector<std::string> PreparedProgram::changed_variables() const {
  std::set<std::string> names;
  for (const auto& [module, variables] : variables_)
    for (size_t v = 0; v < variables.data.size(); ++v)
      if (variables.data[v] != variables.initial[v]) names.insert(module->variables[v].name);
  return {names.begin(), names.end()};
}

/// Of the module's variables in global memory that are no buffers of the run; the others are empty.
std::vector<std::vector<std::byte>> PreparedProgram::initial_variables(const Code& code) const {
  const ptx::Module& module = *code.module;
  const auto is_ours = [&](size_t v) {
    const ptx::Variable& variable = module.variables[v];
    return (variable.space == ptx::Space::global || variable.space == ptx::Space::constant) &&
           code.variables[v] == variable_address(static_cast<int32_t>(v));
  };
  int64_t total = 0;
  for (size_t v = 0; v < module.variables.size(); ++v)
    if (is_ours(v)) total += module.variables[v].bytes;
  if (total > largest_variables)
    throw BadInput(fmt::format("{}: the variables of {} have {} bytes; at most {} are possible",
                               program_.name, module.path, total, largest_variables));
  std::vector<std::vector<std::byte>> all(module.variables.size());
  for (size_t v = 0; v < module.variables.size(); ++v)
    if (is_ours(v)) all[v] = initial_bytes(module.variables[v], code.variables);
  return all;
}

namespace {

bool same_module(const Module& a, const Module& b) {
  return (a.ptx == b.ptx || *a.ptx == *b.ptx) && a.path == b.path && a.places == b.places;
}

/// The first launch of the module that launch `index` has, by its text: they share its variables.
size_t first_with_module(const Program& program, size_t index) {
  const auto module_of = [&](const Launch& launch) -> const Module& {
    return *std::find_if(program.modules.rbegin(), program.modules.rend(),
                         [&](const Module& module) { return module.name == launch.module; });
  };
  const Module& own = module_of(program.launches[index]);
  size_t first = 0;
  while (first < index && !same_module(module_of(program.launches[first]), own)) ++first;
  return first;
}

/// Warps of a launch for which its code is compiled: an instruction is compiled in 1.1 us, and then takes a
/// warp some 10 ns less, tensor cores among others; each runs most of them more than once.
constexpr uint64_t kWarpsWorthCompiling = 1024;

bool is_compiled(ExecutedBy engine, const Launch& launch, uint64_t blocks) {
  return engine == ExecutedBy::compiled ||
         (engine == ExecutedBy::by_size && blocks * warps_of(launch, {1, 1, 1}) >= kWarpsWorthCompiling);
}

}  // namespace

const LaunchContext& PreparedProgram::enter(size_t index) {
  const Launch& launch = program_.launches[index];
  const Code& code = *codes_[index];
  memory_.remove(parameter_base, allocation_base);
  memory_.place(parameter_base, "parameters of " + launch.function, parameters_[index].data(),
                parameters_[index].size());
  const ptx::Module& module = *code.module;
  Variables& variables = variables_[codes_[first_with_module(program_, index)]->module.get()];
  if (variables.data.empty()) variables.data = initial_variables(code), variables.initial = variables.data;
  for (size_t v = 0; v < module.variables.size(); ++v)
    if (!variables.data[v].empty())
      memory_.place(code.variables[v], module.variables[v].name, variables.data[v].data(),
                    variables.data[v].size());
  context_.code = &code;
  context_.compiled =
      is_compiled(options_.engine, launch, blocks(index).count) ? compiled_code(code) : nullptr;
  context_.memory = &memory_;
  context_.launch = &launch;
  context_.cluster = clusters_[index];
  context_.explicit_cluster =
      launch.cluster[0] != 0 || module.functions[static_cast<size_t>(code.entry)].required_cluster[0] != 0;
  context_.together = runs_together(index);
  context_.grid_workspace = launch.cooperative ? grid_workspace_ : 0;
  context_.launch_index = static_cast<int32_t>(index);
  return context_;
}

namespace {

/// std::byte is no integer to std::equal, which then goes byte by byte.
bool has_same_bytes(const Tensor& a, const Tensor& b) {
  return a.data.size() == b.data.size() &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
}

}  // namespace

TensorMap PreparedProgram::changed(const TensorMap& inputs) const {
  TensorMap changed;
  for (const Buffer& buffer : buffers_) {
    if (buffer.use != Buffer::Use::in || buffer.layout || is_shared(buffers_, buffer)) continue;
    const Tensor &now = tensors_.at(buffer.name), &given = inputs.at(buffer.name);
    if (now.is_held() && !has_same_bytes(now, given)) changed.emplace(buffer.name, now);
  }
  return changed;
}

TensorMap PreparedProgram::take_outputs() {
  TensorMap outputs;
  for (const Buffer& buffer : buffers_) {
    if (!buffer.is_read_back()) continue;
    Tensor& taken = outputs[buffer.name] = std::move(tensors_.at(buffer.name));
    const Place place = *memory_.find(buffer.name);
    if (!taken.is_held())
      taken.source = paged_elements(place.allocation->pages, taken.source, taken.dtype, taken.size());
    if (buffer.storage < 0) continue;
    const std::byte* from = place.allocation->data + place.offset;
    taken.data.assign(from, from + place.bytes);
  }
  return outputs;
}

}  // namespace assay::vm
