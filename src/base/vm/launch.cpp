#include "src/base/vm/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>

#include "src/base/numerics/bad_input.h"
#include "src/base/plan/block_choice.h"

namespace assay::vm {
namespace {

constexpr uint64_t default_budget = uint64_t{1} << 29;   // warp instructions; half a minute of endless loop
constexpr int64_t largest_variables = int64_t{1} << 29;  // bytes of .global and .const variables
constexpr uint32_t largest_shared = 227 * 1024;          // bytes per block, the most an sm_90 block may have

/// One module, parsed by the first thread that asks for it; others wait for that module alone.
struct Cached {
  std::shared_ptr<const std::string> text;
  std::string path;
  std::mutex mutex;
  std::shared_ptr<const ptx::Module> module;
  std::map<std::string, std::shared_ptr<const Code>> entries;
};

/// Modules by their whole text, the most recently used first.
struct Cache {
  static constexpr size_t capacity = 160;  // 5 MB each
  std::mutex mutex;
  std::list<std::shared_ptr<Cached>> modules;
};

Cache& cache() {
  static Cache made;
  return made;
}

std::shared_ptr<Cached> cached(const Module& source) {
  Cache& known = cache();
  const std::lock_guard lock(known.mutex);
  const auto found = std::find_if(known.modules.begin(), known.modules.end(), [&](const auto& c) {
    return (c->text == source.ptx || *c->text == *source.ptx) && c->path == source.path;
  });
  if (found != known.modules.end()) {
    known.modules.splice(known.modules.begin(), known.modules, found);
  } else {
    auto made = std::make_shared<Cached>();
    made->text = source.ptx, made->path = source.path;
    known.modules.push_front(std::move(made));
    if (known.modules.size() > Cache::capacity) known.modules.pop_back();
  }
  return known.modules.front();
}

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
    throw BadInput(fmt::format(
        "{}:{}: {} in {}: {} has no such instruction, sm_{} is the first that has it; choose another with --arch",
        code.module->path, at.ptx_line,
        code.module->functions[static_cast<size_t>(op.function)].body[static_cast<size_t>(op.instruction)].opcode,
        at.function, model.arch, first));
  }
}

template <class T>
void put(std::vector<std::byte>& block, int64_t offset, T value) {
  std::memcpy(block.data() + offset, &value, sizeof value);
}

}  // namespace

std::shared_ptr<const Code> decoded(const Module& source, const std::string& entry) {
  if (!source.ptx) throw BadInput(source.path + ": the module has no PTX text");
  const std::shared_ptr<Cached> module = cached(source);
  const std::lock_guard lock(module->mutex);
  if (!module->module) module->module = std::make_shared<const ptx::Module>(ptx::parse(*source.ptx, source.path));
  std::shared_ptr<const Code>& code = module->entries[entry];
  if (!code) code = decode(module->module, entry);
  return code;
}

PreparedPlan::PreparedPlan(const Plan& plan, const TensorMap& inputs, const MachineOptions& options)
    : plan_(plan), options_(options) {
  context_.tensor_core = &tensor_core_model(options.arch);
  context_.architecture = architecture_of(options.arch);
  context_.poison = plan.poison;
  context_.instruction_budget = options.instruction_budget ? options.instruction_budget : default_budget;
  for (const Launch& launch : plan.launches) {
    const Module* source = nullptr;
    for (const Module& module : plan.modules)
      if (module.name == launch.module) source = &module;
    if (!source)
      throw BadInput(plan.kernel + ": launch of " + launch.function + " names module " + launch.module +
                     ", which the plan lacks");
    codes_.push_back(decoded(*source, launch.function));
    refuse_missing_forms(*codes_.back(), *context_.tensor_core);
  }
  allocate(plan, inputs);
  for (size_t i = 0; i < plan.launches.size(); ++i) lay_out_parameters(i);
}

namespace {

/// Plan::poison, as in outputs and workspaces that are held.
class Poison : public TensorSource {
 public:
  Poison(Dtype dtype, uint8_t byte)
      : bits_((byte * 0x0101010101010101u) >> (64 - 8 * format(dtype).bytes)) {}
  uint64_t bits(int64_t) const override { return bits_; }

