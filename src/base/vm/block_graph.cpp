#include "src/base/vm/block_graph.h"

#include <algorithm>
#include <bit>

#include "src/base/numerics/abandon.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/vm/engine.h"
#include "src/base/vm/launch.h"
#include "src/base/vm/trace.h"

namespace assay::vm {

uint64_t BlockSet::count() const {
  uint64_t total = 0;
  for (const auto& blocks : of_launch) total += blocks.size();
  return total;
}

/// Follows loads, stores, atomics and asynchronous copies of global memory, half by half.
class BlockGraph::Trace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::after | hook::landed;
  static constexpr double nanoseconds = 50;
  explicit Trace(BlockGraph& graph) : graph_(graph) {}

  void begin_block(Block& block) {
    block_ = graph_.first_block_[static_cast<size_t>(block.context->launch_index)] +
             static_cast<uint32_t>(block.linear);
    seen_.resize(graph_.producers_.size(), ~0u);
    last_ = ~0u;
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (!op.row || warp.space != ptx::Space::global) return;
    const Flow flow = op.row->flow;
    const bool reads = flow == Flow::load || flow == Flow::atomic;
    const bool writes = flow == Flow::store || flow == Flow::atomic;
    if (!reads && !writes) return;
    const uint32_t bytes = uint32_t{op.element_bytes} * op.vector_length;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint64_t address = warp.address[std::countr_zero(rest)];
      if (reads) read(address, bytes);
      if (writes) write(address, bytes);
    }
  }
  void landed(Warp&, const Landing& landing) {
    for (uint32_t rest = landing.mask; rest; rest &= rest - 1) {
      const int piece = std::countr_zero(rest);
      if (landing.from_space == ptx::Space::global) read(landing.from[piece], landing.copied[piece]);
      if (landing.to_space != ptx::Space::global) continue;
      if (landing.combines) read(landing.to[piece], landing.bytes);
      write(landing.to[piece], landing.bytes);
    }
  }

 private:
  void read(uint64_t address, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += 2) {
      const uint32_t* writer = graph_.writer(address + at, false);
      if (!writer || *writer == 0 || *writer == last_) continue;
      last_ = *writer;
      const uint32_t from = *writer - 1;
      if (from == block_ || seen_[from] == block_) continue;
      seen_[from] = block_;
      graph_.producers_[block_].push_back(from);
    }
  }
  void write(uint64_t address, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += 2)
      if (uint32_t* writer = graph_.writer(address + at, true)) *writer = block_ + 1;
  }

  BlockGraph& graph_;
  uint32_t block_ = 0, last_ = ~0u;
  std::vector<uint32_t> seen_;  ///< by block: the reader it was last noted for
};

/// Null outside the program's allocations, and where nothing was written and `create` is false.
uint32_t* BlockGraph::writer(uint64_t address, bool create) {
  const auto holds = [address](const Area& a) { return address - a.base < a.bytes; };
  if (last_area_ >= areas_.size() || !holds(areas_[last_area_])) {
    const auto at = std::upper_bound(areas_.begin(), areas_.end(), address,
                                     [](uint64_t value, const Area& a) { return value < a.base; });
    if (at == areas_.begin() || !holds(*(at - 1))) return nullptr;
    last_area_ = static_cast<size_t>(at - areas_.begin()) - 1;
  }
  Area& area = areas_[last_area_];
  if (area.writers.empty()) {
    if (!create) return nullptr;
    area.writers.assign((area.bytes + 1) / 2, 0);
  }
  return &area.writers[(address - area.base) / 2];
}

BlockGraph::BlockGraph(const Program& program, const TensorMap& inputs, const MachineOptions& options) {
  PreparedProgram prepared(program, inputs, options);
  for (const Allocation& a : prepared.memory().allocations()) areas_.push_back({a.base, a.bytes, {}});
  uint32_t blocks = 0;
  for (const Launch& launch : program.launches) {
    first_block_.push_back(blocks);
    blocks += launch.grid[0] * launch.grid[1] * launch.grid[2];
  }
  producers_.resize(blocks);
  Trace trace(*this);
  for (size_t i = 0; i < program.launches.size() && !trapped_; ++i) {
    const LaunchContext& context = prepared.enter(i);
    const uint32_t last = i + 1 < first_block_.size() ? first_block_[i + 1] : blocks;
    Worker worker;
    prepare_worker(worker, context);
    Engine<Trace> engine(worker, trace);
    for (uint32_t block = first_block_[i]; block < last && !worker.block.trap; ++block)
      if (const uint64_t linear = block - first_block_[i];
          linear == first_of_cluster(linear, context.launch->grid, context.cluster))
        engine.run_block(linear);
    require_wanted();
    count_work(1, kOfLaunch), count_work(static_cast<double>(worker.instructions), Trace::nanoseconds);
    trapped_ = worker.block.trap.has_value();
  }
}

BlockSet BlockGraph::behind(uint64_t address) const {
  std::vector<uint32_t> open;
  std::vector<bool> taken(producers_.size());
  const auto take = [&](uint32_t block) {
    if (!taken[block]) taken[block] = true, open.push_back(block);
  };
  for (const Area& area : areas_)
    if (const uint64_t byte = address - area.base;
        byte < area.bytes && !area.writers.empty() && area.writers[byte / 2] != 0)
      take(area.writers[byte / 2] - 1);
  while (!open.empty()) {
    const uint32_t block = open.back();
    open.pop_back();
    for (const uint32_t from : producers_[block]) take(from);
  }
  BlockSet set;
  for (size_t launch = 0; launch < first_block_.size(); ++launch) {
    const size_t last = launch + 1 < first_block_.size() ? first_block_[launch + 1] : producers_.size();
    std::vector<uint64_t>& blocks = set.of_launch.emplace_back();
    for (size_t block = first_block_[launch]; block < last; ++block)
      if (taken[block]) blocks.push_back(block - first_block_[launch]);
  }
  return set;
}

}  // namespace assay::vm
