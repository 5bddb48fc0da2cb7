#include "src/binding/launch_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "src/base/program/steps.h"
#include "src/binding/arrays.h"
#include "src/binding/launch.h"
#include "src/binding/storages.h"

namespace assay::binding {
namespace {

/// What memory that is allocated and not filled holds (python/assay/triton/devices.py).
constexpr std::byte kUnwritten{0xff};

/// Memory that was allocated and not filled.
bool is_unwritten(const std::vector<std::byte>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kUnwritten; });
}

/// The first element of a value that is not finite, among those whose bits changed; -1: none.
int64_t first_made_nonfinite(const Tensor& shape, const std::vector<std::byte>& before,
                             const std::vector<std::byte>& after) {
  if (shape.axes.empty() || format(shape.dtype).precision == 0) return -1;
  Tensor now = shape;
  now.data = after;
  const auto width = static_cast<size_t>(format(shape.dtype).bytes);
  for (int64_t i = 0; i < now.size(); ++i) {
    const size_t at = static_cast<size_t>(i) * width;
    if (!std::isfinite(now.value(i)) && std::memcmp(before.data() + at, after.data() + at, width) != 0)
      return i;
  }
  return -1;
}

/// All that is written of it is finite.
bool is_finite(const Tensor& shape, const std::vector<std::byte>& bytes) {
  if (shape.axes.empty() || format(shape.dtype).precision == 0) return true;
  Tensor now = shape;
  now.data = bytes;
  const auto width = static_cast<size_t>(format(shape.dtype).bytes);
  for (int64_t i = 0; i < now.size(); ++i) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * width);
    const bool unwritten = std::all_of(from, from + static_cast<std::ptrdiff_t>(width),
                                       [](std::byte b) { return b == kUnwritten; });
    if (!unwritten && !std::isfinite(now.value(i))) return false;
  }
  return true;
}

/// What is asked for is not finite where no launch wrote it, and finite where one did: it has come from
/// another value that a launch gave.
bool came_through_the_host(const std::vector<ProgramOutput>& asked, const std::vector<ProgramOutput>& written,
                           const TensorMap& given) {
  bool elsewhere = false;
  for (const ProgramOutput& output : asked) {
    const auto tensor = given.find(output.name);
    if (tensor == given.end() || is_finite(tensor->second, tensor->second.data)) continue;
    if (std::any_of(written.begin(), written.end(), [&](const auto& w) { return w.name == output.name; }))
      return false;
    elsewhere = true;
  }
  return elsewhere;
}

}  // namespace

void LaunchRecord::name(const assay_array& array, const Tensor& shape) {
  named_.push_back({array.address, shape});
}

/// Known already where a storage lies there; the process may have written to it since.
size_t LaunchRecord::memory_of(const assay_array& array) {
  for (size_t i = 0; i < memories_.size(); ++i)
    if (memories_[i].address == array.address && memories_[i].bytes == array.bytes) return i;
  Memory& made = memories_.emplace_back();
  made.address = array.address, made.bytes = array.bytes;
  const Tensor contents = contents_of(array, array.name && *array.name ? array.name : "");
  made.name = contents.name, made.shape = contents, made.first = made.now = contents.data;
  made.shape.data.clear();
  return memories_.size() - 1;
}

void LaunchRecord::before(const assay_module& module, const assay_launch& given) {
  Launch launch = launch_of(module, given);
  const Storages storages(given);
  const std::vector<bool> wanted = reached(launch, module.entry(given.entry), storages);
  reached_.clear();
  for (size_t i = 0; i < storages.size(); ++i) {
    if (!wanted[i]) continue;
    const size_t at = memory_of(storages[i]);
    reached_.push_back(at);
    Memory& memory = memories_[at];
    const std::byte* const now = storages.data(i);
    if (std::memcmp(memory.now.data(), now, memory.bytes) == 0) continue;
    // What the process has written between the launches.
    const auto [first, there] = std::mismatch(memory.now.begin(), memory.now.end(), now);
    const auto offset = static_cast<size_t>(first - memory.now.begin()) & ~size_t{3};
    size_t last = memory.bytes;
    while (last > offset && memory.now[last - 1] == now[last - 1]) --last;
    last = std::min<size_t>((last + 3) & ~size_t{3}, memory.bytes);
    Tensor constant(fmt::format("written by the host {}", constants_.size() + 1), Dtype::u8,
                    {{"", static_cast<int64_t>(last - offset)}});
    constant.data.assign(now + offset, now + last);
    constants_.push_back(std::move(constant));
    steps_.push_back({SIZE_MAX, at, constants_.size() - 1, offset});
    std::memcpy(memory.now.data() + offset, now + offset, last - offset);
  }
  const auto [known, is_new] = known_modules_.emplace(module.source.ptx.get(), modules_.size());
  if (is_new) {
    modules_.push_back(module.source);
    modules_.back().name = fmt::format("module {}", modules_.size());
  }
  launch.module = modules_[known->second].name;
  launches_.push_back(std::move(launch));
  steps_.push_back({launches_.size() - 1});
}

