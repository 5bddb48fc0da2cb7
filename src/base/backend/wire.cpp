#include "src/base/backend/wire.h"

#include <cassert>
#include <cstring>

namespace assay {
namespace {

enum class ArgumentKind : uint8_t { pointer, i32, i64, f32, f64, i8, i16 };

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

void put_numbers(WireWriter& out, const std::vector<int64_t>& numbers) {
  out.number(numbers.size());
  for (const int64_t number : numbers) out.number(number);
}

std::vector<int64_t> get_numbers(WireReader& in) {
  std::vector<int64_t> numbers(in.number<size_t>());
  for (int64_t& number : numbers) number = in.number<int64_t>();
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
  layout.sizes = get_numbers(in);
  layout.strides = get_numbers(in);
  layout.offset = in.number<int64_t>();
  layout.elements = in.number<int64_t>();
  return layout;
}

void put_argument(WireWriter& out, const Argument& argument) {
  out.number(static_cast<ArgumentKind>(argument.index()));
  if (const auto* pointer = std::get_if<PointerArgument>(&argument)) {
    out.text(pointer->buffer);
    out.number(pointer->offset);
    return;
  }
  std::visit(
      [&](const auto& value) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, PointerArgument>) out.number(value);
      },
      argument);
}

Argument get_argument(WireReader& in) {
  switch (in.number<ArgumentKind>()) {
    case ArgumentKind::pointer: {
      PointerArgument pointer;
      pointer.buffer = in.text();
      pointer.offset = in.number<int64_t>();
      return pointer;
    }
    case ArgumentKind::i32:
      return in.number<int32_t>();
    case ArgumentKind::i64:
      return in.number<int64_t>();
    case ArgumentKind::f32:
      return in.number<float>();
    case ArgumentKind::f64:
      return in.number<double>();
    case ArgumentKind::i8:
      return in.number<int8_t>();
    case ArgumentKind::i16:
      return in.number<int16_t>();
  }
  return {};
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

void WireWriter::plan(const Plan& plan) {
  text(plan.kernel);
  number(plan.modules.size());
  for (const Module& module : plan.modules) text(module.name), text(module.path), text(*module.ptx);
  number(plan.workspaces.size());
  for (const Workspace& workspace : plan.workspaces) put_workspace(*this, workspace);
  number(plan.outputs.size());
  for (const PlanOutput& output : plan.outputs)
    text(output.name), number(output.dtype), put_axes(*this, output.axes);
  number(plan.constants.size());
  for (const Tensor& constant : plan.constants) tensor(constant);
  number(plan.launches.size());
  for (const Launch& launch : plan.launches) put_launch(*this, launch);
  number(plan.layouts.size());
  for (const auto& [name, layout] : plan.layouts) text(name), put_layout(*this, layout);
  number(plan.poison);
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

Plan WireReader::plan() {
  Plan plan;
  plan.kernel = text();
  plan.modules.resize(number<size_t>());
  for (Module& module : plan.modules) {
    module.name = text();
    module.path = text();
    module.ptx = std::make_shared<const std::string>(text());
  }
  plan.workspaces.resize(number<size_t>());
  for (Workspace& workspace : plan.workspaces) workspace = get_workspace(*this);
  plan.outputs.resize(number<size_t>());
  for (PlanOutput& output : plan.outputs) {
    output.name = text();
    output.dtype = number<Dtype>();
    output.axes = get_axes(*this);
  }
  plan.constants.resize(number<size_t>());
  for (Tensor& constant : plan.constants) constant = tensor();
  plan.launches.resize(number<size_t>());
  for (Launch& launch : plan.launches) launch = get_launch(*this);
  for (size_t left = number<size_t>(); left > 0; --left) {
    std::string name = text();
    plan.layouts.emplace(std::move(name), get_layout(*this));
  }
  plan.poison = number<uint8_t>();
  return plan;
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
