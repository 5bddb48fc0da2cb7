#include "src/binding/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/type.h"
#include "src/base/vm/device_heap.h"
#include "src/base/vm/launch.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/stored_floats.h"
#include "src/binding/arrays.h"
#include "src/binding/storages.h"
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

Program program_of(const assay_module& module, const assay_launch& launch, const LaunchOptions& options) {
  Program program;
  program.name = options.name;
  program.modules.push_back(module.source);
  program.launches.push_back(launch_of(module, launch));
  return program;
}

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

/// Whether a word that the launch has changed is, taken for a float of 32 or 64 bits, not finite. All ones
/// are not looked at: an integer's -1, and what memory holds before anything is written.
bool may_be_nonfinite(const Tensor& before, const Tensor& after) {
  for (size_t at = 0; at + 4 <= after.data.size(); at += 4) {
    uint32_t was, is;
    std::memcpy(&was, before.data.data() + at, 4), std::memcpy(&is, after.data.data() + at, 4);
    if (was != is && is != ~0u && ((is & 0x7f800000) == 0x7f800000 || (is & 0x7ff00000) == 0x7ff00000))
      return true;
  }
  return false;
}

/// Storages of bytes in which the launch may have left what is not finite, as the floats that it stores
/// there; false where there are none.
bool type_storages(const Program& program, TensorMap& inputs, const Outcome& ran,
                   const vm::MachineOptions& machine) {
  std::vector<std::string> wanted;
  for (const auto& [name, now] : ran.changed_inputs)
    if (now.dtype == Dtype::u8 && may_be_nonfinite(inputs.at(name), now)) wanted.push_back(name);
  if (wanted.empty()) return false;
  bool any = false;
  const std::map<std::string, Dtype> floats = vm::stored_floats(program, inputs, machine);
  for (const std::string& name : wanted) {
    const auto type = floats.find(name);
    Tensor& bytes = inputs.at(name);
    const size_t width = type == floats.end() ? 0 : static_cast<size_t>(format(type->second).bytes);
    if (width == 0 || bytes.data.size() % width != 0) continue;
    bytes.dtype = type->second, bytes.axes = {{"", static_cast<int64_t>(bytes.data.size() / width)}};
    any = true;
  }
  return any;
}

json run_judged(Program program, const vm::Code& code, Storages& storages, const LaunchOptions& options,
                std::map<uint64_t, ByteSet>* unwritten) {
  TensorMap inputs;
  ProgramCheckOptions check;
  storages.tell_apart();
  const vm::HeapOfProcess* const process = vm::HeapOfProcess::current();
  const std::vector<bool> wanted =
      reached(program.launches[0], code, storages, process ? process->before() : nullptr);
  for (size_t i = 0; i < storages.size(); ++i) {
    if (!wanted[i]) continue;
    const std::string& name = storages.name(i);
    inputs.emplace(name, contents_of(storages[i], name));
    program.places[name] = storages[i].address;
    if (!storages[i].writable) check.fixed.insert(name);
  }
  check.machine = check.origin.machine = options.machine;
  check.checks = options.checks;
  for (size_t i = 0; unwritten && i < storages.size(); ++i)
    if (const auto found = unwritten->find(storages[i].address); wanted[i] && found != unwritten->end())
      check.checks.unwritten_bytes[storages.name(i)] = found->second;
  check.births = check.origins = options.origins;
  check.orders = check.poison = check.architectures = options.repeats;
  Outcome first;
  check.ran = [&](const Outcome& outcome) { first = outcome; };
  Verification v = check_program(options.name, program, inputs, check);
  if (options.origins && !v.trap && type_storages(program, inputs, first, options.machine))
    v = check_program(options.name, program, inputs, check);
  for (size_t i = 0; i < storages.size(); ++i) {
    const auto changed = first.changed_inputs.find(storages.name(i));
    if (changed != first.changed_inputs.end() && storages[i].writable)
      std::memcpy(storages.data(i), changed->second.data.data(), changed->second.data.size());
  }
  for (size_t i = 0; unwritten && v.checks && i < storages.size(); ++i)
    if (const auto left = v.checks->unwritten.find(storages.name(i)); left != v.checks->unwritten.end())
      (*unwritten)[storages[i].address] = left->second;
  first.trap = v.trap;
  json answer = answer_of(first);
  answer["verification"] = to_json(v);
  return answer;
}

}  // namespace

std::unique_ptr<assay_module> load_module(std::string ptx, std::string path) {
  auto module = std::make_unique<assay_module>();
  module->source.name = kModuleOfOne, module->source.path = std::move(path);
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

json launch(const assay_module& module, const assay_launch& launch,
            std::shared_ptr<const vm::DeviceHeap>* heap, std::map<uint64_t, ByteSet>* unwritten) {
  const LaunchOptions options = options_of(launch);
  Program program = program_of(module, launch, options);
  Storages storages(launch);
  std::optional<vm::HeapOfProcess> process;
  if (heap) process.emplace(*heap);
  json answer = options.is_judged()
                    ? run_judged(std::move(program), module.entry(launch.entry), storages, options, unwritten)
                    : answer_of(run_live(program, storages, options.machine));
  if (heap) *heap = process->after();
  return answer;
}

}  // namespace assay::binding
