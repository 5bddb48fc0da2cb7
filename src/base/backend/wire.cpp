#include "src/base/backend/wire.h"

#include <cassert>
#include <cstring>

namespace assay {
namespace {

void put_axes(WireWriter& out, const std::vector<Axis>& axes) {
  out.number(axes.size());
  for (const Axis& axis : axes) out.text(axis.name), out.number(axis.size);
}

std::vector<Axis> get_axes(WireReader& in) {
  std::vector<Axis> axes(in.number<size_t>());
  for (Axis& axis : axes) axis.name = in.text(), axis.size = in.number<int64_t>();
  return axes;
}

void put_workspace(WireWriter& out, const Workspace& workspace) {
  out.text(workspace.name);
  out.number(workspace.bytes);
  out.text(workspace.copy_of);
}

Workspace get_workspace(WireReader& in) {
  Workspace workspace;
  workspace.name = in.text();
  workspace.bytes = in.number<int64_t>();
  workspace.copy_of = in.text();
  return workspace;
}

template <class Number>
void put_numbers(WireWriter& out, const std::vector<Number>& numbers) {
  out.number(numbers.size());
  for (const Number number : numbers) out.number(number);
}

template <class Number>
std::vector<Number> get_numbers(WireReader& in) {
  std::vector<Number> numbers(in.number<size_t>());
  for (Number& number : numbers) number = in.number<Number>();
  return numbers;
}

void put_layout(WireWriter& out, const TensorLayout& layout) {
  put_numbers(out, layout.sizes);
  put_numbers(out, layout.strides);
  out.number(layout.offset);
  out.number(layout.elements);
}

TensorLayout get_layout(WireReader& in) {
  TensorLayout layout;
  layout.sizes = get_numbers<int64_t>(in);
  layout.strides = get_numbers<int64_t>(in);
  layout.offset = in.number<int64_t>();
  layout.elements = in.number<int64_t>();
  return layout;
}

void put_bytes(WireWriter& out, const std::vector<std::byte>& bytes) {
  out.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<std::byte> get_bytes(WireReader& in) {
  const std::string text = in.text();
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  return {from, from + text.size()};
}

void put_tile_map(WireWriter& out, const TileMap& map) {
  out.number(map.element), put_numbers(out, map.sizes), put_numbers(out, map.strides);
  put_numbers(out, map.box), put_numbers(out, map.steps);
  out.number(map.interleave), out.number(map.swizzle), out.number(map.promotion), out.number(map.outside);
}

TileMap get_tile_map(WireReader& in) {
  TileMap map;
  map.element = in.number<TileMap::Element>();
  map.sizes = get_numbers<uint64_t>(in), map.strides = get_numbers<uint64_t>(in);
  map.box = get_numbers<uint32_t>(in), map.steps = get_numbers<uint32_t>(in);
  map.interleave = in.number<TileMap::Interleave>();
  map.swizzle = in.number<TileMap::Swizzle>();
  map.promotion = in.number<TileMap::Promotion>();
  map.outside = in.number<TileMap::Outside>();
  return map;
}

void put_argument(WireWriter& out, const Argument& argument) {
  out.number(argument.content);
  put_bytes(out, argument.bytes);
  out.number(argument.relocations.size());
  for (const Relocation& relocation : argument.relocations) {
    out.number(relocation.at), out.text(relocation.to.buffer), out.number(relocation.to.offset);
    out.number(relocation.tile_map.has_value());
    if (relocation.tile_map) put_tile_map(out, *relocation.tile_map);
  }
}

Argument get_argument(WireReader& in) {
  Argument argument;
  argument.content = in.number<Argument::Content>();
  argument.bytes = get_bytes(in);
  argument.relocations.resize(in.number<size_t>());
  for (Relocation& relocation : argument.relocations) {
    relocation.at = in.number<uint32_t>();
    relocation.to.buffer = in.text(), relocation.to.offset = in.number<int64_t>();
    if (in.number<bool>()) relocation.tile_map = get_tile_map(in);
  }
  return argument;
}

void put_launch(WireWriter& out, const Launch& launch) {
  out.text(launch.module);
  out.text(launch.function);
  out.number(launch.grid);
  out.number(launch.block);
  out.number(launch.shared_bytes);
  out.number(launch.arguments.size());
  for (const Argument& argument : launch.arguments) put_argument(out, argument);
}

Launch get_launch(WireReader& in) {
  Launch launch;
  launch.module = in.text();
  launch.function = in.text();
  launch.grid = in.number<decltype(launch.grid)>();
  launch.block = in.number<decltype(launch.block)>();
  launch.shared_bytes = in.number<uint32_t>();
  launch.arguments.resize(in.number<size_t>());
  for (Argument& argument : launch.arguments) argument = get_argument(in);
  return launch;
}

}  // namespace

void WireWriter::raw(const void* data, size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

void WireWriter::text(const std::string& value) {
  number(value.size());
  raw(value.data(), value.size());
}

void WireWriter::tensor(const Tensor& tensor) {
  text(tensor.name);
  number(tensor.dtype);
  put_axes(*this, tensor.axes);
  raw(tensor.data.data(), tensor.data.size());
}

void WireWriter::tensors(const TensorMap& map) {
  number(map.size());
  for (const auto& [name, value] : map) text(name), tensor(value);
}

void WireWriter::program(const Program& program) {
  text(program.kernel);
  number(program.modules.size());
  for (const Module& module : program.modules) text(module.name), text(module.path), text(*module.ptx);
  number(program.workspaces.size());
  for (const Workspace& workspace : program.workspaces) put_workspace(*this, workspace);
  number(program.outputs.size());
  for (const PlanOutput& output : program.outputs)
    text(output.name), number(output.dtype), put_axes(*this, output.axes);
  number(program.constants.size());
  for (const Tensor& constant : program.constants) tensor(constant);
  number(program.aliases.size());
  for (const Alias& alias : program.aliases) text(alias.name), text(alias.storage), number(alias.offset);
  number(program.launches.size());
  for (const Launch& launch : program.launches) put_launch(*this, launch);
  number(program.layouts.size());
  for (const auto& [name, layout] : program.layouts) text(name), put_layout(*this, layout);
  number(program.poison);
}

/// What a GPU's outcome holds: no exponent ranges, no instruction counts, no source lines.
void WireWriter::outcome(const Outcome& outcome) {
  number(outcome.trap.has_value());
  if (outcome.trap) text(outcome.trap->kind), text(outcome.trap->message), text(outcome.trap->where.function);
  tensors(outcome.outputs);
  tensors(outcome.changed_inputs);
  number(outcome.seconds);
}

void WireReader::raw(void* data, size_t size) {
  assert(size <= rest_.size());
  if (size > 0) std::memcpy(data, rest_.data(), size);
  rest_ = rest_.subspan(size);
}

std::string WireReader::text() {
  std::string value(number<size_t>(), '\0');
  raw(value.data(), value.size());
  return value;
}

Tensor WireReader::tensor() {
  std::string name = text();
  const Dtype dtype = number<Dtype>();
  Tensor tensor(std::move(name), dtype, get_axes(*this));
  raw(tensor.data.data(), tensor.data.size());
  return tensor;
}

TensorMap WireReader::tensors() {
  TensorMap map;
  for (size_t left = number<size_t>(); left > 0; --left) {
    std::string name = text();
    map.emplace(std::move(name), tensor());
  }
  return map;
}

Program WireReader::program() {
  Program program;
  program.kernel = text();
  program.modules.resize(number<size_t>());
  for (Module& module : program.modules) {
    module.name = text();
    module.path = text();
    module.ptx = std::make_shared<const std::string>(text());
  }
  program.workspaces.resize(number<size_t>());
  for (Workspace& workspace : program.workspaces) workspace = get_workspace(*this);
  program.outputs.resize(number<size_t>());
  for (PlanOutput& output : program.outputs) {
    output.name = text();
    output.dtype = number<Dtype>();
    output.axes = get_axes(*this);
  }
  program.constants.resize(number<size_t>());
  for (Tensor& constant : program.constants) constant = tensor();
  program.aliases.resize(number<size_t>());
  for (Alias& alias : program.aliases) {
    alias.name = text();
    alias.storage = text();
    alias.offset = number<int64_t>();
  }
  program.launches.resize(number<size_t>());
  for (Launch& launch : program.launches) launch = get_launch(*this);
  for (size_t left = number<size_t>(); left > 0; --left) {
    std::string name = text();
    program.layouts.emplace(std::move(name), get_layout(*this));
  }
  program.poison = number<uint8_t>();
  return program;
}

Outcome WireReader::outcome() {
  Outcome outcome;
  if (number<bool>()) {
    outcome.trap.emplace();
    outcome.trap->kind = text();
    outcome.trap->message = text();
    outcome.trap->where.function = text();
  }
  outcome.outputs = tensors();
  outcome.changed_inputs = tensors();
  outcome.seconds = number<double>();
  return outcome;
}

}  // namespace assay
