#include "src/binding/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/type.h"
#include "src/base/vm/launch.h"
#include "src/base/vm/machine.h"
#include "src/binding/arrays.h"
#include "src/verification/verify/check_program.h"

const assay::vm::Code& assay_module::entry(const std::string& name) const {
  const std::lock_guard lock(mutex);
  std::shared_ptr<const assay::vm::Code>& code = entries[name];
  if (!code) code = assay::vm::decoded(source, name);
  return *code;
}

namespace assay::binding {
namespace {

using nlohmann::json;

constexpr const char* kModule = "module";

struct LaunchOptions {
  vm::MachineOptions machine;
  vm::Checks checks = vm::Checks::none();
  bool repeats = false, origins = false;
  std::string name;

  bool is_judged() const { return checks.any() || repeats || origins; }
};

LaunchOptions options_of(const assay_launch& launch) {
  LaunchOptions options;
  const json given = json::parse(launch.options ? launch.options : "{}");
  options.machine.arch = given.value("arch", options.machine.arch);
  options.machine.threads = given.value("threads", 0);
  options.machine.instruction_budget = given.value("instruction_budget", uint64_t{0});
  options.machine.most_lane_instructions = given.value("limit", uint64_t{0});
  options.checks = vm::parse_checks(given.value("checks", std::string("none")));
  options.repeats = given.value("repeats", false);
  options.origins = given.value("origins", false);
  options.name = given.value("name", std::string(launch.entry));
  vm::tensor_core_model(options.machine.arch);
  return options;
}

std::array<uint32_t, 3> triple(const uint32_t (&of)[3]) {
  return {of[0], of[1], of[2]};
}

/// The bytes of each parameter, as the driver takes them.
std::vector<Argument> arguments_of(const assay_launch& launch, const ptx::Function& entry) {
  const std::string who = fmt::format("launch of {}", entry.name);
  std::vector<Argument> arguments;
  const bool is_packed = launch.argument_count == 0;
  if (!is_packed && launch.argument_count != entry.parameters.size())
    throw BadInput(fmt::format("{}: {} arguments, the entry takes {}", who, launch.argument_count,
                               entry.parameters.size()));
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const ptx::Parameter& parameter = entry.parameters[i];
    const auto size = static_cast<size_t>(parameter.bytes), at = static_cast<size_t>(parameter.offset);
    if (is_packed && at + size > launch.packed_bytes)
      throw BadInput(fmt::format("{}: {} bytes of arguments; parameter {} ({}) ends at byte {}", who,
                                 launch.packed_bytes, i, parameter.name, at + size));
    const void* const from =
        is_packed ? static_cast<const std::byte*>(launch.packed) + at : launch.arguments[i];
    if (!from) throw BadInput(fmt::format("{}: no bytes for parameter {} ({})", who, i, parameter.name));
    arguments.push_back(Argument::of_bytes(size).put_bytes(0, from, size));
  }
  return arguments;
}

Program program_of(const assay_module& module, const assay_launch& launch, const LaunchOptions& options) {
  const vm::Code& code = module.entry(launch.entry);
  Program program;
  program.name = options.name;
  program.modules.push_back(module.source);
  Launch& step = program.launches.emplace_back();
  step.module = kModule, step.function = launch.entry;
  step.grid = triple(launch.grid), step.block = triple(launch.block), step.cluster = triple(launch.cluster);
  step.shared_bytes = launch.shared_bytes;
  step.cooperative = launch.cooperative != 0;
  step.arguments = arguments_of(launch, code.module->functions[static_cast<size_t>(code.entry)]);
  return program;
}

/// The caller's storages: sorted, what overlaps made one, empty ones left out.
class Storages {
 public:
  explicit Storages(const assay_launch& launch) {
    std::vector<assay_array> arrays = read_arrays(launch.storages, launch.storage_count);
    std::erase_if(arrays, [](const assay_array& a) { return a.bytes == 0; });
    std::stable_sort(arrays.begin(), arrays.end(), [](const assay_array& a, const assay_array& b) {
      return a.address != b.address ? a.address < b.address : a.bytes > b.bytes;
    });
    for (const assay_array& array : arrays) {
      if (arrays_.empty() || array.address >= end(arrays_.back()))
        arrays_.push_back(array);
      else
        join(arrays_.back(), array);
    }
    names_.reserve(arrays_.size());
    for (const assay_array& array : arrays_)
      names_.push_back(array.name && *array.name ? array.name
                                                 : fmt::format("memory at {:#x}", array.address));
  }