 private:
  uint64_t bits_;
};

std::shared_ptr<PagedBytes> poisoned_pages(uint8_t byte) {
  return std::make_shared<PagedBytes>(
      [byte](uint64_t, std::byte* to) { std::memset(to, byte, PagedBytes::page_bytes); });
}

/// Pages of a tensor's own elements.
std::shared_ptr<PagedBytes> pages_of(const Tensor& tensor) {
  const auto width = static_cast<uint64_t>(format(tensor.dtype).bytes);
  return std::make_shared<PagedBytes>([source = tensor.source, width, size = tensor.size()](uint64_t first, std::byte* to) {
    for (uint64_t at = 0; at < PagedBytes::page_bytes; at += width) {
      const auto flat = static_cast<int64_t>((first + at) / width);
      const uint64_t bits = flat < size ? source->bits(flat) : 0;
      std::memcpy(to + at, &bits, width);
    }
  });
}

}  // namespace

void PreparedPlan::allocate(const Plan& plan, const TensorMap& inputs) {
  auto place = [&](const std::string& name, std::byte* data, uint64_t bytes, const Tensor* tensor,
                   std::shared_ptr<PagedBytes> pages = nullptr, const TensorLayout* layout = nullptr) {
    if (addresses_.contains(name)) throw BadInput(plan.kernel + ": two buffers are named " + name);
    addresses_[name] = memory_.add(name, data, bytes, tensor, std::move(pages), layout);
  };
  auto place_tensor = [&](const std::string& name, Tensor tensor, std::shared_ptr<PagedBytes> pages = nullptr) {
    Tensor& kept = tensors_[name] = std::move(tensor);
    if (!kept.is_held() && !pages) pages = pages_of(kept);
    place(name, pages ? nullptr : kept.data.data(), static_cast<uint64_t>(kept.bytes()), &kept, std::move(pages));
  };
  auto place_view = [&](const std::string& name, const Tensor& tensor, const TensorLayout& layout) {
    Tensor& shape = tensors_[name];  // names elements; what they hold is in the memory behind the view
    shape.name = tensor.name, shape.dtype = tensor.dtype, shape.axes = tensor.axes;
    auto& data = buffers_[name] = strided_memory(tensor, layout);
    place(name, data.data(), data.size(), &shape, nullptr, &layout);
    addresses_[name] += static_cast<uint64_t>(layout.offset * format(tensor.dtype).bytes);
  };
  auto too_large = [&](int64_t bytes) { return !plan.blocks.empty() && bytes > kLargestHeld; };
  for (const auto& [name, tensor] : inputs) {
    const auto layout = plan.layouts.find(name);
    if (layout == plan.layouts.end())
      place_tensor(name, tensor);
    else
      place_view(name, tensor, layout->second);
  }
  for (const Tensor& constant : plan.constants) place_tensor(constant.name, constant);
  for (const PlanOutput& output : plan.outputs) {
    Tensor made;
    made.name = output.name, made.dtype = output.dtype, made.axes = output.axes;
    if (too_large(made.bytes())) {
      made.source = std::make_shared<Poison>(output.dtype, plan.poison);
      place_tensor(output.name, std::move(made), poisoned_pages(plan.poison));
      continue;
    }
    made.data.assign(static_cast<size_t>(made.bytes()), std::byte{plan.poison});
    place_tensor(output.name, std::move(made));
  }
  for (const Workspace& workspace : plan.workspaces) {
    if (workspace.bytes < 0)
      throw BadInput(plan.kernel + ": workspace " + workspace.name + " has a negative size");
    if (too_large(workspace.bytes)) {
      place(workspace.name, nullptr, static_cast<uint64_t>(workspace.bytes), nullptr, poisoned_pages(plan.poison));
      continue;
    }
    auto& data = buffers_[workspace.name];
    data.assign(static_cast<size_t>(workspace.bytes), std::byte{plan.poison});
    const auto copied = tensors_.find(workspace.copy_of);
    place(workspace.name, data.data(), data.size(), copied == tensors_.end() ? nullptr : &copied->second);
  }
}

std::optional<Trap> PreparedPlan::refused_launch() const {
  for (const Launch& launch : plan_.launches)
    for (size_t axis = 1; axis < 3; ++axis) {
      if (launch.grid[axis] <= 65535) continue;
      Trap trap;
      trap.kind = "launch";
      trap.where.function = launch.function;
      trap.message = fmt::format("{}: the launch of {} has a grid of {} blocks in {}; no GPU takes more than 65535 there",
                                 plan_.kernel, launch.function, launch.grid[axis], axis == 1 ? 'y' : 'z');
      return trap;
    }
  return std::nullopt;
}

bool PreparedPlan::has_pages() const {
  return std::any_of(memory_.allocations().begin(), memory_.allocations().end(),
                     [](const Allocation& a) { return a.pages != nullptr; });
}

