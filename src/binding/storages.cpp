#include "src/binding/storages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/binding/arrays.h"
#include "src/binding/launch.h"

namespace assay::binding {
namespace {

uint64_t end(const assay_array& array) {
  return array.address + array.bytes;
}

/// A storage within another is that one; else both are bytes.
void join(assay_array& first, const assay_array& second) {
  first.writable = first.writable && second.writable;
  if (end(second) <= end(first)) return;
  first.bytes = end(second) - first.address;
  first.format = -1, first.rank = 0;
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

}  // namespace

Storages::Storages(const assay_launch& launch) {
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
    names_.push_back(array.name && *array.name ? array.name : fmt::format("memory at {:#x}", array.address));
}

void Storages::tell_apart() {
  std::set<std::string> taken;
  for (std::string& name : names_) {
    const std::string given = name;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{} ({})", given, i);
  }
}

int64_t Storages::find(uint64_t address) const {
  const auto after = std::upper_bound(arrays_.begin(), arrays_.end(), address,
                                      [](uint64_t x, const assay_array& a) { return x < a.address; });
  if (after == arrays_.begin() || address >= end(*(after - 1))) return -1;
  return after - 1 - arrays_.begin();
}

Launch launch_of(const assay_module& module, const assay_launch& launch) {
  const vm::Code& code = module.entry(launch.entry);
  Launch step;
  step.module = kModuleOfOne, step.function = launch.entry;
  step.grid = triple(launch.grid), step.block = triple(launch.block), step.cluster = triple(launch.cluster);
  step.shared_bytes = launch.shared_bytes;
  step.cooperative = launch.cooperative != 0;
  step.arguments = arguments_of(launch, code.module->functions[static_cast<size_t>(code.entry)]);
  return step;
}

std::vector<bool> reached(const Launch& launch, const vm::Code& code, const Storages& storages,
                          const vm::DeviceHeap* heap) {
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
  for (const Argument& argument : launch.arguments) scan(argument.bytes.data(), argument.bytes.size());
  if (heap) scan(heap->bytes.data(), static_cast<size_t>(heap->next));
  while (!open.empty()) {
    const size_t i = open.back();
    open.pop_back();
    const int32_t kind = storages[i].format;
    if (kind < 0 || formats()[static_cast<size_t>(kind)].dtype == Dtype::i64)
      scan(storages.data(i), storages[i].bytes);
  }
  return found;
}

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

}  // namespace assay::binding
