#include "src/base/vm/stored_floats.h"

#include <optional>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/traced_launch.h"
#include "src/base/vm/transfer.h"

namespace assay::vm {
namespace {

std::optional<Dtype> float_of(const Op& op) {
  if (op.type == ptx::Type::f32) return Dtype::fp32;
  if (op.type == ptx::Type::f64) return Dtype::fp64;
  return std::nullopt;
}

struct StoreTypes : PlainTrace {
  static constexpr unsigned hooks = hook::after | hook::landed;
  explicit StoreTypes(const Memory& where) : memory(where) {}

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Flow flow = warp.block->context->code->signature(op).flow();
    if (!is_one_of(flow, Flow::store, Flow::atomic) || warp.space != ptx::Space::global) return;
    each_lane(mask, [&](int lane) { note(warp.address[lane], float_of(op)); });
  }
  void landed(Warp&, const Landing& landing) {
    if (landing.to_space != ptx::Space::global) return;
    each_lane(landing.mask, [&](int piece) { note(landing.to[piece], std::nullopt); });
  }
  void note(uint64_t address, std::optional<Dtype> type) {
    if (address - base < bytes && type == last) return;
    const int found = memory.find(address, 1);
    if (found < 0) return;
    const Allocation& allocation = memory.allocations()[static_cast<size_t>(found)];
    base = allocation.base, bytes = allocation.bytes, last = type;
    const auto [known, is_new] = types.try_emplace(allocation.name, type);
    if (!is_new && known->second != type) known->second.reset();
  }

  const Memory& memory;
  std::map<std::string, std::optional<Dtype>> types;  ///< nothing: several, or none
  uint64_t base = 0, bytes = 0;                       ///< of the allocation noted last
  std::optional<Dtype> last;
};

}  // namespace

std::map<std::string, Dtype> stored_floats(const Program& program, const TensorMap& inputs,
                                           const MachineOptions& options) {
  PreparedProgram prepared(program, inputs, options);
  StoreTypes trace(prepared.memory());
  for (size_t launch = 0; launch < program.launches.size(); ++launch)
    if (run_traced(prepared, launch, trace).trap) break;
  std::map<std::string, Dtype> found;
  for (const auto& [name, type] : trace.types)
    if (type) found[name] = *type;
  return found;
}

}  // namespace assay::vm