BlockList PreparedPlan::blocks(size_t index) const {
  const auto& grid = plan_.launches[index].grid;
  const uint64_t all = uint64_t{grid[0]} * grid[1] * grid[2];
  if (plan_.blocks.empty()) return {all, {}};
  std::vector<uint64_t> chosen = chosen_blocks(plan_.blocks, all);
  const uint64_t count = chosen.size();
  return {count, std::move(chosen)};
}

/// Arguments in the order of the entry's parameters; sizes must agree.
void PreparedPlan::lay_out_parameters(size_t index) {
  const Launch& launch = plan_.launches[index];
  const Code& code = *codes_[index];
  const ptx::Function& entry = code.module->functions[static_cast<size_t>(code.entry)];
  const std::string who = plan_.kernel + ": launch of " + launch.function;
  if (launch.arguments.size() != entry.parameters.size())
    throw BadInput(fmt::format("{} has {} arguments, the entry takes {}", who, launch.arguments.size(),
                               entry.parameters.size()));
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

  std::vector<std::byte> block(entry.parameters.empty() ? 0
                                                        : static_cast<size_t>(entry.parameters.back().offset +
                                                                              entry.parameters.back().bytes));
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const ptx::Parameter& parameter = entry.parameters[i];
    std::visit(
        [&](const auto& argument) {
          using T = std::decay_t<decltype(argument)>;
          constexpr auto bytes = static_cast<int64_t>(std::is_same_v<T, PointerArgument> ? 8 : sizeof(T));
          if (parameter.bytes != bytes)
            throw BadInput(fmt::format("{}: argument {} ({}) has {} bytes, the entry expects {}", who, i,
                                       parameter.name, bytes, parameter.bytes));
          if constexpr (std::is_same_v<T, PointerArgument>) {
            uint64_t address = 0;
            if (!argument.buffer.empty()) {
              const auto found = addresses_.find(argument.buffer);
              if (found == addresses_.end())
                throw BadInput(fmt::format("{}: argument {} names {}, which is no buffer of the plan", who, i,
                                           argument.buffer));
              address = found->second + static_cast<uint64_t>(argument.offset);
            }
            put(block, parameter.offset, address);
          } else {
            put(block, parameter.offset, argument);
          }
        },
        launch.arguments[i]);
  }
  parameters_.push_back(std::move(block));
}

const LaunchContext& PreparedPlan::enter(size_t index) {
  const Launch& launch = plan_.launches[index];
  const Code& code = *codes_[index];
  memory_.remove(parameter_base, allocation_base);
  memory_.place(parameter_base, "parameters of " + launch.function, parameters_[index].data(),
                parameters_[index].size());
  const ptx::Module& module = *code.module;
  Variables& variables = variables_[&module];
  if (variables.data.empty()) {
    int64_t total = 0;
    for (const ptx::Variable& variable : module.variables)
      if (variable.space == ptx::Space::global || variable.space == ptx::Space::constant)
        total += variable.bytes;
    if (total > largest_variables)
      throw BadInput(fmt::format("{}: the variables of {} have {} bytes; at most {} are possible",
                                 plan_.kernel, module.path, total, largest_variables));
    for (const ptx::Variable& variable : module.variables) {
      auto& data = variables.data.emplace_back();
      if (variable.space != ptx::Space::global && variable.space != ptx::Space::constant) continue;
      data.assign(static_cast<size_t>(variable.bytes), std::byte{0});  // zero without an initialiser
      if (!variable.initial.empty())
        std::memcpy(data.data(), variable.initial.data(), variable.initial.size());
      for (const ptx::Variable::Address& address : variable.addresses)
        put(data, address.at,
            (address.function >= 0 ? function_address(address.function)
                                   : variable_address(address.variable)) +
                static_cast<uint64_t>(address.offset));
    }
  }
  for (size_t v = 0; v < module.variables.size(); ++v)
    if (!variables.data[v].empty())
      memory_.place(variable_address(static_cast<int32_t>(v)), module.variables[v].name,
                    variables.data[v].data(), variables.data[v].size());
  context_.code = &code;
  context_.memory = &memory_;
  context_.launch = &launch;
  context_.launch_index = static_cast<int32_t>(index);
  return context_;
}

TensorMap PreparedPlan::changed(const TensorMap& inputs) const {
  TensorMap changed;
  for (const auto& [name, given] : inputs) {
    const Tensor& now = tensors_.at(name);
    if (now.is_held() && !plan_.layouts.contains(name) && now.data != given.data) changed.emplace(name, now);
  }
  return changed;
}

TensorMap PreparedPlan::take_outputs() {
  TensorMap outputs;
  for (const PlanOutput& output : plan_.outputs) outputs[output.name] = std::move(tensors_.at(output.name));
  return outputs;
}

}  // namespace assay::vm
