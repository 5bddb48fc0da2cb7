#include "src/campaign/mutate/footprint.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "src/base/numerics/format.h"
#include "src/base/vm/traced_launch.h"
#include "src/case/random.h"

namespace assay {
namespace {

struct FootprintTrace : vm::PlainTrace {
  static constexpr unsigned hooks = vm::hook::after | vm::hook::landed;
  const vm::Memory& memory;
  std::vector<Footprint::Buffer>& buffers;  ///< by allocation

  void after(vm::Warp& warp, const vm::Op& op, uint32_t mask) {
    if (!op.row || warp.space != ptx::Space::global) return;
    const vm::Flow flow = op.row->flow;
    const bool reads = flow == vm::Flow::load || flow == vm::Flow::atomic,
               writes = flow == vm::Flow::store || flow == vm::Flow::atomic;
    if (!reads && !writes) return;
    const uint32_t bytes = uint32_t{op.element_bytes} * op.vector_length;
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) {
        if (reads) mark(&Footprint::Buffer::read, warp.address[lane], bytes);
        if (writes) mark(&Footprint::Buffer::written, warp.address[lane], bytes);
      }
  }
  void landed(vm::Warp&, const vm::Landing& landing) {
    const bool reads = landing.from_space == ptx::Space::global,
               writes = landing.to_space == ptx::Space::global;
    for (int piece = 0; piece < 32; ++piece) {
      if (!(landing.mask >> piece & 1)) continue;
      if (reads && landing.copied[piece] > 0)
        mark(&Footprint::Buffer::read, landing.from[piece], landing.copied[piece]);
      if (writes) mark(&Footprint::Buffer::written, landing.to[piece], landing.bytes);
      if (writes && landing.combines) mark(&Footprint::Buffer::read, landing.to[piece], landing.bytes);
    }
  }

 private:
  void mark(std::vector<bool> Footprint::Buffer::*which, uint64_t address, uint32_t bytes) {
    const int found = memory.find(address, bytes);
    if (found < 0) return;
    std::vector<bool>& marks = buffers[static_cast<size_t>(found)].*which;
    const vm::Allocation& allocation = memory.allocations()[static_cast<size_t>(found)];
    marks.resize(allocation.bytes);
    const auto first = marks.begin() + static_cast<std::ptrdiff_t>(address - allocation.base);
    std::fill(first, first + static_cast<std::ptrdiff_t>(bytes), true);
  }
};

bool subset(const std::vector<bool>& part, const std::vector<bool>& whole) {
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] && (i >= whole.size() || !whole[i])) return false;
  return true;
}

/// Tensors and workspaces: parameters and module variables lie below them.
bool is_buffer(const vm::Allocation& allocation) {
  return vm::is_buffer(allocation.base);
}

}  // namespace

bool Footprint::reaches_within(const Footprint& other) const {
  if (trapped || other.trapped || buffers.size() != other.buffers.size()) return false;
  return std::all_of(buffers.begin(), buffers.end(), [&](const auto& entry) {
    const auto found = other.buffers.find(entry.first);
    if (found == other.buffers.end()) return false;
    const Buffer &mine = entry.second, &theirs = found->second;
    return subset(mine.read, theirs.read) && subset(mine.written, theirs.written) &&
           subset(theirs.written, mine.written);
  });
}

bool Footprint::within(const Footprint& other) const {
  return reaches_within(other) && std::all_of(buffers.begin(), buffers.end(), [&](const auto& entry) {
           return entry.second.left == other.buffers.at(entry.first).left;
         });
}

Footprint footprint_of(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options) {
  Footprint footprint;
  vm::PreparedProgram prepared(plan, inputs, options);
  std::map<uint64_t, Footprint::Buffer> of_bases;
  for (size_t i = 0; i < plan.launches.size() && !footprint.trapped; ++i) {
    const vm::LaunchContext& context =
        prepared.enter(i);  // may place variables: allocations are counted anew
    const std::vector<vm::Allocation>& allocations = prepared.memory().allocations();
    std::vector<Footprint::Buffer> buffers(allocations.size());
    for (size_t a = 0; a < allocations.size(); ++a) buffers[a] = std::move(of_bases[allocations[a].base]);
    FootprintTrace trace{{}, prepared.memory(), buffers};
    footprint.trapped = vm::run_traced(context, prepared.blocks(i), trace).trap.has_value();
    for (size_t a = 0; a < allocations.size(); ++a) of_bases[allocations[a].base] = std::move(buffers[a]);
  }
  for (const vm::Allocation& allocation : prepared.memory().allocations()) {
    if (!is_buffer(allocation)) continue;
    Footprint::Buffer& buffer = of_bases[allocation.base];
    if (allocation.data) buffer.left.assign(allocation.data, allocation.data + allocation.bytes);
    footprint.buffers[allocation.name] = std::move(buffer);
  }
  return footprint;
}

TensorMap with_special_values(const TensorMap& inputs, SpecialValues which, uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TensorMap special = inputs;
  for (auto& [name, tensor] : special) {
    if (format(tensor.dtype).precision == 0) continue;
    const RandomStream random(seed, name);
    const double subnormal = std::ldexp(1.0, tensor.dtype == Dtype::fp16 ? -20 : -130);
    const double values[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), subnormal, -subnormal};
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (which == SpecialValues::zeros)
        tensor.set(i, values[random.below(2, {i, 0, 0, 0})]);
      else if (random.below(16, {i, 0, 0, 1}) == 0)
        tensor.set(i, values[random.below(std::ssize(values), {i, 0, 0, 2})]);
    }
  }
  return special;
}

}  // namespace assay