  /// No two of one name, for a program that finds them by it.
  void tell_apart() {
    std::set<std::string> taken;
    for (std::string& name : names_) {
      const std::string given = name;
      for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{} ({})", given, i);
    }
  }

  size_t size() const { return arrays_.size(); }
  const assay_array& operator[](size_t i) const { return arrays_[i]; }
  const std::string& name(size_t i) const { return names_[i]; }
  std::byte* data(size_t i) const { return reinterpret_cast<std::byte*>(arrays_[i].address); }

  /// The storage that holds a byte; -1: none.
  int64_t find(uint64_t address) const {
    const auto after = std::upper_bound(arrays_.begin(), arrays_.end(), address,
                                        [](uint64_t x, const assay_array& a) { return x < a.address; });
    if (after == arrays_.begin() || address >= end(*(after - 1))) return -1;
    return after - 1 - arrays_.begin();
  }

 private:
  static uint64_t end(const assay_array& array) { return array.address + array.bytes; }

  /// A storage within another is that one; else both are bytes.
  static void join(assay_array& first, const assay_array& second) {
    first.writable = first.writable && second.writable;
    if (end(second) <= end(first)) return;
    first.bytes = end(second) - first.address;
    first.format = -1, first.rank = 0;
  }

  std::vector<assay_array> arrays_;
  std::vector<std::string> names_;
};

json answer_of(const Outcome& outcome) {
  Outcome told;
  told.trap = outcome.trap, told.exponents = outcome.exponents;
  json answer = {{"trap", JsonWriter::json_of(told.trap)},
                 {"exponents", JsonWriter::json_of(told.exponents)},
                 {"printed", outcome.printed},
                 {"not_printed", outcome.not_printed},
                 {"changed_variables", outcome.changed_variables},
                 {"lane_instructions", outcome.lane_instructions},
                 {"seconds", outcome.seconds},
                 {"verification", nullptr}};
  return answer;
}

// ---- on the storages as they lie there ----

struct Held {
  Tensor shape;
  std::optional<TensorLayout> layout;
  std::vector<std::byte> copy;  ///< of what may not be written
};

Outcome run_live(const Program& program, const Storages& storages, const vm::MachineOptions& machine) {
  std::vector<Held> held(storages.size());
  std::vector<vm::LiveStorage> live;
  for (size_t i = 0; i < storages.size(); ++i) {
    const assay_array& array = storages[i];
    Held& kept = held[i];
    vm::LiveStorage& made = live.emplace_back(
        vm::LiveStorage{storages.name(i), array.address, array.bytes, storages.data(i), nullptr, nullptr});
    if (!array.writable) {
      kept.copy.assign(storages.data(i), storages.data(i) + array.bytes);
      made.data = kept.copy.data();
    }
    if (array.format < 0) continue;
    kept.shape = shape_of(array);
    kept.shape.name = storages.name(i);
    const bool is_dense = fills_storage(array);
    if (!is_dense && !stride_fault(kept.shape.axes, {array.strides, array.strides + array.rank}).empty())
      continue;
    if (!is_dense) kept.layout = layout_of(array);
    made.tensor = &kept.shape, made.layout = kept.layout ? &*kept.layout : nullptr;
  }
  Outcome outcome = vm::run_in_place(program, live, machine);
  for (size_t i = 0; i < storages.size() && !outcome.trap; ++i) {
    if (held[i].copy.empty() || std::memcmp(held[i].copy.data(), storages.data(i), held[i].copy.size()) == 0)
      continue;
    outcome.trap.emplace();
    outcome.trap->kind = TrapKind::out_of_bounds;
    outcome.trap->message = fmt::format("{} is read only, and the launch wrote to it", storages.name(i));
    outcome.trap->where.function = program.launches[0].function;
  }
  return outcome;
}

// ---- judged, on copies ----

/// Storages that addresses in the arguments reach, or that are variables which the entry names, and in turn
/// those that addresses in them reach.
std::vector<bool> reached(const Program& program, const vm::Code& code, const Storages& storages) {
  std::vector<bool> found(storages.size());
  std::vector<size_t> open;
  const auto follow = [&](uint64_t address) {
    const int64_t index = storages.find(address);
    if (index < 0 || found[static_cast<size_t>(index)]) return;
    found[static_cast<size_t>(index)] = true;
    open.push_back(static_cast<size_t>(index));
  };
  const auto scan = [&](const std::byte* from, size_t bytes) {
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, from + at, sizeof word);
      follow(word);
    }
  };
  for (const int32_t variable : code.named_variables) follow(code.variables[static_cast<size_t>(variable)]);
  for (const Argument& argument : program.launches[0].arguments)
    scan(argument.bytes.data(), argument.bytes.size());
  while (!open.empty()) {
    const size_t i = open.back();
    open.pop_back();
    const int32_t kind = storages[i].format;
    if (kind < 0 || formats()[static_cast<size_t>(kind)].dtype == Dtype::i64)
      scan(storages.data(i), storages[i].bytes);
  }
  return found;
}