void LaunchRecord::after() {
  bool finite = true;
  std::optional<size_t> made;
  for (const size_t at : reached_) finite &= is_finite(memories_[at].shape, memories_[at].now);
  for (const size_t at : reached_) {
    Memory& memory = memories_[at];
    const auto* const now = reinterpret_cast<const std::byte*>(memory.address);
    if (std::memcmp(memory.now.data(), now, memory.bytes) == 0) continue;
    memory.written = true;
    std::vector<std::byte> before(now, now + memory.bytes);
    std::swap(before, memory.now);
    if (!made && first_made_nonfinite(memory.shape, before, memory.now) >= 0) made = at;
  }
  if (finite && made && !nonfinite_) nonfinite_ = {steps_.size(), *made};
}

std::string LaunchRecord::name_of(size_t memory) const {
  const Memory& here = memories_[memory];
  for (const Named& named : named_)
    if (named.address == here.address && named.shape.bytes() == static_cast<int64_t>(here.bytes))
      return named.shape.name;
  const std::string base = here.name.empty() ? fmt::format("memory {}", memory + 1) : here.name;
  const auto taken = [&](const std::string& name) {
    return std::any_of(named_.begin(), named_.end(), [&](const Named& n) { return n.shape.name == name; });
  };
  size_t same = 1;
  for (size_t i = 0; i < memory; ++i) same += memories_[i].name == here.name;
  const std::string name = same > 1 ? fmt::format("{} ({})", base, same) : base;
  return taken(name) ? fmt::format("{} (memory {})", base, memory + 1) : name;
}

/// Names what a launch wrote last and was given on as a copy.
void LaunchRecord::name_copies(const TensorMap& given) {
  for (const auto& [name, tensor] : given)
    for (size_t i = memories_.size(); i-- > 0;) {
      const Memory& memory = memories_[i];
      const bool same = memory.written && memory.shape.dtype == tensor.dtype && memory.now == tensor.data;
      if (!same || name_of(i) == name) continue;
      Tensor shape = tensor;
      shape.name = name, shape.data.clear();
      std::erase_if(named_, [&](const Named& n) { return n.shape.name == name; });
      named_.push_back({memory.address, std::move(shape)});
      break;
    }
}

std::optional<LaunchedRun> LaunchRecord::finish(const std::vector<ProgramOutput>& outputs,
                                                const TensorMap& given) {
  if (launches_.empty()) return std::nullopt;
  name_copies(given);
  LaunchedRun run;
  Program& program = run.program;
  program.modules = modules_;
  for (size_t i = 0; i < memories_.size(); ++i) {
    const Memory& memory = memories_[i];
    const std::string name = name_of(i);
    Tensor tensor = memory.shape;
    for (const Named& named : named_)
      if (named.shape.name == name) tensor = named.shape;
    tensor.name = name, tensor.data = memory.first;
    program.places[name] = memory.address;
    const auto asked = std::any_of(outputs.begin(), outputs.end(),
                                   [&](const ProgramOutput& output) { return output.name == name; });
    const bool is_output = asked && memory.written;
    if (is_output) program.outputs.push_back({name, tensor.dtype, tensor.axes});
    if (!is_unwritten(memory.first))
      run.inputs.emplace(name, std::move(tensor));
    else if (!is_output)
      program.workspaces.push_back({name, static_cast<int64_t>(memory.bytes), ""});
  }
  size_t steps = steps_.size();
  if (nonfinite_ && (program.outputs.empty() || came_through_the_host(outputs, program.outputs, given))) {
    const Memory& memory = memories_[nonfinite_->second];
    const std::string name = name_of(nonfinite_->second);
    if (program.outputs.empty() || is_finite(memory.shape, memory.now)) {  // or it has been written over
      program.outputs.clear();
      steps = nonfinite_->first;
    }
    program.outputs.push_back({name, memory.shape.dtype, memory.shape.axes});
    std::erase_if(program.workspaces, [&](const Workspace& w) { return w.name == name; });
  }
  program.constants = constants_;
  for (size_t i = 0; i < steps; ++i) {
    const Step& step = steps_[i];
    if (step.launch != SIZE_MAX) {
      program.launches.push_back(launches_[step.launch]);
      continue;
    }
    const Tensor& constant = constants_[step.constant];
    add_copy(program, {constant.name, 0}, {name_of(step.memory), static_cast<int64_t>(step.offset)},
             constant.size());
  }
  return run;
}

}  // namespace assay::binding