/// A storage's bytes: the tensor that fills it, or its elements in a row.
Tensor contents_of(const assay_array& array, const std::string& name) {
  Tensor tensor;
  const uint64_t width =
      array.format < 0 ? 1 : static_cast<uint64_t>(formats()[static_cast<size_t>(array.format)].bytes);
  if (fills_storage(array)) {
    tensor = shape_of(array);
  } else if (array.format >= 0 && array.bytes % width == 0) {
    tensor.dtype = formats()[static_cast<size_t>(array.format)].dtype;
    tensor.axes = {{"", static_cast<int64_t>(array.bytes / width)}};
  } else {
    tensor.dtype = Dtype::u8;
    tensor.axes = {{"", static_cast<int64_t>(array.bytes)}};
  }
  tensor.name = name;
  const auto* const from = reinterpret_cast<const std::byte*>(array.address);
  tensor.data.assign(from, from + array.bytes);
  return tensor;
}

json run_judged(Program program, const vm::Code& code, Storages& storages, const LaunchOptions& options) {
  TensorMap inputs;
  ProgramCheckOptions check;
  storages.tell_apart();
  const std::vector<bool> wanted = reached(program, code, storages);
  for (size_t i = 0; i < storages.size(); ++i) {
    if (!wanted[i]) continue;
    const std::string& name = storages.name(i);
    inputs.emplace(name, contents_of(storages[i], name));
    program.places[name] = storages[i].address;
    if (!storages[i].writable) check.fixed.insert(name);
  }
  check.machine = check.origin.machine = options.machine;
  check.checks = options.checks;
  check.births = check.origins = options.origins;
  check.orders = check.poison = check.architectures = options.repeats;
  Outcome first;
  check.ran = [&](const Outcome& outcome) { first = outcome; };
  Verification v = check_program(options.name, program, inputs, check);
  for (size_t i = 0; i < storages.size(); ++i) {
    const auto changed = first.changed_inputs.find(storages.name(i));
    if (changed != first.changed_inputs.end() && storages[i].writable)
      std::memcpy(storages.data(i), changed->second.data.data(), changed->second.data.size());
  }
  first.trap = v.trap;
  json answer = answer_of(first);
  answer["verification"] = to_json(v);
  return answer;
}

}  // namespace

std::unique_ptr<assay_module> load_module(std::string ptx, std::string path) {
  auto module = std::make_unique<assay_module>();
  module->source.name = kModule, module->source.path = std::move(path);
  module->source.ptx = std::make_shared<const std::string>(std::move(ptx));
  module->parsed =
      std::make_shared<const ptx::Module>(ptx::parse_functions(*module->source.ptx, module->source.path));
  return module;
}

namespace {

uint32_t static_shared_bytes(const assay_module& module, int32_t entry) {
  try {
    return vm::lay_out(module.parsed, entry)->shared_bytes;
  } catch (const BadInput&) {  // more than there is: said where it is launched
    return 0;
  }
}

}  // namespace

json describe(const assay_module& module) {
  json entries = json::object();
  for (size_t i = 0; i < module.parsed->functions.size(); ++i) {
    const ptx::Function& function = module.parsed->functions[i];
    if (!function.entry) continue;
    const auto index = static_cast<int32_t>(i);
    json parameters = json::array();
    for (const ptx::Parameter& parameter : function.parameters)
      parameters.push_back({{"name", parameter.name},
                            {"type", fmt::format(".{}", ptx::name_of(parameter.type))},
                            {"bytes", parameter.bytes},
                            {"offset", parameter.offset},
                            {"alignment", parameter.align}});
    entries[function.name] = {{"parameters", parameters},
                              {"max_threads", function.max_threads},
                              {"required_block", function.required_block},
                              {"required_cluster", function.required_cluster},
                              {"shared_bytes", static_shared_bytes(module, index)},
                              {"refused", function.refused}};
  }
  return {{"target", module.parsed->target}, {"entries", entries}};
}

json launch(const assay_module& module, const assay_launch& launch) {
  const LaunchOptions options = options_of(launch);
  Program program = program_of(module, launch, options);
  Storages storages(launch);
  if (options.is_judged())
    return run_judged(std::move(program), module.entry(launch.entry), storages, options);
  return answer_of(run_live(program, storages, options.machine));
}

}  // namespace assay::binding
